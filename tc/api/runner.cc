#include "tc/api/runner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "tc/api/elements.h"
#include "tc/api/layout.h"
#include "tc/api/request.h"
#include "tc/cpu/runtime.h"
#include "tc/cuda/print.h"
#include "tc/cuda/streams.h"
#include "tc/ir/layouts.h"
#include "tc/support/check.h"
#include "tc/support/result.h"
#include "tc/tile/simulate.h"

namespace tc::api {
namespace {

/// Whether each address is a multiple of its alignment.
template <typename AlignmentOf>
bool aligned(const CallFrame& frame, size_t tensors, AlignmentOf alignment_of) {
  for (size_t i = 0; i < tensors; ++i) {
    if (reinterpret_cast<uintptr_t>(frame.arguments[i]) % static_cast<uintptr_t>(alignment_of(i)) != 0) return false;
  }
  return true;
}

/// The error of the first check whose subscript has left its tensor.
Result<void> judge(const std::string& entry, const std::vector<ir::SubscriptCheck>& checks, const int64_t* found) {
  for (size_t c = 0; c < checks.size(); ++c) {
    const std::string sentence = ir::violation(checks[c], load_integer(checks[c].type, &found[c]));
    if (!sentence.empty()) return fail("{} of '{}'", sentence, entry);
  }
  return {};
}

class CpuRunner : public Runner {
 public:
  CpuRunner(std::string entry, std::vector<std::string> arguments, std::vector<ir::SubscriptCheck> checks,
            std::shared_ptr<const cpu::Loaded> loaded)
      : entry_(std::move(entry)),
        arguments_(std::move(arguments)),
        checks_(std::move(checks)),
        loaded_(std::move(loaded)) {}

  std::vector<std::string> arguments() const override { return arguments_; }

  Result<void> run(const CallFrame& frame, void*) const override {
    const int code = loaded_->call(const_cast<void**>(frame.arguments));  // the table itself is only read
    if (code != 0) return tl::unexpected(failure(code));
    return judge(entry_, checks_, frame.fault);
  }
  Result<void> wait(void*) const override { return {}; }
  Result<void> prepare(void*) const override { return {}; }

 private:
  Error failure(int code) const {
    if (code == cpu::kOutOfMemory) return Error(fmt::format("'{}' ran out of memory for its temporaries", entry_));
    return Error(fmt::format("'{}' failed with code {}", entry_, code)).with_kind(ErrorKind::kInternal);
  }

  std::string entry_;
  std::vector<std::string> arguments_;
  std::vector<ir::SubscriptCheck> checks_;
  std::shared_ptr<const cpu::Loaded> loaded_;
};

class CudaRunner : public Runner {
 public:
  CudaRunner(std::string entry, std::vector<ir::SubscriptCheck> checks, std::shared_ptr<cuda::Executable> executable)
      : entry_(std::move(entry)), checks_(std::move(checks)), executable_(std::move(executable)) {
    for (const ir::SubscriptCheck& check : checks_) found_.push_back(executable_->plan().buffer(check.found));
  }

  std::vector<std::string> arguments() const override {
    std::vector<std::string> names;
    for (const cuda::TensorArgument& tensor : executable_->plan().tensors) names.push_back(tensor.name);
    for (const cuda::ScalarArgument& scalar : executable_->plan().scalars) names.push_back(scalar.name);
    return names;
  }

  bool takes(const CallFrame& frame) const override {
    const auto& tensors = executable_->plan().tensors;
    return aligned(frame, tensors.size(), [&](size_t i) { return tensors[i].alignment; });
  }

  Result<void> run(const CallFrame& frame, void* stream) const override {
    const size_t tensors = executable_->plan().tensors.size();
    cuda::Address addresses[kMaxCallArguments];
    for (size_t i = 0; i < tensors; ++i) addresses[i] = reinterpret_cast<cuda::Address>(frame.arguments[i]);
    const std::span<const void* const> scalars(frame.arguments + tensors, executable_->plan().scalars.size());
    if (checks_.empty()) return executable_->run(stream, {addresses, tensors}, scalars);
    TC_TRY(captured, is_captured(stream));
    if (captured) {
      return fail(
          "a run of '{}' checks subscripts and waits for what it finds, which a stream that is being captured "
          "cannot: capture a kernel without check_bounds",
          entry_);
    }
    // What one run finds is read before another one writes there.
    const std::lock_guard<std::mutex> lock(mutex_);
    TC_TRY_VOID(executable_->run(stream, {addresses, tensors}, scalars));
    std::vector<int64_t> found(found_.size());
    TC_TRY_VOID(executable_->read_workspace(stream, found_, found));
    return judge(entry_, checks_, found.data());
  }

  Result<void> wait(void* stream) const override {
    const cuda::CurrentContext current(executable_->context());
    const cuda::Driver& driver = executable_->context().driver();
    return driver.check(driver.synchronize_stream(stream), "waiting for the stream");
  }
  Result<void> prepare(void* stream) const override { return executable_->prepare(stream); }
  Result<bool> is_captured(void* stream) const override {
    const cuda::CurrentContext current(executable_->context());
    return cuda::is_captured(executable_->context().driver(), stream);
  }
  Result<void> follow(void* stream, void* other) const override {
    return cuda::follow(executable_->context(), stream, other);
  }
  void beside(const std::function<void()>& work) const override {
    const cuda::CurrentContext current(executable_->context());
    work();
  }

 private:
  std::string entry_;
  std::vector<ir::SubscriptCheck> checks_;
  std::vector<int> found_;  ///< buffers of the workspace, one of each check
  std::shared_ptr<cuda::Executable> executable_;
  mutable std::mutex mutex_;
};

class SimulatedRunner : public Runner {
 public:
  explicit SimulatedRunner(const compile::Compilation& c)
      : entry_(c.program->name), checks_(c.checks), program_(c.mapping->program) {
    // What checks find is handed over as a result is, not kept in the workspace.
    std::erase_if(program_.workspace, [&](const tile::Tensor& tensor) {
      return std::ranges::find(checks_, tensor.name, &ir::SubscriptCheck::found) != checks_.end();
    });
    for (const ir::Tensor& tensor : c.checked->tensors) {
      if (tensor.role != ir::Role::kTemporary) tensors_.push_back({tensor.name, bytes_of_tensor(tensor)});
    }
    for (const ir::Scalar& scalar : c.specialised->scalars) {
      if (!scalar.specialised) scalars_.push_back({scalar.name, ir::from_halide(scalar.type)});
    }
    for (const cuda::TensorArgument& tensor : cuda::launch_plan(program_).tensors) {
      alignments_[tensor.name] = tensor.alignment;
    }
  }

  std::vector<std::string> arguments() const override {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : tensors_) names.push_back(name);
    for (const auto& [name, type] : scalars_) names.push_back(name);
    return names;
  }

  /// As a GPU takes them.
  bool takes(const CallFrame& frame) const override {
    return aligned(frame, tensors_.size(), [&](size_t i) {
      const auto found = alignments_.find(tensors_[i].first);
      return found == alignments_.end() ? 1 : found->second;
    });
  }

  Result<void> run(const CallFrame& frame, void*) const override {
    tile::Arguments arguments;
    size_t next = 0;
    for (const auto& [name, bytes] : tensors_) {
      arguments.tensors[name] = {static_cast<std::byte*>(frame.arguments[next++]), bytes};
    }
    for (const auto& [name, type] : scalars_) {
      const void* at = frame.arguments[next++];
      if (is_float(type)) {
        arguments.scalars[name] = load_float(type, at);
      } else {
        arguments.scalars[name] = load_integer(type, at);
      }
    }
    TC_TRY(report, tile::simulate(program_, arguments));
    if (report.findings.empty()) return judge(entry_, checks_, frame.fault);
    std::vector<Diagnostic> diagnostics;
    for (const tile::Finding& finding : report.findings) {
      diagnostics.push_back({std::nullopt, fmt::format("the simulator finds: {}", finding.sentence), {}});
    }
    return tl::unexpected(Error(nullptr, std::move(diagnostics)));
  }
  Result<void> wait(void*) const override { return {}; }
  Result<void> prepare(void*) const override { return {}; }

 private:
  static size_t bytes_of_tensor(const ir::Tensor& tensor) {
    const std::optional<Reach> reach = reach_of(ir::constant_shape(tensor), ir::strides_of(tensor));
    return static_cast<size_t>((reach->high + 1) * tensor.type.bytes());
  }

  std::string entry_;
  std::vector<ir::SubscriptCheck> checks_;
  tile::Program program_;
  std::vector<std::pair<std::string, size_t>> tensors_;
  std::vector<std::pair<std::string, ScalarType>> scalars_;
  std::map<std::string, int> alignments_;  ///< of the tensors that its kernels use
};

/// The name of what stands in a slot of an entry.
std::string name_of(const cache::Slot& slot, const cache::Entry& entry, const ir::Program& program) {
  using Kind = cache::Slot::Kind;
  const auto index = static_cast<size_t>(slot.index);
  if (slot.kind == Kind::kFault) return entry.checks[index].found;
  if (slot.kind == Kind::kOutput) return program.results[index];
  if (slot.kind == Kind::kInput) return inputs_of(program)[index];
  return program.scalars[index].name;
}

std::vector<ir::SubscriptCheck> checks_of(const cache::Entry& entry) {
  std::vector<ir::SubscriptCheck> checks;
  for (const cache::Check& check : entry.checks) {
    checks.push_back({.statement = check.statement,
                      .tensor = check.tensor,
                      .dimension = check.dimension,
                      .extent = check.extent,
                      .type = check.type,
                      .found = check.found});
  }
  return checks;
}

Result<std::unique_ptr<const Runner>> load_cpu(const compile::Settings& settings, const ir::Program& program,
                                               const cache::Entry& entry) {
  std::vector<std::string> arguments;
  for (const cache::Slot& slot : entry.slots) arguments.push_back(name_of(slot, entry, program));
  TC_TRY(loaded, cpu::load_object({.name = entry.cpu.symbol,
                                   .target = entry.cpu.target,
                                   .bytes = entry.cpu.object,
                                   .arguments = static_cast<int>(arguments.size())},
                                  compile::instance_text(settings, program)));
  return std::make_unique<CpuRunner>(program.name, std::move(arguments), checks_of(entry), std::move(loaded));
}

Result<std::unique_ptr<const Runner>> load_cuda(const compile::Settings& settings, const ir::Program& program,
                                                const cache::Entry& entry) {
  cuda::LaunchPlan plan = entry.gpu.plan;
  for (size_t i = 0; i < entry.slots.size(); ++i) {
    std::string& name = i < plan.tensors.size() ? plan.tensors[i].name : plan.scalars[i - plan.tensors.size()].name;
    name = name_of(entry.slots[i], entry, program);
  }
  TC_TRY(context, cuda::Context::open(settings.gpu.ordinal));
  const std::optional<cache::Cubin> code = entry.gpu.code_for(settings.gpu.arch.number);
  // Without code for the device, loading says which it is for.
  TC_TRY(arch, cuda::parse_arch(code ? code->arch : entry.gpu.arch));
  cuda::ModuleCache modules;
  TC_TRY(executable,
         cuda::Executable::load(context, arch, code ? code->bytes : entry.gpu.cubin, std::move(plan), modules));
  return std::make_unique<CudaRunner>(program.name, checks_of(entry), std::move(executable));
}

}  // namespace

bool fit_program(const cache::Entry& entry, const ir::Program& program) {
  using Kind = cache::Slot::Kind;
  const size_t inputs = inputs_of(program).size();
  const auto fits = [&](const cache::Slot& slot) {
    const auto index = static_cast<size_t>(slot.index);
    return (slot.kind == Kind::kFault && index < entry.checks.size()) ||
           (slot.kind == Kind::kInput && index < inputs) ||
           (slot.kind == Kind::kOutput && index < program.results.size()) ||
           (slot.kind == Kind::kScalar && index < program.scalars.size());
  };
  return entry.slots.size() < kMaxCallArguments && entry.checks.size() <= ir::kMaxSubscriptChecks &&
         std::ranges::all_of(entry.slots, fits);
}

Result<std::unique_ptr<const Runner>> load_runner(const compile::Settings& settings, const ir::Program& program,
                                                  const cache::Entry& entry) {
  TC_CHECK(settings.backend != options::Backend::kSimulator, "the simulator's kernels are not kept");
  return settings.backend == options::Backend::kCpu ? load_cpu(settings, program, entry)
                                                    : load_cuda(settings, program, entry);
}

std::unique_ptr<const Runner> make_runner(const compile::Settings& settings, const compile::Compilation& c) {
  switch (settings.backend) {
    case options::Backend::kCpu: {
      std::vector<std::string> arguments;
      for (const cpu::KernelArgument& argument : c.stmt->arguments) arguments.push_back(argument.name);
      return std::make_unique<CpuRunner>(c.program->name, std::move(arguments), c.checks, c.loaded);
    }
    case options::Backend::kCuda:
      return std::make_unique<CudaRunner>(c.program->name, c.checks, c.executable);
    case options::Backend::kSimulator:
      return std::make_unique<SimulatedRunner>(c);
  }
  TC_CHECK(false, "a backend that does not exist");
}

}  // namespace tc::api
