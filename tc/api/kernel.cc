#include "tc/api/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

#include "tc/api/request.h"
#include "tc/cache/version.h"
#include "tc/compile/cached.h"
#include "tc/cpu/runtime.h"
#include "tc/support/check.h"
#include "tc/support/profiled_range.h"
#include "tc/support/result.h"

namespace tc::api {
namespace {

using SlotKind = CallPlan::Slot::Kind;

std::vector<TensorArgument> arguments_of(const std::vector<Argument>& arguments, const std::vector<TensorSpec>& specs) {
  std::vector<TensorArgument> result;
  for (const Argument& argument : arguments) {
    if (argument.role == Role::kScalar) continue;
    result.push_back(tensor_argument(argument.name, argument.role, specs.at(result.size())));
  }
  return result;
}

/// Where the kernel's argument of a name comes from.
CallPlan::Slot slot_of(const std::string& name, const CallPlan& plan, const std::vector<ir::SubscriptCheck>& checks) {
  const auto place_in = [&](const auto& arguments, SlotKind kind) -> std::optional<CallPlan::Slot> {
    const auto found = std::ranges::find_if(arguments, [&](const auto& argument) { return argument.name == name; });
    if (found == arguments.end()) return std::nullopt;
    return CallPlan::Slot{kind, static_cast<uint16_t>(found - arguments.begin())};
  };
  for (size_t c = 0; c < checks.size(); ++c) {
    if (name == checks[c].found) return {SlotKind::kFault, static_cast<uint16_t>(c)};
  }
  if (const auto slot = place_in(plan.inputs, SlotKind::kInput)) return *slot;
  if (const auto slot = place_in(plan.outputs, SlotKind::kOutput)) return *slot;
  const auto slot = place_in(plan.scalars, SlotKind::kScalar);
  TC_CHECK(slot, "the kernel takes '{}', which no argument is called", name);
  return *slot;
}

Result<void> check_writable(std::span<Tensor> outputs, const CallPlan& plan) {
  for (size_t o = 0; o < outputs.size() && o < plan.outputs.size(); ++o) {
    if (outputs[o].read_only()) {
      return tl::unexpected(Error(fmt::format("output '{}' is read-only", plan.outputs[o].name)));
    }
  }
  return {};
}

// Entries name the same slots as call plans do.
template <auto a, auto b>
constexpr bool kSame = static_cast<int>(a) == static_cast<int>(b);
using EntryKind = cache::Slot::Kind;
static_assert(kSame<SlotKind::kInput, EntryKind::kInput> && kSame<SlotKind::kOutput, EntryKind::kOutput> &&
              kSame<SlotKind::kScalar, EntryKind::kScalar> && kSame<SlotKind::kFault, EntryKind::kFault>);

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void CompiledKernel::Impl::fill_plan(const compile::Settings& settings) {
  if (settings.backend == options::Backend::kCuda) plan.device = {kDLCUDA, settings.gpu.ordinal};
  plan.inputs = arguments_of(signature.parameters, specs.inputs);
  plan.outputs = arguments_of(signature.results, specs.outputs);
  for (const Argument& parameter : signature.parameters) {
    if (parameter.role != Role::kScalar) continue;
    ScalarArgument scalar{.name = parameter.name, .type = parameter.type};
    const auto value = settings.given.scalars.find(parameter.name);
    if (parameter.compiled_in) scalar.compiled_in = value->second;
    plan.scalars.push_back(std::move(scalar));
  }
}

CompiledKernel::Impl::Impl(const compile::Settings& settings, const compile::Compilation& compilation)
    : signature(signature_of(compilation.concrete())),
      specs(specs_of(settings, compilation)),
      provenance{.from_file = false,
                 .options = compile::options_text(settings),
                 .compiler = cache::compiler_version(),
                 .statement = ""},
      runner(make_runner(settings, compilation)) {
  fill_plan(settings);
  const std::vector<std::string> names = runner->arguments();
  TC_CHECK(names.size() < kMaxCallArguments, "{} arguments", names.size());
  for (const std::string& name : names) plan.slots.push_back(slot_of(name, plan, compilation.checks));
  for (const compile::PassTime& time : compilation.times) times.push_back({time.pass, time.ms});
  if (compilation.object) code_bytes = compilation.object->bytes.size();
  if (compilation.compiled) code_bytes = compilation.compiled->cubin.size();
}

CompiledKernel::Impl::Impl(const compile::Settings& settings, const ir::Program& program, const ir::Bindings& bindings,
                           const cache::Entry& entry, std::unique_ptr<const Runner> loaded)
    : signature(signature_of(program)),
      specs(specs_of(settings, program, bindings)),
      code_bytes(entry.cpu.object.size() + entry.gpu.cubin.size()),
      runner(std::move(loaded)) {
  fill_plan(settings);
  for (const cache::Slot& slot : entry.slots) {
    plan.slots.push_back({static_cast<SlotKind>(slot.kind), static_cast<uint16_t>(slot.index)});
  }
}

Result<void> CompiledKernel::Impl::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs,
                                       std::span<const Scalar> scalars, void* stream) const {
  const ProfiledRange range(signature.entry.c_str());
  if (stream && plan.device.device_type != kDLCUDA) return fail("a stream is given; the kernel runs on the CPU");
  CallFrame frame;
  if (auto prepared = prepare_call(plan, inputs, outputs, scalars, frame); !prepared) return prepared;
  if (runner->takes(frame) || !element_aligned.exists()) return runner->run(frame, stream);
  if (!element_aligned.is_known()) {
    TC_TRY(captured, runner->is_captured(stream));
    if (captured) {
      return fail(
          "the stream is being captured, and a tensor is not aligned to the vectors by which the kernel of '{}' "
          "copies, "
          "for which another kernel would be compiled: call it once with such tensors before",
          signature.entry);
    }
  }
  TC_TRY(other, element_aligned.get());
  return other.impl_->run(inputs, outputs, scalars, stream);
}

Result<Explanation> CompiledKernel::explain() const {
  if (impl_->explain) return impl_->explain();
  return fail("the kernel of '{}' is from a schedule by hand, which has no explanation; print the schedule",
              impl_->signature.entry);
}

Result<CompiledKernel> ElementAligned::get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (made_) return *made_;
  Result<CompiledKernel> made = make_();
  if (made || compiles_) made_ = made;
  return made;
}

CompiledKernel kernel_of(const compile::Settings& settings, const compile::Compilation& compilation) {
  return CompiledKernel(std::make_shared<const CompiledKernel::Impl>(settings, compilation));
}

Result<CompiledKernel> kernel_of(const compile::Settings& settings, const ir::Program& program,
                                 const cache::Entry& entry, const std::string& options, bool measured) {
  if (!fit_program(entry, program)) {
    return fail("a kernel of another program than '{}'", program.name);
  }
  TC_TRY(bindings, ir::bind(program, settings.given));
  TC_TRY(runner, load_runner(settings, program, entry));
  auto impl = std::make_shared<CompiledKernel::Impl>(settings, program, bindings, entry, std::move(runner));
  impl->provenance = {.from_file = true,
                      .measured = measured,
                      .options = options,
                      .compiler = entry.certificate.compiler,
                      .statement = entry.certificate.statement};
  return CompiledKernel(std::move(impl));
}

CompiledKernel::CompiledKernel(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<void> CompiledKernel::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs,
                                 std::span<const Scalar> scalars, void* stream) const {
  return impl_->run(inputs, outputs, scalars, stream);
}

Result<void> CompiledKernel::run(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                 std::span<const Scalar> scalars, void* stream) const {
  if (auto writable = check_writable(outputs, impl_->plan); !writable) return writable;
  // More than any kernel takes is cut off; the count is then still wrong.
  const DLTensor* input_views[kMaxCallArguments];
  DLTensor* output_views[kMaxCallArguments];
  const size_t num_inputs = std::min(inputs.size(), kMaxCallArguments);
  const size_t num_outputs = std::min(outputs.size(), kMaxCallArguments);
  for (size_t i = 0; i < num_inputs; ++i) input_views[i] = inputs[i].empty() ? nullptr : &inputs[i].dl();
  for (size_t o = 0; o < num_outputs; ++o) output_views[o] = outputs[o].empty() ? nullptr : &outputs[o].dl();
  return impl_->run({input_views, num_inputs}, {output_views, num_outputs}, scalars, stream);
}

Result<void> CompiledKernel::prepare(void* stream) const { return impl_->runner->prepare(stream); }

Result<bool> CompiledKernel::is_captured(void* stream) const { return impl_->runner->is_captured(stream); }

Result<void> CompiledKernel::follow(void* stream, void* other) const { return impl_->runner->follow(stream, other); }

Result<void> CompiledKernel::wait(void* stream) const { return impl_->runner->wait(stream); }

Result<Profile> CompiledKernel::profile(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                        std::span<const Scalar> scalars, int repeat) const {
  if (repeat < 1) return tl::unexpected(Error(fmt::format("a profile of {} runs shows nothing", repeat)));
  const auto run_and_wait = [&]() -> Result<void> {
    TC_TRY_VOID(run(inputs, outputs, scalars));
    return impl_->runner->wait(nullptr);
  };
  TC_TRY_VOID(run_and_wait());
  Profile profile;
  profile.runs_us.reserve(static_cast<size_t>(repeat));
  for (int i = 0; i < repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    TC_TRY_VOID(run_and_wait());
    profile.runs_us.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  profile.min_us = std::ranges::min(profile.runs_us);
  profile.median_us = median_of(profile.runs_us);
  profile.mean_us = std::accumulate(profile.runs_us.begin(), profile.runs_us.end(), 0.0) / repeat;
  return profile;
}

Result<std::vector<Tensor>> CompiledKernel::allocate_outputs() const {
  if (impl_->plan.device.device_type == kDLCUDA) {
    return fail("the results of '{}' live on CUDA device {}, whose memory is the caller's to allocate",
                impl_->signature.entry, impl_->plan.device.device_id);
  }
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : impl_->specs.outputs) {
    Result<Tensor> tensor = Tensor::allocate(spec);
    if (!tensor) return tl::unexpected(tensor.error());
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

const Signature& CompiledKernel::signature() const { return impl_->signature; }
DLDevice CompiledKernel::device() const { return impl_->plan.device; }
const std::vector<TensorSpec>& CompiledKernel::inputs() const { return impl_->specs.inputs; }
const std::vector<TensorSpec>& CompiledKernel::outputs() const { return impl_->specs.outputs; }
bool CompiledKernel::writes_all(size_t output) const {
  const std::vector<bool>& written = impl_->specs.outputs_written;
  return output < written.size() && written[output];
}
const std::vector<PassTime>& CompiledKernel::pass_times() const { return impl_->times; }
const Provenance& CompiledKernel::provenance() const { return impl_->provenance; }

}  // namespace tc::api
