#pragma once

#include "tc/options/options.h"
#include "tc/poly/band_ref.h"

namespace tc::gpu {

/// Schedules the points of a tile by options of their own: which statements share loops there is asked again, with the
/// dependences that stay within a tile (Tensor Comprehensions, section 4.2: intra-tile schedules).
///     band [i/32, j/32]              band [i/32, j/32]
///       band [i%32, j%32]              sequence
///         sequence S0, S1      ==>       S0: band [i%32, j%32]          with Fusion::kMin
///                                        S1: band [i%32, j%32]
/// `points` is the band of the points, right below the tile band; `before` is the band that was tiled. The Scop as it
/// was where the context's budget ends.
poly::Scop schedule_points(const poly::Scop& scop, const poly::BandRef& points, const isl::multi_union_pw_aff& before,
                           const options::SchedulerOptions& options);

}  // namespace tc::gpu
