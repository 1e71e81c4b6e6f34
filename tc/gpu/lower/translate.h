#pragma once

#include <string>

#include "tc/gpu/mapping/kernel.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Turns a decided Kernel into one of a tile program: isl generates the loops, marks say what they are. A loop that is
/// dealt out starts at the block's or thread's own first iteration and steps by their number. Buffers of Promotions
/// are in shared memory, or registers of one element each.
tile::Kernel translate(const Kernel& kernel, const std::string& name);

/// Returns a tensor of the program in global memory, with its strides; it has elements.
tile::Tensor global_tensor(const ir::Tensor& tensor, bool written);

}  // namespace tc::gpu
