#pragma once

#include "tc/gpu/strategy/map.h"

namespace tc::gpu {

/// Puts neighbouring launches into one where the later one reads a temporary of the earlier one at elements near its
/// own, if that is faster by estimate (halo/plan.h). The temporary is in registers, of a thread's strip, or in shared
/// memory, of a block's tile.
///     T(i,j) = X(i,j) + X(i,j+1)    a launch that writes T
///     Y(i,j) = T(i,j) + T(i+1,j)    a launch that reads T
/// A single launch gets strips, too, if its reads meet there and that is clearly faster. Launches whose options choose
/// tiles, threads or anything else of a kernel stay as they are. After all launches have been made; kernels get new
/// names.
Mapping fuse_halos(Mapping mapping, const poly::Scop& scop, const options::MappingOptions& options,
                   const Device& device);

}  // namespace tc::gpu
