#pragma once

#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// What is wrong with shared tensors that lie where others do (Tensor::place_of). A tensor may do so when a barrier of
/// the block, which is in no loop or branch, stands behind all that touches those others, and before all that touches
/// it. Of asynchronous accesses to the others, boxes of a ring and products of warpgroups are allowed: readers of a
/// ring await all that comes, each product is waited for (rings.h), and none of these waits stands behind the barrier.
std::vector<std::string> place_faults(const Kernel& kernel);

}  // namespace tc::tile
