#include <cstdio>

#include "tc/api/call.h"
#include "tc/api/kernel.h"
#include "tc/api/oracle.h"
#include "tc/api/request.h"
#include "tc/cli/arguments.h"
#include "tc/cli/backend.h"
#include "tc/cli/commands.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/cli/oracle_check.h"
#include "tc/cli/report.h"
#include "tc/cli/run_kernel.h"
#include "tc/cpu/runtime.h"
#include "tc/interp/compare.h"
#include "tc/support/clock.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

Result<void> check_flags(const std::optional<api::Backend>& backend) {
  if (FLAGS_repeat == 0) return fail("'--repeat' is 0; a kernel is run at least once");
  if (FLAGS_repeat > 1 && (!backend || backend == api::Backend::kSimulator)) {
    return fail("'--repeat' is for the backends cpu and cuda");
  }
  if (FLAGS_cache.empty()) {
    for (const auto& [flag, given] : {std::pair("production", FLAGS_production),
                                      {"reprove", FLAGS_reprove},
                                      {"nearest", FLAGS_nearest},
                                      {"keep_text", FLAGS_keep_text}}) {
      if (given) return fail("'--{}' is about a cache; '--cache' says which", flag);
    }
  } else {
    for (const auto& [flag, given] :
         {std::pair("reprove", FLAGS_reprove), {"nearest", FLAGS_nearest}, {"keep_text", FLAGS_keep_text}}) {
      if (FLAGS_production && given) return fail("'--production' and '--{}' exclude each other", flag);
    }
    if (!FLAGS_stop_after.empty()) return fail("'--cache' and '--stop_after' exclude each other");
    if (FLAGS_time_passes) return fail("'--cache' and '--time_passes' exclude each other");
    if (!backend || backend == api::Backend::kSimulator) return fail("'--cache' is for the backends cpu and cuda");
  }
  if (FLAGS_threads > 4096) return fail("'--threads' is {}; at most 4096 are used", FLAGS_threads);
  return {};
}

Result<std::string> run_oracle(const ir::Program& specialised, const interp::Environment& environment,
                               Arguments& arguments) {
  const Clock::time_point begin = Clock::now();
  TC_TRY(results, interp::run(specialised, environment));
  const std::string time = fmt::format("time: {} (interpreter)", time_text(us_since(begin)));
  for (size_t o = 0; o < arguments.outputs.size(); ++o) {
    api::from_value(results.at(arguments.output_names[o]), arguments.outputs[o]);
  }
  return time;
}

/// A run whose Program is specialised: from here on only tensors can be wrong.
struct Run {
  std::optional<api::Backend> backend;  ///< none: the interpreter
  compile::Compilation compilation;
  compile::Settings settings;
  Arguments arguments;
  std::optional<CachedKernel> cached;  ///< with --cache: the kernel, found or compiled
};

/// What costs a kernel time that its text does not show: registers that it has too few of, products that wait.
void print_remarks(const cuda::Compiled& compiled) {
  for (const auto& [kernel, resources] : compiled.resources) {
    if (resources.serialised) {
      std::fprintf(stderr, "kernel %s: NVIDIA's assembler lets its products of warpgroups wait for each other\n",
                   kernel.c_str());
    }
    if (resources.spill_store_bytes == 0) continue;
    std::fprintf(stderr, "kernel %s: %d registers are too few, %lld bytes a thread are spilled\n", kernel.c_str(),
                 resources.registers, static_cast<long long>(resources.spill_store_bytes));
  }
}

/// Runs on the chosen backend; what to print of it.
Result<std::string> execute(Run& run) {
  interp::Environment environment;
  if (!run.backend || FLAGS_check) environment = environment_of(run.arguments, *run.compilation.specialised);
  std::string time;
  if (!run.backend) {
    TC_TRY(text, run_oracle(*run.compilation.specialised, environment, run.arguments));
    time = text;
  } else {
    const api::CompiledKernel kernel = run.cached ? run.cached->kernel : api::kernel_of(run.settings, run.compilation);
    if (run.compilation.compiled) print_remarks(*run.compilation.compiled);
    TC_TRY(text, run_kernel(kernel, *run.backend, run.arguments));
    time = text;
  }
  std::string report;
  if (FLAGS_check) {
    TC_TRY(checked, check_results(*run.compilation.specialised, environment, run.arguments,
                                  run.backend != compile::Backend::kCpu && run.settings.mapping.tf32));
    report = checked;
  }
  if (run.cached) report += run.cached->line;
  return result_lines(run.arguments) + report + time + "\n";
}

/// A line for each tensor that the def updates and no file gives: a '+=' meant as '+=!' adds to chance.
std::string lines_of_random_in_outs(const Arguments& arguments, const InputFiles& files,
                                    const api::Signature& signature) {
  std::string lines;
  for (size_t o = 0; o < signature.results.size(); ++o) {
    const std::string& name = arguments.output_names[o];
    if (signature.results[o].role != api::Role::kInOut || files.contains(name)) continue;
    lines += fmt::format(
        "note: '{0}' is updated, and began with random elements: --inputs={0}=FILE.npy has others, '+=!' "
        "instead of '+=' begins at zero\n",
        name);
  }
  return lines;
}

/// Prints the dump of the pass that --stop_after names.
Result<void> print_stop(const Run& run) {
  TC_TRY(text, compile::dump(run.settings, run.compilation, FLAGS_stop_after));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace

Result<void> run_run(const std::vector<std::string>& files) {
  Run run;
  TC_TRY(backend, backend_of_flags());
  run.backend = backend;
  TC_TRY_VOID(check_flags(backend));
  cpu::set_thread_count(static_cast<int>(FLAGS_threads));
  // Only the oracle wants more of a def than what the file has.
  if (FLAGS_production && !FLAGS_check) return run_production(files[0], *backend);
  TC_TRY(compilation, open_def(files[0]));
  const api::Signature signature = api::signature_of(*compilation.program);
  TC_TRY(input_files, input_files_of_flags(signature));
  TC_TRY(request, request_of_flags(*compilation.program, backend.value_or(api::Backend::kCpu)));
  TC_TRY_VOID(describe_files(input_files, signature, request));
  TC_TRY(settings, api::settings_of(request, *compilation.program));
  run.settings = std::move(settings);
  TC_TRY(gpu, backend == api::Backend::kCuda ? compile::target_of_device(FLAGS_device)
                                             : compile::target_of_arch(FLAGS_arch));
  run.settings.gpu = gpu;
  run.compilation = std::move(compilation);
  const bool with_cache = !FLAGS_cache.empty();
  TC_TRY_VOID(run_to(run.settings, run.compilation, backend && !with_cache ? "" : "specialise"));
  if (!FLAGS_stop_after.empty()) return print_stop(run);

  const api::Specs specs = api::specs_of(run.settings, run.compilation);
  TC_TRY_VOID(check_memory(specs, FLAGS_check || !backend));
  TC_TRY(arguments, make_arguments(*run.compilation.specialised, signature, specs, input_files, request, FLAGS_seed));
  run.arguments = std::move(arguments);
  TC_TRY_VOID(check_output_files(input_files, run.arguments));
  if (with_cache) {
    TC_TRY(kernel, kernel_of_cache(run.settings, run.compilation, request));
    run.cached = kernel;
  }
  TC_TRY(report, execute(run));
  return write_results(run.arguments, lines_of_random_in_outs(run.arguments, input_files, signature) + report);
}

}  // namespace tc::cli
