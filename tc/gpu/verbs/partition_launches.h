#pragma once

#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/poly/scop.h"

namespace tc::gpu {

/// The launches of a scheduled Scop: for each its part of the tree, as a Scop whose schedule is that part alone.
/// Neighbours in the outermost sequence stay together only where one block runs both.
std::vector<poly::Scop> partition_launches(const poly::Scop& scop);

/// Where launches should begin although statements could share loops: numbers of statements of the Scop, ascending. A
/// statement with too few results for the device does not share loops with one that has more, if that has work enough
/// to be worth a launch:
///     s_parts(m, p) +=! ...        8 * 64 blocks
///     s(m) +=! s_parts(m, p)       64: on its own, or it would keep the first on 64 blocks
std::vector<size_t> sensible_cuts(const poly::Scop& scop, const Device& device);

/// Whether some statement of a part has so many instances that a launch of its own hardly counts.
bool is_worth_launches(const poly::Scop& part, const Device& device);

}  // namespace tc::gpu
