#pragma once

#include "tc/gpu/kernel.h"

namespace tc::gpu {

/// The launches of a scheduled Scop: for each its part of the tree, as a Scop whose schedule is that part alone.
/// Neighbours in the outermost sequence stay together only where one block runs both.
std::vector<poly::Scop> cut(const poly::Scop& scop);

}  // namespace tc::gpu
