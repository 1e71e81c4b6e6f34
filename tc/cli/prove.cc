#include "tc/cli/prove.h"

#include <charconv>

#include "tc/compile/cached.h"
#include "tc/ir/canonical.h"
#include "tc/support/check.h"

namespace tc::cli {
namespace {

/// The settings that made a key, for the symbolic Program.
Result<compile::Settings> settings_of(const cache::Key& key, const ir::Program& program) {
  const cache::Problem& problem = key.problem;
  compile::Settings settings;
  settings.entry = program.name;
  settings.backend = problem.backend;
  if (problem.sizes.size() != program.sizes.size()) return fail("it has {} sizes", problem.sizes.size());
  for (size_t i = 0; i < program.sizes.size(); ++i) settings.given.sizes[program.sizes[i]] = problem.sizes[i];
  size_t next = 0;
  for (const ir::Scalar& scalar : program.scalars) {
    if (!scalar.specialised) continue;
    if (next == problem.scalars.size()) return fail("it has {} scalars", problem.scalars.size());
    settings.given.scalars[scalar.name] = problem.scalars[next++];
  }
  std::vector<std::string> arguments;
  for (const std::string& name : program.parameters) {
    if (!program.find_scalar(name)) arguments.push_back(name);
  }
  arguments.insert(arguments.end(), program.results.begin(), program.results.end());
  for (const cache::Strided& one : problem.strided) {
    settings.layouts[arguments.at(static_cast<size_t>(one.argument))] = one.strides;
  }
  settings.options.strict = problem.strict;
  settings.options.check_bounds = problem.check_bounds;
  settings.mapping.strict = problem.strict;
  settings.mapping.check_bounds = problem.check_bounds;
  settings.mapping.tf32 = problem.tf32;
  settings.mapping.fast_accumulation = problem.fast_accumulation;
  settings.element_aligned = problem.element_aligned;
  if (problem.backend == compile::Backend::kCpu) {
    settings.target = problem.target;
    const char* text = key.machine.c_str();
    std::from_chars(text, text + key.machine.size(), settings.threads);
  } else {
    TC_TRY(gpu, compile::target_of_arch(problem.target));
    settings.gpu = gpu;
    const char* text = key.machine.c_str();
    const auto processors = std::from_chars(text, text + key.machine.size(), settings.gpu.device.processors).ptr;
    const size_t comma = key.machine.find(", ");
    if (comma != std::string::npos && processors != text) {
      std::from_chars(text + comma + 2, text + key.machine.size(), settings.gpu.device.shared_bytes);
    }
  }
  if (compile::machine_text(settings) != key.machine) return fail("the machine '{}' is unknown", key.machine);
  return compile::with_options(settings, key.options);
}

Result<compile::Compilation> front_of(const cache::Interface& interface) {
  compile::Compilation compilation;
  compilation.source = std::make_shared<const Source>(interface.entry, interface.text);
  compile::Settings settings;
  settings.entry = interface.entry;
  TC_TRY_VOID(compile::run_passes(settings, compilation, "program"));
  if (ir::digest_of(*compilation.program).to_string() != interface.program) {
    return fail("this compiler makes another program of its text");
  }
  return compilation;
}

Result<void> prove(const cache::Cache& cache, const cache::Key& key, const cache::Interface& interface) {
  TC_TRY(front, front_of(interface));
  TC_TRY(settings, settings_of(key, *front.program));
  TC_TRY(entry, cache.find(key));
  if (!entry) return fail("it is damaged");
  TC_TRY(holds, compile::reprove(settings, front, *entry));
  if (!holds) return fail("this compiler makes other code with the same options");
  return {};
}

}  // namespace

Result<std::vector<Proof>> prove_entries(const cache::Cache& cache) {
  TC_TRY(lines, cache.list());
  TC_TRY(interfaces, cache.interfaces());
  std::vector<Proof> proofs;
  for (const cache::Listed& line : lines) {
    if (line.certificate.origin == cache::Certificate::Origin::kHand) continue;
    Proof proof{.id = line.id, .holds = true, .why = ""};
    // A program may be there under several names, one of which the proved text has.
    Result<void> proved = fail("the cache does not have its program");
    for (const cache::Interface& interface : interfaces) {
      if (proved || interface.program != line.key.problem.program) continue;
      proved = prove(cache, line.key, interface);
    }
    if (!proved) proof = {line.id, false, proved.error().diagnostics().at(0).message};
    proofs.push_back(std::move(proof));
  }
  return proofs;
}

}  // namespace tc::cli
