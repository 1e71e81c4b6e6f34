#pragma once

#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// Whether the axis slides a window over an operand: neighbours along it read neighbours along a reduction axis.
bool slides(const Contraction& contraction, size_t axis);

/// Results of a block and of a thread along each parallel axis.
struct Tiles {
  std::vector<int64_t> block, thread;
};

/// Tiles of a contraction that slides a window over an operand: of a thread a box of neighbours along the sliding axes,
/// as large as registers allow, that leaves little over; of a block enough along these and the other axes to make some
/// warps. Empty where nothing slides.
std::vector<Tiles> window_tiles(const Contraction& contraction);

}  // namespace tc::gpu
