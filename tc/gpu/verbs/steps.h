#pragma once

#include <cstdint>
#include <span>

#include "tc/poly/band_ref.h"

namespace tc::gpu {

/// Lets all threads of a block go through a reduction together, a step at a time, so that what a step reads can be held
/// in shared memory: the loops over steps come out of the point loops.
///     band [i%8, j%32]               sequence
///       sequence                       S0_init: band [i%8, j%32]
///         S0_init               ==>    S0: band [k - k%16]
///         S0: band [k]                     band [i%8, j%32]
///                                            band [k%16]
/// `points` is the band of a tile's points, whose members are coincident; `sizes` are those of a step, outermost member
/// first, and where they are missing a step has up to 32 iterations. The Scop as it was where that is not legal, there
/// is no reduction, or one step is all of it.
poly::Scop step_reductions(const poly::Scop& scop, const poly::BandRef& points, std::span<const int64_t> sizes);

}  // namespace tc::gpu
