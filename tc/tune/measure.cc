#include "tc/tune/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "tc/support/result.h"

namespace tc::tune {
namespace {

using Clock = std::chrono::steady_clock;

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

/// One subject's turns.
struct Turns {
  const Subject& subject;
  int runs = 1;  ///< of a turn
  std::vector<double> us{};

  /// Runs once for what only a first run costs, then finds out how many runs make a turn.
  Result<double> warm_up(double turn_us) {
    TC_TRY_VOID(subject.hot(1));
    TC_TRY(once_us, subject.hot(1));
    runs = static_cast<int>(std::clamp(std::ceil(turn_us / std::max(once_us, 1e-3)), 1.0, 1e5));
    if (runs > 1) {
      TC_TRY(total_us, subject.hot(std::min(runs, 10)));
      const double each_us = total_us / std::min(runs, 10);
      runs = static_cast<int>(std::clamp(std::ceil(turn_us / std::max(each_us, 1e-3)), 1.0, 1e5));
      return each_us;
    }
    return once_us;
  }
  Result<void> take() {
    TC_TRY(total_us, subject.hot(runs));
    us.push_back(total_us / runs);
    return {};
  }
};

}  // namespace

Result<Timing> measure(const Subject& candidate, const Subject* incumbent, const MeasureOptions& options) {
  Turns ours{candidate};
  Turns theirs{incumbent ? *incumbent : candidate};
  TC_TRY(first_us, ours.warm_up(options.turn_us));
  if (incumbent) {
    TC_TRY(incumbent_us, theirs.warm_up(options.turn_us));
    if (options.hopeless > 0 && first_us > options.hopeless * incumbent_us) {
      TC_TRY(again_us, candidate.hot(1));
      if (again_us > options.hopeless * incumbent_us) {
        return Timing{.hot_us = std::min(first_us, again_us), .incumbent_us = incumbent_us, .hopeless = true};
      }
    }
  }
  std::vector<double> cold_us;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(options.limit_us));
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= options.least_rounds && Clock::now() > end) break;
    TC_TRY_VOID(ours.take());
    if (incumbent) TC_TRY_VOID(theirs.take());
    if (!candidate.cold) continue;
    TC_TRY(cold, candidate.cold());
    cold_us.push_back(cold);
  }
  Timing timing{.hot_us = median(ours.us), .cold_us = median(cold_us)};
  if (incumbent) timing.incumbent_us = median(theirs.us);
  std::ranges::sort(ours.us);
  timing.spread = (quantile(ours.us, 0.75) - quantile(ours.us, 0.25)) / timing.hot_us;
  return timing;
}

}  // namespace tc::tune
