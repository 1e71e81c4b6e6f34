#pragma once

#include <string>

#include "tc/gpu/strategy/map.h"

namespace tc::gpu {

/// The schedule trees of a mapping's launches as text (poly/print.h), each with what its marks "bind:<number>" say.
///     kernel mm_0: grid (4, 4, 1), block (32, 8, 1)
///     domain
///       ...
///     bindings
///       bind:0: block_x in steps of 32 of 4, block_y in steps of 32 of 4
std::string tree_text(const Mapping& mapping);

}  // namespace tc::gpu
