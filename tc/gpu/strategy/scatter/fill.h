#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/mapping/kernel.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// A kernel that first sets results of later reductions to their identities, an element for each of its threads:
///     if (thread < 2048) x[thread] = -inf;
/// The statements are such initialisations, and the kernel touches none of their tensors. Nothing if some statement is
/// another, or has more elements than the kernel has threads.
std::optional<tile::Kernel> with_fills(tile::Kernel code, const std::vector<std::string>& statements,
                                       const poly::Scop& scop);

}  // namespace tc::gpu
