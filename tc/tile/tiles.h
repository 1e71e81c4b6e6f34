#pragma once

#include <optional>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// The loops of a kernel whose blocks go through tiles, around all that it does in global memory. They have one
/// variable and lie in no other loop. Different threads may have different ones. Empty: there are none.
///     for (tile = block_x; tile < tiles; tile += grid) ...
std::vector<const For*> loops_over_tiles(const Kernel& kernel);

/// Such a kernel as one with a block for each tile. Each tile is some block's, once: so what
/// is proved of the blocks' elements and instances holds for the tiles. None for other kernels.
std::optional<Kernel> with_block_for_each_tile(const Kernel& kernel);

}  // namespace tc::tile
