#pragma once

#include <memory>
#include <vector>

#include "tc/api/tensor.h"
#include "tc/cuda/device.h"
#include "tc/support/result.h"

/// A caller's tensors in a GPU's memory, and the time there.
namespace tc::api {

/// Dense tensors in the GPU's memory, and their views.
struct DeviceTensors {
  std::vector<cuda::Buffer> buffers;
  std::vector<DLTensor> views;

  Result<void> add(const std::shared_ptr<const cuda::Context>& context, const Tensor& tensor) {
    const int64_t bytes = tensor.spec().span_bytes();
    TC_TRY(buffer, cuda::Buffer::allocate(context, bytes));
    TC_TRY_VOID(buffer.copy_from(tensor.data(), bytes));
    DLTensor view = tensor.dl();
    view.data = reinterpret_cast<void*>(buffer.address());
    view.device = {kDLCUDA, context->device().ordinal};
    view.byte_offset = 0;
    buffers.push_back(std::move(buffer));
    views.push_back(view);
    return {};
  }
  std::vector<DLTensor*> pointers() {
    std::vector<DLTensor*> result;
    for (DLTensor& view : views) result.push_back(&view);
    return result;
  }
};

/// Two events around work on a stream.
class Stopwatch {
 public:
  explicit Stopwatch(const cuda::Context& context, cuda::Stream stream = nullptr)
      : driver_(context.driver()), current_(context), stream_(stream) {
    driver_.create_event(&begin_, 0);
    driver_.create_event(&end_, 0);
  }
  ~Stopwatch() {
    driver_.destroy_event(begin_);
    driver_.destroy_event(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  template <typename Run>
  Result<double> time_us(Run run) {
    TC_TRY_VOID(driver_.check(driver_.record_event(begin_, stream_), "recording an event"));
    TC_TRY_VOID(run());
    TC_TRY_VOID(driver_.check(driver_.record_event(end_, stream_), "recording an event"));
    TC_TRY_VOID(driver_.check(driver_.synchronize_event(end_), "waiting for the kernels"));
    float ms = 0;
    TC_TRY_VOID(driver_.check(driver_.elapsed_ms(&ms, begin_, end_), "reading the GPU's clock"));
    return ms * 1e3;
  }

 private:
  const cuda::Driver& driver_;
  cuda::CurrentContext current_;
  cuda::Stream stream_;
  cuda::Driver::Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace tc::api
