#include "tc/support/profiled_range.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "tc/api/tc.h"
#include "tests/api/fake_gpus.h"
#include "tests/api/tensors.h"

/// Ranges for profilers, as tests/common/nvtx_recorder.c hears of them.
namespace tc::api {
namespace {

using testing::expect_in_child;
using testing::expect_with_fake_gpus;
using testing::floats;
using testing::run_on_fake_gpu;
using testing::take;
using testing::tensor_of;

constexpr const char* kDouble = "def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }";

class Recorder {
 public:
  Recorder() : library_(::dlopen(TC_NVTX_RECORDER, RTLD_NOW)) {
    ::setenv("NVTX_INJECTION64_PATH", TC_NVTX_RECORDER, 1);
  }
  /// What has begun since the last call.
  std::string take() {
    auto* const text = static_cast<char*>(symbol("nvtx_recorded"));
    std::string taken = text;
    *text = '\0';
    return taken;
  }
  int open() { return *static_cast<int*>(symbol("nvtx_open")); }
  int faults() { return *static_cast<int*>(symbol("nvtx_faults")); }

 private:
  void* symbol(const char* name) { return ::dlsym(library_, name); }
  void* library_;
};

Request twice_of(int64_t n, Backend backend = Backend::kCpu) { return {.sizes = {{"N", n}}, .backend = backend}; }

void run_on_cpu(const CompiledKernel& kernel) {
  std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
  inputs.push_back(tensor_of<float>(floats({64}), std::vector<float>(64, 1)));
  EXPECT_TRUE(kernel.run(inputs, outputs));
}

TEST(ProfiledRanges, OfACompilationAndARunOnTheCpu) {
  expect_in_child([] {
    Recorder recorder;
    const Engine engine = take(Engine::create(kDouble, "twice.tc"));
    EXPECT_EQ(recorder.take(), "tensorc: twice.tc: parse\ntensorc: twice.tc: analyse\ntensorc: twice: program\n");
    const CompiledKernel kernel = take(engine.compile(twice_of(64)));
    EXPECT_EQ(recorder.take(),
              "tensorc: twice: compile\n"
              "  tensorc: twice: specialise\n"
              "  tensorc: twice: prepare\n"
              "  tensorc: twice: scop\n"
              "  tensorc: twice: schedule\n"
              "  tensorc: twice: stmt\n"
              "  tensorc: twice: object\n"
              "  tensorc: twice: load\n");
    run_on_cpu(kernel);
    EXPECT_EQ(recorder.take(), "tensorc: twice\n");
    EXPECT_EQ(recorder.open(), 0);
    EXPECT_EQ(recorder.faults(), 0);
  });
}

TEST(ProfiledRanges, OfEveryLaunch) {
  expect_with_fake_gpus([](void*) {
    Recorder recorder;
    const auto primary = take(cuda::Context::open(0));
    const cuda::CurrentContext current(*primary);
    const CompiledKernel kernel =
        take(compile("def f(float(N) x) -> (s, y) { s +=! x(i)  y(i) = x(i) * s }", twice_of(1 << 20, Backend::kCuda)));
    EXPECT_NE(recorder.take().find("\n  tensorc: f: cubin\n"), std::string::npos);
    EXPECT_TRUE(run_on_fake_gpu(kernel, 0, {{1 << 20}}, {{}, {1 << 20}}));
    EXPECT_EQ(recorder.take(), "tensorc: f\n  tensorc: f_0\n  tensorc: f_1\n  tensorc: f_2\n");
    EXPECT_EQ(recorder.open(), 0);
    EXPECT_EQ(recorder.faults(), 0);
  });
}

TEST(ProfiledRanges, EndWhereACompilationFails) {
  expect_in_child([] {
    Recorder recorder;
    Request request = twice_of(64);
    request.budget.isl_operations = 1;
    EXPECT_FALSE(compile(kDouble, request));
    EXPECT_NE(recorder.take(), "");
    EXPECT_EQ(recorder.open(), 0);
  });
}

TEST(ProfiledRanges, OfManyThreads) {
  expect_in_child([] {
    Recorder recorder;
    const Engine engine = take(Engine::create(kDouble));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { EXPECT_TRUE(engine.compile(twice_of(64 + t))); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(recorder.open(), 0);
    EXPECT_EQ(recorder.faults(), 0);
  });
}

TEST(ProfiledRanges, NoneWithoutAProfilerThatStarts) {
  for (const char* path : {"", "/nowhere/libprofiler.so", TC_FAKE_CUDA, TC_NVTX_RECORDER}) {
    expect_in_child([&] {
      Recorder recorder;
      ::setenv("NVTX_INJECTION64_PATH", path, 1);
      ::setenv("NVTX_RECORDER_REFUSES", "1", 1);
      bool is_named = false;
      {
        const ProfiledRange range([&] { return is_named = true, std::string("a"); });
      }
      EXPECT_FALSE(is_named);
      run_on_cpu(take(compile(kDouble, twice_of(64))));
      EXPECT_EQ(recorder.take(), "");
    });
  }
}

}  // namespace
}  // namespace tc::api
