#pragma once

#include <map>
#include <set>
#include <string>

#include "tc/gpu/mapping/kernel.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// Between a cooperative region's mark and the loop over a reduction that the lanes of the block's first warp share.
inline constexpr char kWarpMark[] = "warp";

/// A Kernel of a tree with named loops (poly/loop_tree.h), some of which are dealt out to blocks and threads. Grid and
/// block are as large as the loops need; what stands below no loop on threads is run by the block's first, the
/// iterations of a loop in `by_warp` by its first warp. Errors: a loop on threads above one on blocks, or apart from
/// the next; a block without a whole warp; statements that no loop on an axis of blocks stands above.
Result<Kernel> bind_loops(const poly::Scop& scop, const std::map<std::string, Dealt>& bound,
                          const std::set<std::string>& by_warp);

}  // namespace tc::gpu
