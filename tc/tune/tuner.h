#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "tc/tune/executor.h"
#include "tc/tune/result.h"
#include "tc/tune/search.h"
#include "tc/tune/space.h"

namespace tc::tune {

/// The greatest drift of a machine that measurements are corrected for; what differs by more is measured again, and is
/// then taken as it is. So a time can be confirmed by running the kernel alone, within this factor.
inline constexpr double kMostDrift = 1.5;

struct TunerOptions {
  SearchKind search = SearchKind::kGenetic;
  int generations = 10;
  int population = 16;  ///< candidates that are measured in a generation
  int elites = 4;       ///< of all before, that are parents beside the last generation
  GeneticOptions genetic{};
  uint64_t seed = 1;
  int compile_slots = 1;        ///< compilations at once
  std::vector<int> devices{0};  ///< measurements at once, one on each
  bool exclusive = false;       ///< nothing compiles while something is measured: they share the processor
  double time_limit_s = 0;      ///< 0: none
  std::chrono::milliseconds compile_limit{60'000};
  std::chrono::milliseconds measure_limit{120'000};
  double hopeless = 2;     ///< MeasureOptions::hopeless
  std::stop_token stop{};  ///< ends the search; the best so far is the result
};

/// What a run is given beside its options.
struct Task {
  std::string problem{};  ///< of Job
  Space space{};
  std::vector<std::string> seeds{};  ///< options as text that the first generation tries, best first
  std::vector<Record> known{};       ///< what an earlier run has measured
  /// Why options cannot work, found without compiling them; empty if they may.
  std::function<std::string(const std::string& options)> infeasible{};
  /// After each candidate, from the calling thread.
  std::function<void(const Progress&)> on_progress{};
};

/// Searches. The first candidate of the space (what the compiler chooses) is measured first; then generations of
/// candidates: compiled by as many workers as there are slots, measured in turn with the best so far, one on a device
/// at a time. Whatever becomes of a candidate, it costs only that candidate. Errors: the problem is unusable; what the
/// compiler chooses does not work; no worker starts.
Result<Tuned> tune(const Task& task, const TunerOptions& options, Executor& executor);

}  // namespace tc::tune
