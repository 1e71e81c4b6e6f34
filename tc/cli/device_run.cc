#include "tc/cli/device_run.h"

#include <algorithm>
#include <memory>

#include "tc/cli/report.h"
#include "tc/cuda/device.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

using cuda::Buffer;
using ContextPtr = std::shared_ptr<const cuda::Context>;

/// Dense tensors in the GPU's memory, and their views.
struct DeviceTensors {
  std::vector<Buffer> buffers;
  std::vector<DLTensor> views;

  Result<void> add(const ContextPtr& context, const api::Tensor& tensor) {
    const int64_t bytes = tensor.spec().span_bytes();
    TC_TRY(buffer, Buffer::allocate(context, bytes));
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

/// Two events around a run on the default stream.
class Stopwatch {
 public:
  explicit Stopwatch(const cuda::Context& context) : driver_(context.driver()), current_(context) {
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
    TC_TRY_VOID(driver_.check(driver_.record_event(begin_, nullptr), "recording an event"));
    TC_TRY_VOID(run());
    TC_TRY_VOID(driver_.check(driver_.record_event(end_, nullptr), "recording an event"));
    TC_TRY_VOID(driver_.check(driver_.synchronize_event(end_), "waiting for the kernels"));
    float ms = 0;
    TC_TRY_VOID(driver_.check(driver_.elapsed_ms(&ms, begin_, end_), "reading the GPU's clock"));
    return ms * 1e3;
  }

 private:
  const cuda::Driver& driver_;
  cuda::CurrentContext current_;
  cuda::Driver::Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace

Result<std::string> run_on_device(const api::CompiledKernel& kernel, Arguments& arguments, uint32_t repeat) {
  TC_TRY(context, cuda::Context::open(kernel.device().device_id));
  DeviceTensors inputs, outputs, scratch;
  for (const api::Tensor& input : arguments.inputs) TC_TRY_VOID(inputs.add(context, input));
  for (const api::Tensor& output : arguments.outputs) {
    TC_TRY_VOID(outputs.add(context, output));
    if (repeat > 1) TC_TRY_VOID(scratch.add(context, output));
  }
  const std::vector<DLTensor*> input_list = inputs.pointers(), output_list = outputs.pointers(),
                               scratch_list = scratch.pointers();
  const std::vector<const DLTensor*> read_only(input_list.begin(), input_list.end());
  Stopwatch stopwatch(*context);
  TC_TRY(first_us, stopwatch.time_us([&] { return kernel.run(read_only, output_list, arguments.scalars); }));
  for (size_t o = 0; o < outputs.buffers.size(); ++o) {
    TC_TRY_VOID(outputs.buffers[o].copy_to(arguments.outputs[o].data(), outputs.buffers[o].bytes()));
  }
  const std::string where = context->device().name;
  if (repeat == 1) return fmt::format("time: {} on {}", time_text(first_us), where);
  std::vector<double> runs_us;
  for (uint32_t i = 0; i < repeat; ++i) {
    TC_TRY(us, stopwatch.time_us([&] { return kernel.run(read_only, scratch_list, arguments.scalars); }));
    runs_us.push_back(us);
  }
  return series_text(std::move(runs_us), first_us) + fmt::format(" on {}", where);
}

}  // namespace tc::cli
