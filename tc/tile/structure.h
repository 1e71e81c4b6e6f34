#pragma once

#include <string>
#include <vector>

#include "tc/tile/verify.h"

namespace tc::tile {

/// The part of verify() that looks at the tree alone: names, ranks, types, limits, loops to be unrolled, vectors.
std::vector<std::string> structure_faults(const Kernel& kernel, const Limits& limits);

}  // namespace tc::tile
