#pragma once

#include "tc/gpu/strategy/pieces.h"

namespace tc::gpu {

/// Gives results of products that whole waves of blocks leave over a launch of their own, where the options ask for it
/// or the estimate gains clearly:
///     C(m,n) +=! A(m,k) * B(k,n)   ==>   the same for m in 0:2816, by whole waves of tiles
///     where m in 0:3520                  the same for m in 2816:3520, by smaller tiles, or with steps dealt out
/// The second launch starts early: its blocks take processors that the last wave of the first has left. Both run the
/// same statements, for other instances.
/// `reasons` and `refused` get why a split that options ask for is none.
Pieces split_waves(Pieces cut, const ir::Program& program, const options::MappingOptions& options,
                   const Device& device);

}  // namespace tc::gpu
