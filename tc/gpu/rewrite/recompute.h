#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Replaces temporaries of cheap values and at least `large` elements by those values, where each reader looks at an
/// element no more than once:
///     centered(n,c) = I(n,c) - mean(c)
///     var(c) +=! centered(n,c) * centered(n,c)   ==>   var(c) +=! (I(n,c) - mean(c)) * (I(n,c) - mean(c))
/// The memory that they took would be written and read again. A float that a reader compares stays: all of its readers
/// are to see the same number. Of a specialised Program.
ir::Program recompute_temporaries(ir::Program program, int64_t large = 1 << 16);

}  // namespace tc::gpu
