#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "tc/api/call.h"
#include "tc/api/kernel.h"
#include "tc/api/oracle.h"
#include "tc/api/request.h"
#include "tc/cli/arguments.h"
#include "tc/cli/backend.h"
#include "tc/cli/commands.h"
#include "tc/cli/device_run.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/cli/oracle_check.h"
#include "tc/cli/report.h"
#include "tc/cpu/runtime.h"
#include "tc/interp/compare.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

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
    if (!FLAGS_stop_after.empty()) return fail("'--cache' and '--stop_after' exclude each other");
    if (FLAGS_time_passes) return fail("'--cache' and '--time_passes' exclude each other");
    if (!backend || backend == api::Backend::kSimulator) return fail("'--cache' is for the backends cpu and cuda");
  }
  if (FLAGS_threads > 4096) return fail("'--threads' is {}; at most 4096 are used", FLAGS_threads);
  return {};
}

/// A result that would replace a file that it was computed from is refused.
Result<void> check_output_files(const InputFiles& files, const std::vector<std::string>& results) {
  if (FLAGS_output_dir.empty()) return {};
  for (const std::string& result : results) {
    const std::filesystem::path target = std::filesystem::path(FLAGS_output_dir) / (result + ".npy");
    for (const auto& [name, path] : files) {
      std::error_code error;
      if (std::filesystem::equivalent(target, path, error)) {
        return fail("the result '{}' would replace the file '{}' that '{}' is read from; choose another --output_dir",
                    result, path, name);
      }
    }
  }
  return {};
}

/// Says how far a long series of runs is, at most once a second.
class Progress {
 public:
  void show(uint32_t done, uint32_t of) {
    if (us_since(last_) < 1e6 || !::isatty(STDERR_FILENO)) return;
    last_ = Clock::now();
    std::fprintf(stderr, "run %u of %u\n", done, of);
  }

 private:
  Clock::time_point last_ = Clock::now();
};

/// Here, on the CPU. Runs once for the results, and again for the time on tensors of which nothing is kept.
Result<std::string> run_kernel(const api::CompiledKernel& kernel, Arguments& arguments, const char* note) {
  std::vector<api::Tensor> scratch;
  if (FLAGS_repeat > 1) {
    for (const api::Tensor& output : arguments.outputs) {
      TC_TRY(copy, dense_copy(output));
      scratch.push_back(std::move(copy));
    }
  }
  const Clock::time_point begin = Clock::now();
  TC_TRY_VOID(kernel.run(arguments.inputs, arguments.outputs, arguments.scalars));
  const double first_us = us_since(begin);
  if (FLAGS_repeat == 1) return fmt::format("time: {}{}", time_text(first_us), note);
  Progress progress;
  std::vector<double> runs_us;
  for (uint32_t i = 0; i < FLAGS_repeat; ++i) {
    const Clock::time_point start = Clock::now();
    TC_TRY_VOID(kernel.run(arguments.inputs, scratch, arguments.scalars));
    runs_us.push_back(us_since(start));
    progress.show(i + 1, FLAGS_repeat);
  }
  return series_text(std::move(runs_us), first_us);
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
  std::optional<api::CompiledKernel> cached;  ///< with --cache: the kernel, found or compiled
};

/// The kernel of a request by way of the cache of --cache.
Result<api::CompiledKernel> kernel_of_cache(const Source& source, const api::Request& request) {
  const auto warn = [](const std::string& sentence) { std::fprintf(stderr, "warning: %s\n", sentence.c_str()); };
  if (FLAGS_production) {
    const api::ProductionOptions options{.text = std::string(source.text()), .name = source.name(), .on_warning = warn};
    TC_TRY(engine, api::Engine::production(FLAGS_cache, options));
    return engine.compile(request);
  }
  api::EngineOptions options{
      .cache = FLAGS_cache, .nearest = FLAGS_nearest, .keep_text = FLAGS_keep_text, .on_warning = warn};
  if (FLAGS_reprove) options.reprove = api::Reprove::kAlways;
  TC_TRY(engine, api::Engine::create(source.text(), source.name(), options));
  return engine.compile(request);
}

/// "cache: found, options tile: 8 tile: 8"
std::string cache_line(const api::Provenance& provenance) {
  std::string options = provenance.options;
  while (options.ends_with('\n')) options.pop_back();
  std::ranges::replace(options, '\n', ' ');
  return fmt::format("cache: {}, options {}\n", provenance.from_file ? "found" : "compiled and added",
                     options.empty() ? "chosen by the compiler" : options);
}

/// Registers that a kernel has too few of cost it memory traffic that its text does not show.
void print_spills(const cuda::Compiled& compiled) {
  for (const auto& [kernel, resources] : compiled.resources) {
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
    const api::CompiledKernel kernel = run.cached ? *run.cached : api::kernel_of(run.settings, run.compilation);
    const bool simulate = run.backend == api::Backend::kSimulator;
    if (run.compilation.compiled) print_spills(*run.compilation.compiled);
    TC_TRY(text, run.backend == api::Backend::kCuda
                     ? run_on_device(kernel, run.arguments, FLAGS_repeat)
                     : run_kernel(kernel, run.arguments, simulate ? " (simulator)" : ""));
    time = text;
  }
  std::string report;
  if (FLAGS_check) {
    TC_TRY(checked, check_results(*run.compilation.specialised, environment, run.arguments));
    report = checked;
  }
  std::string lines;
  for (size_t o = 0; o < run.arguments.outputs.size(); ++o) {
    lines += result_line(run.arguments.output_names[o], run.arguments.outputs[o]) + "\n";
  }
  if (run.cached) report += cache_line(run.cached->provenance());
  return lines + report + time + "\n";
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

  const api::Specs specs = api::specs_of(*run.compilation.specialised, run.settings.layouts);
  TC_TRY_VOID(check_memory(specs, FLAGS_check || !backend));
  TC_TRY(arguments, make_arguments(*run.compilation.specialised, signature, specs, input_files, request, FLAGS_seed));
  run.arguments = std::move(arguments);
  TC_TRY_VOID(check_output_files(input_files, run.arguments.output_names));
  if (with_cache) {
    TC_TRY(kernel, kernel_of_cache(*run.compilation.source, request));
    run.cached = kernel;
  }
  TC_TRY(report, execute(run));
  if (!FLAGS_output_dir.empty()) {
    std::vector<std::pair<std::string, const api::Tensor*>> results;
    for (size_t o = 0; o < run.arguments.outputs.size(); ++o) {
      results.emplace_back(run.arguments.output_names[o], &run.arguments.outputs[o]);
    }
    TC_TRY_VOID(write_tensors(FLAGS_output_dir, results));
  }
  std::fwrite(report.data(), 1, report.size(), stdout);
  return {};
}

}  // namespace tc::cli
