#include "tc/compile/cached.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tc/cache/version.h"
#include "tc/cpu/runtime.h"
#include "tc/cuda/device.h"
#include "tc/cuda/print.h"
#include "tc/ir/bounds.h"
#include "tc/support/check.h"

namespace tc::compile {
namespace {

/// Positions of a Program's arguments, as entries name them.
class Slots {
 public:
  Slots(const ir::Program& program, const std::vector<ir::SubscriptCheck>& checks)
      : program_(program), checks_(checks) {}

  cache::Slot of(const std::string& name) const {
    using Kind = cache::Slot::Kind;
    for (size_t c = 0; c < checks_.size(); ++c) {
      if (name == checks_[c].found) return {Kind::kFault, static_cast<int>(c)};
    }
    int tensors = 0, scalars = 0;
    for (const std::string& parameter : program_.parameters) {
      const bool is_scalar = program_.find_scalar(parameter) != nullptr;
      if (parameter == name)
        return is_scalar ? cache::Slot{Kind::kScalar, scalars} : cache::Slot{Kind::kInput, tensors};
      ++(is_scalar ? scalars : tensors);
    }
    const auto result = std::ranges::find(program_.results, name);
    TC_CHECK(result != program_.results.end(), "the kernel takes '{}', which no argument is called", name);
    return {Kind::kOutput, static_cast<int>(result - program_.results.begin())};
  }

 private:
  const ir::Program& program_;
  const std::vector<ir::SubscriptCheck>& checks_;
};

/// The last text before somebody else's compiler: what legality was proved of.
std::string proved_text(Backend backend, const Compilation& c) {
  return Digest::of(backend == Backend::kCpu ? cpu::to_text(c.stmt->body) : c.cuda_text).to_string();
}

/// What was proved, in a line; with the verifiers' counts where they ran.
std::string statement_of(const Settings& settings, const Compilation& c) {
  std::string text = "accesses in bounds, schedule legal";
  if (settings.verify) text += ", verified after every pass";
  if (c.proof) text += ": " + tile::summary(*c.proof);
  return text;
}

int threads_of(const Settings& settings) { return settings.threads > 0 ? settings.threads : cpu::thread_count(); }

/// "AMD EPYC 7B13": Intel's and AMD's manuals, CPUID leaves 80000002h to 80000004h.
std::string cpu_name() {
  std::array<unsigned, 12> words{};
  unsigned most = 0, unused[3];
  __get_cpuid(0x80000000U, &most, &unused[0], &unused[1], &unused[2]);
  if (most < 0x80000004U) return "x86-64";
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* w = &words[4 * leaf];
    __get_cpuid(0x80000002U + leaf, w, w + 1, w + 2, w + 3);
  }
  std::string name(reinterpret_cast<const char*>(words.data()), sizeof(words));
  name = name.substr(0, name.find('\0'));
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name.substr(std::min(name.find_first_not_of(' '), name.size()));
}

int64_t seconds_now() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<cache::Problem> problem_of(const Settings& settings, const ir::Program& program, const std::string& digest) {
  return problem_of(settings, program, digest, !ir::run_time_checks(program).empty());
}

Result<cache::Problem> problem_of(const Settings& settings, const ir::Program& program, const std::string& digest,
                                  bool has_run_time_checks) {
  TC_TRY(bindings, ir::bind(program, settings.given));
  cache::Problem problem{.program = digest, .backend = settings.backend};
  for (const std::string& size : program.sizes) problem.sizes.push_back(bindings.sizes.at(size));
  for (const ir::Scalar& scalar : program.scalars) {
    if (scalar.specialised) problem.scalars.push_back(bindings.scalars.at(scalar.name));
  }
  int argument = 0;
  const auto take_strides = [&](const std::string& name) {
    const auto strides = settings.layouts.find(name);
    if (strides != settings.layouts.end()) problem.strided.push_back({argument, strides->second});
    ++argument;
  };
  for (const std::string& name : program.parameters) {
    if (!program.find_scalar(name)) take_strides(name);
  }
  for (const std::string& name : program.results) take_strides(name);
  if (settings.backend == Backend::kCpu) {
    TC_TRY(target, cpu::canonical_target(settings.target));
    problem.target = target;
    problem.strict = settings.options.strict;
  } else {
    problem.target = cuda::to_string(settings.gpu.arch);
    problem.strict = settings.mapping.strict;
    problem.tf32 = settings.mapping.tf32;
    problem.fast_accumulation = settings.mapping.fast_accumulation;
    problem.element_aligned = settings.element_aligned;
  }
  // A def without data-dependent subscripts is the same kernel either way.
  problem.check_bounds = settings.checks_bounds() && has_run_time_checks;
  return problem;
}

std::string options_text(const Settings& settings) {
  if (settings.backend == Backend::kCpu) {
    options::CpuOptions options = settings.options;
    options.strict = false;
    options.check_bounds = false;
    return options::to_text(options);
  }
  options::MappingOptions options = settings.mapping;
  options.strict = false;
  options.check_bounds = false;
  options.tf32 = options.fast_accumulation = false;
  return options::to_text(options);
}

Result<Settings> with_options(Settings settings, const std::string& text) {
  if (settings.backend == Backend::kCpu) {
    TC_TRY(options, options::cpu_options_from_text(text));
    options.strict = settings.options.strict;
    options.check_bounds = settings.options.check_bounds;
    settings.options = std::move(options);
  } else {
    TC_TRY(options, options::mapping_options_from_text(text));
    options.strict = settings.mapping.strict;
    options.check_bounds = settings.mapping.check_bounds;
    options.tf32 = settings.mapping.tf32;
    options.fast_accumulation = settings.mapping.fast_accumulation;
    settings.mapping = std::move(options);
  }
  return settings;
}

std::string machine_text(const Settings& settings) {
  if (settings.backend == Backend::kCpu) return fmt::format("{} threads", threads_of(settings));
  return fmt::format("{} processors, {} bytes of shared memory", settings.gpu.device.processors,
                     settings.gpu.device.shared_bytes);
}

Result<std::string> device_name(const Settings& settings) {
  if (settings.backend == Backend::kCpu) return cpu_name();
  TC_TRY(devices, cuda::devices());
  if (settings.gpu.ordinal < 0 || static_cast<size_t>(settings.gpu.ordinal) >= devices.size()) {
    return fail("there is no GPU {}; this machine has {}", settings.gpu.ordinal, devices.size());
  }
  return devices[static_cast<size_t>(settings.gpu.ordinal)].name;
}

cache::Key key_of(const Settings& settings, const cache::Problem& problem) {
  return {.problem = problem,
          .options = options_text(settings),
          .machine = machine_text(settings),
          .compiler = cache::compiler_version()};
}

cache::Entry entry_of(const Settings& settings, const Compilation& c, bool keep_text) {
  const Slots slots(*c.program, c.checks);
  cache::Entry entry;
  entry.created = seconds_now();
  entry.certificate = {.origin = cache::Certificate::Origin::kCompiler,
                       .compiler = cache::compiler_version(),
                       .proved_text = proved_text(settings.backend, c),
                       .statement = statement_of(settings, c)};
  for (const ir::SubscriptCheck& check : c.checks) {
    entry.checks.push_back({check.dimension, check.extent, check.statement, check.tensor, check.type, check.found});
  }
  if (settings.backend == Backend::kCpu) {
    entry.cpu = {.symbol = c.object->name, .target = c.object->target, .object = c.object->bytes};
    for (const cpu::KernelArgument& argument : c.stmt->arguments) entry.slots.push_back(slots.of(argument.name));
    return entry;
  }
  TC_CHECK(settings.backend == Backend::kCuda && c.compiled, "only machine code is kept");
  entry.gpu = {.arch = cuda::to_string(c.compiled->arch),
               .cubin = c.compiled->cubin,
               .plan = cuda::launch_plan(c.mapping->program),
               .text = keep_text ? c.cuda_text : ""};
  for (const cuda::TensorArgument& tensor : entry.gpu.plan.tensors) entry.slots.push_back(slots.of(tensor.name));
  for (const cuda::ScalarArgument& scalar : entry.gpu.plan.scalars) entry.slots.push_back(slots.of(scalar.name));
  return entry;
}

Result<bool> reprove(const Settings& settings, const Compilation& compilation, const cache::Entry& entry) {
  Settings verified = settings;
  verified.verify = true;
  Compilation again = compilation;
  TC_TRY_VOID(run_passes(verified, again, settings.backend == Backend::kCpu ? "stmt" : "cuda"));
  return proved_text(settings.backend, again) == entry.certificate.proved_text;
}

}  // namespace tc::compile
