#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Replaces large temporaries of cheap values by those values, where each reader looks at an element no more than once:
///     centered(n,c) = I(n,c) - mean(c)
///     var(c) +=! centered(n,c) * centered(n,c)   ==>   var(c) +=! (I(n,c) - mean(c)) * (I(n,c) - mean(c))
/// The memory that they took would be written and read again. Of a specialised Program.
ir::Program recompute_temporaries(ir::Program program);

}  // namespace tc::gpu
