#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/kernel.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Maps a part of a scheduled tree to blocks and threads.
///
/// The outermost band is tiled; its coincident tile loops go to up to three block dimensions, outermost to x. Points go
/// to up to three thread dimensions, innermost to x: those of the outermost band, or, where bands below it have
/// coincident members enough to fill a warp, those of each of these, with the outermost band's points run by the whole
/// block. Grid and block do not depend on the sizes of tiles: an axis with more iterations than members deals them out.
/// What has no coincident member is run by one thread. With `steps`, blocks go through reductions step by step
/// (verbs/steps.h), of the sizes of tiles that are left over for them.
/// With options for the points of a tile, these are scheduled by them before they go to threads (verbs/intra_tile.h).
/// Before: schedule(). `scop.schedule` is the kernel's part of the tree.
Kernel bind(const poly::Scop& scop, const options::MappingOptions& options, const Device& device, bool steps = false);

}  // namespace tc::gpu
