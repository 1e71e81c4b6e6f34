#pragma once

#include "tc/ir/program.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Fills in a kernel's tensors and scalars: those of the program that its body names, in the program's order.
void declare_tensors(tile::Kernel& kernel, const ir::Program& program);

/// How many barriers stand in a kernel's text.
int count_barriers(const tile::Kernel& kernel);

}  // namespace tc::gpu
