#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "tc/tune/executor.h"
#include "tc/tune/messages.h"
#include "tc/tune/search.h"
#include "tc/tune/space.h"

namespace tc::tune {

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

/// What has become of one candidate.
struct Record {
  int generation = 0;
  std::string options{};
  Outcome outcome = Outcome::kDone;
  double us = 0;  ///< of one run, hot; comparable between records: measured in turn with the best of its time
  double cold_us = 0;
  double spread = 0;
  double compile_ms = 0;
  std::string message{};
  bool remembered = false;  ///< known from before: not measured now
};

struct Progress {
  int done = 0;  ///< candidates, of `planned`
  int planned = 0;
  int generation = 0;
  double default_us = 0;  ///< 0: not yet measured
  double best_us = 0;
  std::map<Outcome, int> failed{};
  std::optional<double> seconds_left{};  ///< an estimate, or of the time limit
  const Record* last = nullptr;
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

enum class Ending { kFinished, kExhausted, kTimeLimit, kStopped };

struct Tuned {
  Ending ending = Ending::kFinished;
  std::string best{};  ///< options as text
  double best_us = 0;
  double best_cold_us = 0;
  double default_us = 0;  ///< of the space's first candidate
  double speedup = 1;     ///< default over best, measured in turn at the end
  std::string device{};
  std::vector<Record> history{};  ///< in the order of their ends; `known` ones that were met again are among them
};

/// Searches. The first candidate of the space (what the compiler chooses) is measured first; then generations of
/// candidates: compiled by as many workers as there are slots, measured in turn with the best so far, one on a device
/// at a time. Whatever becomes of a candidate, it costs only that candidate. Errors: the problem is unusable; what the
/// compiler chooses does not work; no worker starts.
Result<Tuned> tune(const Task& task, const TunerOptions& options, Executor& executor);

}  // namespace tc::tune
