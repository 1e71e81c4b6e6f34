#pragma once

#include <optional>

#include "tc/tile/program.h"

namespace tc::tile {

/// The loop of a kernel whose blocks go through tiles, around all that it does in global memory; null: there is none.
///     for (tile = block_x; tile < tiles; tile += grid) ...
const For* loop_over_tiles(const Kernel& kernel);

/// Such a kernel as one with a block for each tile. Each tile is some block's, once: so what
/// is proved of the blocks' elements and instances holds for the tiles. None for other kernels.
std::optional<Kernel> with_block_for_each_tile(const Kernel& kernel);

}  // namespace tc::tile
