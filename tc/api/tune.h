#pragma once

/// Searching for the fastest options of a kernel.
///
///     tc::api::TuneProgram program{.text = text, .request = {.entry = "mm", .sizes = {{"M", 512}, {"N", 512}, {"K",
///     512}}}}; auto tuned = tc::api::tune(program, {}, {.cache = "kernels.tc-cache"}); if (tuned) std::cout <<
///     tuned->best << tuned->speedup;
///
/// Candidates are compiled and measured by worker processes (`tensorc worker`), so that what one does costs only that
/// one; or by an engine of the caller's, which runs run_tune_job() wherever it likes.

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "tc/api/tc.h"
#include "tc/tune/executor.h"
#include "tc/tune/result.h"

namespace tc::api {

/// What is tuned: a request for a def of a text. Of the request's options, `strict` and `check_bounds` hold for every
/// candidate, and the others are among the first that are tried.
struct TuneProgram {
  std::string text{};
  std::string name = "tc";  ///< for messages
  Request request{};        ///< all sizes, and a value for every scalar
};

struct TuneConfig {
  tune::SearchKind search = tune::SearchKind::kGenetic;
  int generations = 10;
  int population = 16;          ///< candidates of a generation
  int elites = 4;               ///< the best of all before, that are parents beside the last generation
  double crossover_rate = 0.8;  ///< children of three parents; the others have one
  double mutation_rate = 0.1;   ///< of each parameter of a child
  uint64_t seed = 1;            ///< of the search and of random data
  int threads = 0;              ///< compilations at once; 0: as many as there are cores
  std::vector<int> devices{};   ///< GPUs, each once, that measure, all like the first; empty: the request's
  double time_limit_s = 0;      ///< 0: none
  double compile_limit_s = 60;  ///< of one candidate
  double measure_limit_s = 60;  ///< of one candidate; ten times that of the first, which waits for the oracle
  double hopeless = 2;          ///< slower than the best by this factor: measured roughly and given up
  /// A cache's file. It gets every measurement; those of earlier runs with this compiler on this device are not made
  /// again, the best known options (of this shape, and of those next to it) are tried first, and the best kernel is
  /// kept in it. Empty: none.
  std::string cache{};
  /// The command that starts a worker. Empty: `tensorc worker`, the tool beside this library or else in PATH.
  std::vector<std::string> worker{};
  std::shared_ptr<tune::Executor> executor{};  ///< runs jobs in place of workers
  /// Where the oracle's results and the caller's tensors are put for workers to read; must exist, and be reachable from
  /// wherever they run; one search at a time. Empty: a folder that is removed at the end.
  std::string folder{};
  std::stop_token stop{};  ///< the best so far is the result
};

/// Told after each candidate, in the calling thread.
using TuneCallback = std::function<void(const tune::Progress&)>;

/// Tunes. `inputs` are the def's tensor parameters, on which candidates are measured and compared with the oracle;
/// none: random data, as `tensorc run` makes them. Old elements of in-outs are random, those of other results zero. The
/// history's options and the best are text, with `strict` and `check_bounds`.
///
/// The oracle is the interpreter, once; where that would take minutes (more than 2^29 instances of statements), the
/// results of the CPU's strict kernel without tuned options stand for it, its sums accumulated in float64, within a
/// bound for the type. Errors: the program's or the request's; tensors that do not fit it; what the compiler chooses by
/// itself does not work; the cache's; no worker starts. A cache that cannot be written any more costs no result:
/// Tuned::not_kept.
Result<tune::Tuned> tune(const TuneProgram& program, std::span<const Tensor> inputs, const TuneConfig& config = {},
                         const TuneCallback& callback = {});

/// Does a job of an executor (Executor::Job::bytes) in this process, and returns its reply. May be called from one
/// thread at a time. What the job's kernel does to the process, it does to this one.
std::string run_tune_job(const std::string& job);

/// The same in a worker process, which the first job of a thread starts (by `worker`, a command as TuneConfig's) and
/// which serves the thread's later ones; it ends with the thread. So a job costs itself alone, and is lost as one that
/// hangs when it takes longer than its limit; where the executor's jobs run cannot see that. The job's device says
/// nothing here. Errors: no worker starts.
Result<tune::Executor::Done> run_tune_job_apart(const tune::Executor::Job& job, const std::vector<std::string>& worker);

/// A worker's life on standard input and output; what `tensorc worker` runs. Returns the process's exit code.
int serve_tune_jobs();

}  // namespace tc::api
