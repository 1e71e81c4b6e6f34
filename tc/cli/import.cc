#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tc/api/kernel.h"
#include "tc/api/request.h"
#include "tc/api/tune_data.h"
#include "tc/cache/cache.h"
#include "tc/cache/version.h"
#include "tc/cli/arguments.h"
#include "tc/cli/backend.h"
#include "tc/cli/cache_text.h"
#include "tc/cli/commands.h"
#include "tc/cli/device_run.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/cli/launch_lines.h"
#include "tc/cli/oracle_check.h"
#include "tc/cli/report.h"
#include "tc/compile/cached.h"
#include "tc/compile/interface.h"
#include "tc/cpu/runtime.h"
#include "tc/cuda/nvrtc.h"
#include "tc/ir/canonical.h"

namespace tc::cli {
namespace {

constexpr size_t kMaxTextBytes = 64 << 20;
constexpr char kStandIn[] = "the CPU's strict kernel";
constexpr uint64_t kSeeds = 3;  ///< random inputs that a kernel is compared on
constexpr uint32_t kRuns = 21;  ///< for the time, unless --repeat says more

/// What is to be added.
struct Candidate {
  cache::Key key;
  cache::Entry entry;
};

/// CUDA text by hand, in place of what the compiler prints.
Result<Candidate> by_hand(const compile::Settings& settings, const cache::Problem& problem,
                          compile::Compilation& compilation) {
  TC_TRY(text, read_file(FLAGS_cuda_text, kMaxTextBytes));
  TC_TRY_VOID(compile::run_passes(settings, compilation, "cuda"));
  TC_TRY(nvrtc, cuda::Nvrtc::get());
  TC_TRY(compiled, nvrtc->compile(text, settings.gpu.arch, {.strict = settings.mapping.strict}));
  compilation.cuda_text = text;
  compilation.compiled = std::move(compiled);
  Candidate candidate{compile::key_of(settings, problem), compile::entry_of(settings, compilation, true)};
  TC_TRY(plan, with_launch_lines(std::move(candidate.entry.gpu.plan), text));
  candidate.entry.gpu.plan = std::move(plan);
  candidate.key.options = "by hand " + Digest::of(text).to_string().substr(0, 12);
  candidate.entry.certificate.origin = cache::Certificate::Origin::kHand;
  candidate.entry.certificate.statement = "by hand";
  return candidate;
}

Result<Candidate> compiled(const compile::Settings& settings, const cache::Problem& problem,
                           compile::Compilation& compilation) {
  const bool cpu = settings.backend == api::Backend::kCpu;
  TC_TRY_VOID(compile::run_passes(settings, compilation, cpu ? "object" : "cubin"));
  return Candidate{compile::key_of(settings, problem), compile::entry_of(settings, compilation)};
}

/// Times of runs; the results are those of one run.
Result<std::vector<double>> run(const api::CompiledKernel& kernel, Arguments& arguments, uint32_t repeat) {
  if (kernel.device().device_type == kDLCUDA) {
    TC_TRY(times, time_on_device(kernel, arguments, std::max<uint32_t>(repeat, 2)));
    return times.runs_us;
  }
  std::vector<api::Tensor> scratch;
  for (const api::Tensor& output : arguments.outputs) {
    TC_TRY(copy, dense_copy(output));
    scratch.push_back(std::move(copy));
  }
  TC_TRY_VOID(kernel.run(arguments.inputs, arguments.outputs, arguments.scalars));
  TC_TRY(profile, kernel.profile(arguments.inputs, scratch, arguments.scalars, static_cast<int>(repeat)));
  return profile.runs_us;
}

/// Compares with what stands for the oracle where that would take minutes, on the same random inputs.
Result<std::string> compare_with_stand_in(api::TuneSetup& setup, uint64_t seed, std::span<const api::Tensor> outputs) {
  setup.problem.seed = seed;
  TC_TRY(data, api::make_data(setup));
  TC_TRY(expected, api::expected_results(setup, data));
  const std::string wrong = api::mismatch(setup, outputs, expected);
  if (!wrong.empty()) return fail("check: {}", wrong);
  return fmt::format("check: agrees with {}, as the interpreter would take minutes\n", kStandIn);
}

/// Compares with the oracle on several inputs. Returns the measurement's time: median and half the quartiles' distance.
Result<std::pair<double, double>> validate(const api::CompiledKernel& kernel, api::TuneSetup& setup) {
  const api::Request& request = setup.problem.program.request;
  const ir::Program& specialised = *setup.compilation.specialised;
  std::vector<double> times;
  const api::Specs specs{kernel.inputs(), kernel.outputs()};
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    TC_TRY(arguments, make_arguments(specialised, kernel.signature(), specs, {}, request, FLAGS_seed + seed));
    interp::Environment environment;
    if (!api::has_stand_in(setup)) environment = environment_of(arguments, specialised);
    TC_TRY(runs, run(kernel, arguments, std::max(FLAGS_repeat, kRuns)));
    TC_TRY(report, api::has_stand_in(setup)
                       ? compare_with_stand_in(setup, FLAGS_seed + seed, arguments.outputs)
                       : check_results(specialised, environment, arguments, setup.settings.mapping.tf32));
    if (seed == 0 && !FLAGS_json) std::fwrite(report.data(), 1, report.size(), stdout);
    times = std::move(runs);
  }
  std::ranges::sort(times);
  return std::pair(times[times.size() / 2], (times[times.size() * 3 / 4] - times[times.size() / 4]) / 2);
}

Result<void> add(const std::string& path, const compile::Settings& settings, const compile::Compilation& compilation,
                 const Candidate& candidate, std::pair<double, double> time) {
  TC_TRY(cache, cache::Cache::open(path));
  TC_TRY(device, compile::device_name(settings));
  const std::string text = compile::source_of(*compilation.file, compilation.program->name);
  TC_TRY_VOID(compile::keep_interfaces(*cache, *compilation.program, compilation.concrete(), text));
  TC_TRY_VOID(cache->put(candidate.key, candidate.entry));
  return cache->add({.problem = candidate.key.problem,
                     .options = candidate.key.options,
                     .device = device,
                     .time_us = time.first,
                     .spread_us = time.second,
                     .date = candidate.entry.created,
                     .compiler = cache::compiler_version()});
}

}  // namespace

Result<void> run_cache_import(const std::vector<std::string>& files) {
  TC_TRY(backend, backend_of_flags());
  if (!backend || *backend == api::Backend::kSimulator) return fail("a cache is for the backends cpu and cuda");
  if (*backend == api::Backend::kCpu && !FLAGS_cuda_text.empty()) return fail("'--cuda_text' is for the backend cuda");
  cpu::set_thread_count(static_cast<int>(FLAGS_threads));
  TC_TRY(compilation, open_def(files[1]));
  TC_TRY(request, request_of_flags(*compilation.program, *backend));
  TC_TRY(settings, api::settings_of(request, *compilation.program));
  TC_TRY_VOID(check_sizes(settings, *compilation.program));
  if (*backend == api::Backend::kCuda) {
    TC_TRY(gpu, compile::target_of_device(FLAGS_device));
    settings.gpu = gpu;
  }
  TC_TRY(problem, compile::problem_of(settings, *compilation.program, ir::digest_of(*compilation.program).to_string()));
  TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
  TC_TRY(candidate,
         FLAGS_cuda_text.empty() ? compiled(settings, problem, compilation) : by_hand(settings, problem, compilation));
  TC_TRY(kernel, api::kernel_of(settings, compilation.concrete(), candidate.entry, candidate.key.options));
  TC_TRY_VOID(check_memory({kernel.inputs(), kernel.outputs()}, true));
  const api::TuneProgram program{.text = std::string(compilation.source->text()), .name = files[1], .request = request};
  TC_TRY(setup, api::set_up({.program = program}));
  TC_TRY(time, validate(kernel, setup));
  candidate.entry.certificate.statement +=
      fmt::format("; agrees with {} on {} random inputs", api::has_stand_in(setup) ? kStandIn : "the oracle", kSeeds);
  TC_TRY_VOID(add(files[0], settings, compilation, candidate, time));
  if (FLAGS_json) {
    const std::string id = cache::digest_of(candidate.key).to_string();
    return print_all(json_object({{"id", json_string(id)},
                                  {"options", json_string(candidate.key.options)},
                                  {"time_us", fmt::format("{}", time.first)},
                                  {"spread_us", fmt::format("{}", time.second)}}) +
                     "\n");
  }
  std::printf("%s: added, %s\n", files[0].c_str(), time_text(time.first).c_str());
  return {};
}

}  // namespace tc::cli
