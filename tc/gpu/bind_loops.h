#pragma once

#include <map>
#include <string>

#include "tc/gpu/kernel.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// A Kernel of a tree with named loops (loop_tree.h), some of which are dealt out to blocks and threads. Grid and block
/// are as large as the loops need; what stands below no loop on threads is run by the block's first. Errors: a loop on
/// threads above one on blocks, or apart from the next; statements that no loop on an axis of blocks stands above.
Result<Kernel> bind_loops(const poly::Scop& scop, const std::map<std::string, Dealt>& bound);

}  // namespace tc::gpu
