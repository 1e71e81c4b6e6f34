#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tc/api/device_lock.h"
#include "tc/api/floor.h"
#include "tc/api/kernel.h"
#include "tc/api/tune.h"
#include "tc/api/tune_bench.h"
#include "tc/cache/records.h"
#include "tc/compile/cached.h"
#include "tc/ir/canonical.h"
#include "tc/support/check.h"
#include "tc/support/result.h"
#include "tc/tune/messages.h"
#include "tc/tune/serve.h"
#include "tc/tune/worker_pool.h"

namespace tc::api {
namespace {

/// The exit code of a worker whose device is lost.
constexpr int kDeviceLost = 4;

using tune::Outcome;
using tune::Reply;

std::string sentence_of(const Error& error) { return error.diagnostics().at(0).message; }

Reply failed(Outcome outcome, std::string message) { return {.outcome = outcome, .message = std::move(message)}; }

Reply refused(const Error& error) {
  return failed(error.kind() == ErrorKind::kInternal ? Outcome::kFault : Outcome::kRefused, sentence_of(error));
}

Result<compile::Settings> with_all_options(compile::Settings settings, const std::string& text) {
  if (settings.backend == Backend::kCpu) {
    TC_TRY(options, options::cpu_options_from_text(text));
    settings.options = options;
  } else {
    TC_TRY(options, options::mapping_options_from_text(text));
    settings.mapping = options;
  }
  return settings;
}

/// The last pass before code is loaded.
const char* last_pass(Backend backend) {
  return backend == Backend::kCpu ? "object" : backend == Backend::kCuda ? "cubin" : "tile";
}

/// What a worker keeps between the jobs of one problem.
class Workbench {
 public:
  static Result<std::unique_ptr<Workbench>> open(const std::string& bytes) {
    const std::optional<TuneProblem> problem = tune_problem_from(bytes);
    if (!problem) return fail("a job whose problem cannot be read");
    TC_TRY(setup, set_up(*problem));
    return std::unique_ptr<Workbench>(new Workbench(std::move(setup)));
  }

  Reply compile(const std::string& options) {
    const auto begin = std::chrono::steady_clock::now();
    Result<compile::Settings> settings = with_all_options(setup_.settings, options);
    if (!settings) return refused(settings.error());
    const Result<compile::Compilation> compiled = run_compiler(*settings);
    if (!compiled) return refused(compiled.error());
    Reply reply;
    if (settings->backend != Backend::kSimulator) {
      const ir::Program& program = *setup_.compilation.program;
      const Result<cache::Problem> problem =
          compile::problem_of(*settings, program, ir::digest_of(program).to_string());
      if (!problem) return refused(problem.error());
      reply.artifact =
          cache::to_bytes(compile::key_of(*settings, *problem), compile::entry_of(*settings, *compiled, true));
    }
    reply.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return reply;
  }

  Reply measure(const std::string& options, const tune::MeasureJob& job) {
    if (auto ready = prepare(job.device); !ready) return failed(Outcome::kUnusable, sentence_of(ready.error()));
    Result<Candidate> candidate = load(options, job.artifact, job.device);
    if (!candidate) return refused(candidate.error());
    const Result<std::string> wrong = bench_->check(*candidate);
    if (!wrong) return refused_on_device(wrong.error());
    if (!wrong->empty()) return failed(Outcome::kWrong, *wrong);
    if (job.has_incumbent && incumbent_options_ != job.incumbent_options) {
      Result<Candidate> incumbent = load(job.incumbent_options, job.incumbent_artifact, job.device);
      if (!incumbent) return failed(Outcome::kUnusable, sentence_of(incumbent.error()));
      incumbent_ = std::move(*incumbent);
      incumbent_options_ = job.incumbent_options;
    }
    const DeviceLock lock(setup_.settings.backend, job.device);
    tune::Subject theirs;
    if (job.has_incumbent) theirs = bench_->subject(*incumbent_);
    const Result<tune::Timing> timing =
        tune::measure(bench_->subject(*candidate), job.has_incumbent ? &theirs : nullptr, measure_options(job));
    if (!timing) return refused_on_device(timing.error());
    return {.outcome = timing->hopeless ? Outcome::kHopeless : Outcome::kDone,
            .hot_us = timing->hot_us,
            .cold_us = timing->cold_us,
            .incumbent_us = timing->incumbent_us,
            .spread = timing->spread,
            .device = device_,
            .floor_us = floor_us(*setup_.compilation.specialised, setup_.settings)};
  }

 private:
  explicit Workbench(TuneSetup setup) : setup_(std::move(setup)) {}

  /// What a run failed of. After an error that has cost the device's context only another process can go on.
  Reply refused_on_device(const Error& error) const {
    if (!bench_->is_lost()) return refused(error);
    std::fprintf(stderr, "%s\n", sentence_of(error).c_str());
    std::fflush(stderr);
    std::_Exit(kDeviceLost);
  }

  tune::MeasureOptions measure_options(const tune::MeasureJob& job) const {
    // What the simulator is asked for a second time it knows.
    if (setup_.settings.backend == Backend::kSimulator) return {.rounds = 1, .hopeless = job.hopeless};
    return {.hopeless = job.hopeless};
  }

  Result<void> prepare(int device) {
    if (bench_ && bench_device_ == device) return {};
    bench_.reset();
    incumbent_.reset();
    incumbent_options_.reset();
    setup_.settings.gpu.ordinal = device;
    if (setup_.settings.backend == Backend::kSimulator) {
      device_ = "simulator";
    } else {
      TC_TRY(name, compile::device_name(setup_.settings));
      device_ = name;
    }
    TC_TRY(bench, make_bench(setup_, device));
    bench_ = std::move(bench);
    bench_device_ = device;
    return {};
  }

  Result<compile::Compilation> run_compiler(const compile::Settings& settings) const {
    compile::Compilation compilation = setup_.compilation;
    try {
      TC_TRY_VOID(compile::run_passes(settings, compilation, last_pass(settings.backend)));
    } catch (const InternalError& fault) {
      return tl::unexpected(Error(fault.what()).with_kind(ErrorKind::kInternal));
    }
    return compilation;
  }

  /// Loads an artifact, or compiles where there is none.
  Result<Candidate> load(const std::string& options, const std::string& artifact, int device) const {
    TC_TRY(settings, with_all_options(setup_.settings, options));
    settings.gpu.ordinal = device;
    Candidate candidate{.settings = settings};
    if (settings.backend == Backend::kSimulator) {
      TC_TRY(compiled, run_compiler(settings));
      candidate.simulated = std::make_shared<const tile::Program>(compiled.mapping->program);
      return candidate;
    }
    cache::Entry entry;
    if (artifact.empty()) {
      TC_TRY(compiled, run_compiler(settings));
      entry = compile::entry_of(settings, compiled);
    } else {
      const std::optional<cache::StoredEntry> stored = cache::entry_from(artifact);
      if (!stored) return fail("an artifact that cannot be read");
      entry = stored->entry;
    }
    TC_TRY(kernel, kernel_of(settings, setup_.compilation.concrete(), entry, compile::options_text(settings)));
    candidate.kernel = kernel;
    return candidate;
  }

  TuneSetup setup_;
  std::unique_ptr<Bench> bench_;
  int bench_device_ = -1;
  std::string device_;
  std::optional<Candidate> incumbent_;
  std::optional<std::string> incumbent_options_;
};

/// Does jobs; keeps the workbench of the last problem.
class Bencher {
 public:
  std::string answer(const std::string& bytes) {
    const std::optional<tune::Job> job = tune::job_from(bytes);
    if (!job) return to_bytes(failed(Outcome::kUnusable, "a job that cannot be read"));
    try {
      return to_bytes(reply_to(*job));
    } catch (const InternalError& fault) {
      return to_bytes(failed(Outcome::kFault, fault.what()));
    } catch (const std::bad_alloc&) {
      return to_bytes(failed(Outcome::kRefused, "out of memory"));
    }
  }

 private:
  Reply reply_to(const tune::Job& job) {
    if (!bench_ || problem_ != job.problem) {
      bench_.reset();
      Result<std::unique_ptr<Workbench>> bench = Workbench::open(job.problem);
      if (!bench) return failed(Outcome::kUnusable, bench.error().to_string());
      bench_ = std::move(*bench);
      problem_ = job.problem;
    }
    const auto* measure = std::get_if<tune::MeasureJob>(&job.work);
    return measure ? bench_->measure(job.options, *measure) : bench_->compile(job.options);
  }

  std::string problem_;
  std::unique_ptr<Workbench> bench_;
};

}  // namespace

std::string run_tune_job(const std::string& job) {
  static Bencher bencher;
  return bencher.answer(job);
}

Result<tune::Executor::Done> run_tune_job_apart(const tune::Executor::Job& job,
                                                const std::vector<std::string>& worker) {
  // A worker is killed when the thread that started it ends: each thread has its own.
  thread_local std::map<std::vector<std::string>, tune::WorkerPool> pools;
  tune::WorkerPool& pool = pools.try_emplace(worker, worker).first->second;
  TC_TRY_VOID(pool.submit({.id = job.id, .bytes = job.bytes, .limit = job.limit}));
  while (true) {
    TC_TRY(done, pool.wait(std::chrono::minutes(1)));
    if (!done.empty()) return std::move(done.front());
  }
}

int serve_tune_jobs() { return tune::serve(run_tune_job); }

}  // namespace tc::api
