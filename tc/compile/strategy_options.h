#pragma once

#include "tc/compile/pipeline.h"
#include "tc/cpu/strategy.h"

namespace tc::compile {

/// What the pass "schedule" of the CPU is told. Errors: a target that is none.
Result<cpu::StrategyOptions> strategy_options(const Settings& settings);

}  // namespace tc::compile
