#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Drops statements whose tensor a later statement sets in full, or starts anew, before any other reads it, and those
/// of temporaries that nobody reads any more:
///     S(m) = float32(C(m))
///     S(m) +=! X(m,k)        ==>   S(m) +=! X(m,k)
/// Sums whose left sides were no indices of their own begin so. Of a specialised Program, after split_quotients().
ir::Program drop_overwritten(ir::Program program);

}  // namespace tc::gpu
