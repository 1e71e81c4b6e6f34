#include "tc/cli/run_kernel.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tc/cache/cache.h"
#include "tc/cli/device_run.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/cli/report.h"
#include "tc/compile/cached.h"
#include "tc/ir/canonical.h"
#include "tc/support/clock.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

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
Result<std::string> run_here(const api::CompiledKernel& kernel, Arguments& arguments, const char* note) {
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

/// "cache: found, options tile: 8 tile: 8"
std::string cache_line(const api::Provenance& provenance, const char* origin) {
  std::string options = provenance.options;
  while (options.ends_with('\n')) options.pop_back();
  std::ranges::replace(options, '\n', ' ');
  return fmt::format("cache: {}, options {}\n", origin, options.empty() ? "chosen by the compiler" : options);
}

void warn(const std::string& sentence) { std::fprintf(stderr, "warning: %s\n", sentence.c_str()); }

Result<api::Engine> production_engine(const Source& source) {
  return api::Engine::production(FLAGS_cache,
                                 {.text = std::string(source.text()), .name = source.name(), .on_warning = warn});
}

/// Whether the file has the kernel that was just compiled: it may be damaged, or not for us to write to.
Result<bool> is_kept(const compile::Settings& settings, const ir::Program& program, const std::string& options) {
  const auto file = cache::Cache::open(FLAGS_cache, {.mode = cache::Mode::kReadOnly});
  if (!file) return false;
  TC_TRY(of_kernel, compile::with_options(settings, options));
  TC_TRY(problem, compile::problem_of(of_kernel, program, ir::digest_of(program).to_string()));
  const auto entry = file.value()->find(compile::key_of(of_kernel, problem));
  return entry && entry->has_value();
}

/// Without a Program nobody knows which elements of an integer input stay within the tensors that they point into.
Result<void> check_integer_inputs(const api::Signature& signature, const InputFiles& files) {
  for (const api::Argument& parameter : signature.parameters) {
    if (parameter.role == api::Role::kScalar || is_float(parameter.type) || parameter.type == ScalarType::kBool)
      continue;
    if (files.contains(parameter.name)) continue;
    return fail(
        "'{}' holds integers, which may be subscripts, and production does not know their bounds; give it by "
        "--inputs",
        parameter.name);
  }
  return {};
}

}  // namespace

Result<void> check_output_files(const InputFiles& files, const Arguments& arguments) {
  if (FLAGS_output_dir.empty()) return {};
  for (const std::string& result : arguments.output_names) {
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

Result<std::string> run_kernel(const api::CompiledKernel& kernel, api::Backend backend, Arguments& arguments) {
  if (backend == api::Backend::kCuda) return run_on_device(kernel, arguments, FLAGS_repeat);
  return run_here(kernel, arguments, backend == api::Backend::kSimulator ? " (simulator)" : "");
}

std::string result_lines(const Arguments& arguments) {
  std::string lines;
  for (size_t o = 0; o < arguments.outputs.size(); ++o) {
    lines += result_line(arguments.output_names[o], arguments.outputs[o]) + "\n";
  }
  return lines;
}

Result<void> write_results(const Arguments& arguments, const std::string& report) {
  if (FLAGS_output_dir.empty()) return print_all(report);
  std::vector<std::pair<std::string, const api::Tensor*>> results;
  for (size_t o = 0; o < arguments.outputs.size(); ++o) {
    results.emplace_back(arguments.output_names[o], &arguments.outputs[o]);
  }
  return write_tensors(FLAGS_output_dir, results, report);
}

Result<CachedKernel> kernel_of_cache(const compile::Settings& settings, const compile::Compilation& def,
                                     const api::Request& request) {
  const Source& source = *def.source;
  if (FLAGS_production) {
    TC_TRY(engine, production_engine(source));
    TC_TRY(kernel, engine.compile(request));
    return CachedKernel{kernel, cache_line(kernel.provenance(), "found")};
  }
  api::EngineOptions options{
      .cache = FLAGS_cache, .nearest = FLAGS_nearest, .keep_text = FLAGS_keep_text, .on_warning = warn};
  if (FLAGS_reprove) options.reprove = api::Reprove::kAlways;
  TC_TRY(engine, api::Engine::create(source.text(), source.name(), options));
  TC_TRY(kernel, engine.compile(request));
  if (kernel.provenance().from_file) return CachedKernel{kernel, cache_line(kernel.provenance(), "found")};
  TC_TRY(kept, is_kept(settings, *def.program, kernel.provenance().options));
  return CachedKernel{kernel, cache_line(kernel.provenance(), kept ? "compiled and added" : "compiled, not added")};
}

Result<void> run_production(const std::string& path, api::Backend backend) {
  TC_TRY(source, read_source(path));
  TC_TRY(engine, production_engine(*source));
  TC_TRY(signature, engine.signature(FLAGS_entry));
  TC_TRY(files, input_files_of_flags(signature));
  TC_TRY_VOID(check_integer_inputs(signature, files));
  TC_TRY(request, request_of_flags(signature.entry, signature.sizes, backend));
  TC_TRY(types, types_of_flags());
  const std::string own = signature.entry + ".";
  for (const auto& [name, type] : types) {
    if (name.starts_with(own) || name.find('.') == std::string::npos) {
      request.types[name.starts_with(own) ? name.substr(own.size()) : name] = type;
    }
  }
  TC_TRY_VOID(describe_files(files, signature, request));
  TC_TRY(kernel, engine.compile(request));
  const api::Specs specs{kernel.inputs(), kernel.outputs()};
  TC_TRY_VOID(check_memory(specs, false));
  TC_TRY(arguments, make_arguments(SubscriptRanges(), signature, specs, files, request, FLAGS_seed));
  TC_TRY_VOID(check_output_files(files, arguments));
  TC_TRY(time, run_kernel(kernel, backend, arguments));
  return write_results(arguments, result_lines(arguments) + cache_line(kernel.provenance(), "found") + time + "\n");
}

}  // namespace tc::cli
