#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tc/cuda/executable.h"
#include "tc/cuda/nvrtc.h"
#include "tc/cuda/print.h"

/// This machine's first GPU, for programs that end at the first error of the driver's.
namespace tc::cuda {

/// The value, or the end of the program with the error.
template <typename T>
T need(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

using Host = std::vector<float>;

class Machine {
 public:
  Machine() : context_(need(Context::open(0))), nvrtc_(need(Nvrtc::get())) {
    need(context_->driver().check(stream_status(), "creating a stream"));
  }

  const std::shared_ptr<const Context>& context() const { return context_; }
  const Driver& driver() const { return context_->driver(); }
  Stream stream() const { return stream_; }

  std::shared_ptr<Executable> load(const tile::Program& program) {
    return load(program.name, print(program), launch_plan(program));
  }
  std::shared_ptr<Executable> load(const std::string& name, const std::string& text, LaunchPlan plan) {
    const auto start = std::chrono::steady_clock::now();
    const Compiled compiled = need(nvrtc_->compile(text, context_->device().arch()));
    const double compile_ms = ms_since(start);
    auto executable = need(Executable::load(context_, compiled.arch, compiled.cubin, std::move(plan), modules_));
    std::printf("%-22s compiled in %.1f ms, loaded in %.1f ms", name.c_str(), compile_ms, ms_since(start) - compile_ms);
    for (const auto& [kernel, resources] : compiled.resources) {
      std::printf(", %s: %d registers, %lld bytes spilled", kernel.c_str(), resources.registers,
                  static_cast<long long>(resources.spill_store_bytes));
    }
    std::printf("\n");
    return executable;
  }

  Buffer upload(const void* data, size_t bytes) {
    Buffer buffer = need(Buffer::allocate(context_, static_cast<int64_t>(bytes)));
    need(buffer.copy_from(data, static_cast<int64_t>(bytes), stream_));
    return buffer;
  }
  Buffer upload(const Host& host) { return upload(host.data(), host.size() * sizeof(float)); }
  Host download(const Buffer& buffer) {
    Host host(static_cast<size_t>(buffer.bytes()) / sizeof(float));
    need(buffer.copy_to(host.data(), buffer.bytes(), stream_));
    return host;
  }
  void wait() { need(driver().check(driver().synchronize_stream(stream_), "waiting for the stream")); }

  /// The shortest of several runs, in microseconds on the device.
  double device_us(const std::function<void()>& run, int repeat = 20) {
    Driver::Event begin = nullptr, end = nullptr;
    const CurrentContext current(*context_);
    driver().create_event(&begin, 0);
    driver().create_event(&end, 0);
    float best = 1e30f;
    for (int i = 0; i < repeat; ++i) {
      driver().record_event(begin, stream_);
      run();
      driver().record_event(end, stream_);
      driver().synchronize_event(end);
      float ms = 0;
      driver().elapsed_ms(&ms, begin, end);
      best = std::min(best, ms);
    }
    driver().destroy_event(begin);
    driver().destroy_event(end);
    return best * 1e3;
  }

  static double ms_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  Driver::Status stream_status() {
    const CurrentContext current(*context_);
    return driver().create_stream(&stream_, 1);  // apart from the legacy stream
  }

  std::shared_ptr<const Context> context_;
  const Nvrtc* nvrtc_;
  ModuleCache modules_;
  Stream stream_ = nullptr;
};

}  // namespace tc::cuda
