#pragma once

#include <functional>

#include "tc/support/error.h"

namespace tc::tune {

/// A kernel under the stopwatch.
struct Subject {
  /// Runs it so many times, one behind the other, and says how long that took together, in microseconds.
  std::function<Result<double>(int runs)> hot;
  /// Runs it once on data that no cache holds, in microseconds; may be empty.
  std::function<Result<double>()> cold;
};

struct MeasureOptions {
  int rounds = 15;          ///< at most; each is one turn of the candidate, one of the incumbent
  int least_rounds = 3;     ///< even where the time is over
  double turn_us = 1000;    ///< that a turn takes, at least: as many runs as fit
  double limit_us = 400e3;  ///< of all rounds
  double hopeless = 0;      ///< gives up when slower than the incumbent by this factor; 0: never
};

/// Medians over the rounds, of one run, in microseconds.
struct Timing {
  double hot_us = 0;
  double cold_us = 0;       ///< 0 if there is none
  double incumbent_us = 0;  ///< hot, in the same rounds; 0 without one
  double spread = 0;        ///< (third quartile - first) / median of the hot turns
  bool hopeless = false;    ///< given up after the first round
};

/// Warms up, then lets the candidate and the incumbent run in turn, so that a machine that becomes slower or faster
/// does so for both. Errors: the subjects'.
Result<Timing> measure(const Subject& candidate, const Subject* incumbent, const MeasureOptions& options);

}  // namespace tc::tune
