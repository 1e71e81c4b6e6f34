#pragma once

#include <Halide.h>

#include "tc/ir/names.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Takes a choice between reads out of an unrolled loop over neighbours that all choose alike:
///     for v in 0:4 unrolled                               if 4 * t < 64
///       y(v) = 4 * t + v < 64 ? a(4 * t + v) : 0    ==>     for v in 0:4 unrolled
///                                                             y(v) = a(4 * t + v)
///                                                         else
///                                                           for w in 0:4 unrolled
///                                                             y(w) = 0
/// so that each branch may be done by vectors. Conditions are comparisons of index arithmetic, with division and
/// remainders; `multiples` says what is known of other variables. Null if there is no such choice, or the body is more
/// than stores. The loop begins at 0 and has `elements` iterations, one apart.
tile::NodePtr hoist_choice(const tile::For& loop, int64_t elements,
                           const Halide::Internal::Scope<Halide::Internal::ModulusRemainder>& multiples,
                           ir::Names& names);

}  // namespace tc::gpu
