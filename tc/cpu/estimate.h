#pragma once

#include <vector>

#include "tc/cpu/strategy.h"
#include "tc/cpu/strategy_groups.h"

namespace tc::cpu {

/// What a def is expected to take, in microseconds, if it is scheduled under these options as these groups. A count,
/// good for comparing options of one def: of each unit the steps of its register tile, of each group what it moves
/// between memory and the caches, divided among the threads that its outermost loop can feed.
double estimated_us(const Analysis& analysis, const std::vector<Group>& groups, const StrategyOptions& options);

/// The same of one group, in nanoseconds.
double estimated_ns(const Analysis& analysis, const Group& group, const StrategyOptions& options);

/// What the estimate of a group is made of, in microseconds.
struct GroupEstimate {
  double us = 0;         ///< all of it, as estimated_ns() has it
  double work_us = 0;    ///< what the busiest core computes and packs
  double memory_us = 0;  ///< bytes that all cores together move, at the rate of memory or of caches
  double wake_us = 0;    ///< until all threads run; 0 where one does
  double bytes = 0;      ///< of tensors that others see too, once each
  double operations = 0;

  /// "work", "memory", or "waking the threads".
  const char* limit() const;
};
GroupEstimate estimate(const Analysis& analysis, const Group& group, const StrategyOptions& options);

/// The rates behind the floor of a group: no code of the options' vectors and threads computes or moves more in a
/// microsecond, by the figures of the estimate.
struct Rates {
  double operations_per_us = 0;
  double bytes_per_us = 0;
};
Rates rates(const StrategyOptions& options, double bytes);

}  // namespace tc::cpu
