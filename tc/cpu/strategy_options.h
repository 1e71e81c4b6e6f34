#pragma once

#include "tc/cpu/strategy.h"
#include "tc/cpu/strategy_groups.h"
#include "tc/cpu/strategy_plan.h"

/// What StrategyOptions say to the strategy's parts.
namespace tc::cpu {

/// Of the units of a group whose units share so many loops: what the tile has beyond these is the register tile.
UnitOptions unit_options(const Analysis& analysis, const StrategyOptions& options, size_t shared);
GroupOptions group_options(const StrategyOptions& options);

}  // namespace tc::cpu
