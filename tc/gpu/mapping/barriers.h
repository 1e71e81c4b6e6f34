#pragma once

#include "tc/gpu/mapping/kernel.h"

namespace tc::gpu {

/// Inserts "barrier" marks such that every dependence between different threads of a block has one on each way from
/// its source to its sink. Marks stand above the regions only, where control flow is the same for all threads; their
/// number, weighted with the iterations of the loops around them, is the least (paper 2018, section 5.5).
/// After bind().
Kernel place_barriers(Kernel kernel);

/// A dependence between instances that different blocks run, as a sentence; nothing if there is none.
std::optional<std::string> block_fault(const Kernel& kernel);

}  // namespace tc::gpu
