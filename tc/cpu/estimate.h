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

}  // namespace tc::cpu
