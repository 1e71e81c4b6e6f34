#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/random/differential.h"

namespace tc::testing {

/// What came of many seeds.
struct Summary {
  std::vector<std::string> reports;  ///< of the seeds whose outcome was not kAgrees, at most ten or so
  int64_t seeds = 0;                 ///< that ran to their end
  int64_t elements = 0;
  int64_t undecidable = 0;
};

struct SeedLimits {
  unsigned seconds_each = 120;                          ///< for one seed
  double seconds = 1e9;                                 ///< after which no further seed begins
  int64_t processes = 0;                                ///< 0: as many as there are cores
  std::function<void(const Summary&)> after_each = {};  ///< called whenever a seed has ended; absent: nothing
};

/// Runs the seeds [begin, begin + count) in several processes. Where one dies, or takes too long for a seed, the report
/// names the seed and says describe(seed); the others go on. Gives up after ten reports, for they are long. To be
/// called while this process has one thread.
Summary run_seeds(int64_t begin, int64_t count, const std::function<Outcome(uint64_t seed)>& run,
                  const std::function<std::string(uint64_t seed)>& describe, const SeedLimits& limits = {});

}  // namespace tc::testing
