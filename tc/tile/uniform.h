#pragma once

#include <set>
#include <string>

#include "tc/tile/accesses.h"

namespace tc::tile {

/// The lets whose value is the same for all threads of a block, though it is read from memory. Such a let is outside of
/// all loops and branches, has a name of its own, and reads at subscripts that do not depend on threads:
///  - shared tensors, all of whose writes lie before a barrier of the block before the let;
///  - global tensors that the kernel does not write.
std::set<std::string> uniform_lets(const Kernel& kernel, const Flow& flow);

}  // namespace tc::tile
