#include "tc/cli/device_run.h"

#include "tc/api/device_tensors.h"
#include "tc/cli/report.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

using api::DeviceTensors;
using api::Stopwatch;

}  // namespace

Result<DeviceTimes> time_on_device(const api::CompiledKernel& kernel, Arguments& arguments, uint32_t repeat) {
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
  DeviceTimes times{.device = context->device().name, .first_us = first_us, .runs_us = {}};
  for (uint32_t i = 0; repeat > 1 && i < repeat; ++i) {
    TC_TRY(us, stopwatch.time_us([&] { return kernel.run(read_only, scratch_list, arguments.scalars); }));
    times.runs_us.push_back(us);
  }
  return times;
}

Result<std::string> run_on_device(const api::CompiledKernel& kernel, Arguments& arguments, uint32_t repeat) {
  TC_TRY(times, time_on_device(kernel, arguments, repeat));
  if (repeat == 1) return fmt::format("time: {} on {}", time_text(times.first_us), times.device);
  return series_text(std::move(times.runs_us), times.first_us) + fmt::format(" on {}", times.device);
}

}  // namespace tc::cli
