#pragma once

#include <string>

#include "tc/gpu/strategy/halo/plan.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Code for stages that each thread does for a strip of the results, with the temporaries in its registers:
///     T(i,j) = X(i,j) + X(i,j+1)       a thread computes T at 9 rows of its column,
///     Y(i,j) = T(i,j) + T(i+1,j)       and from these Y at 8
/// There are no barriers, and everything is laid out at once. Threads whose strip is not whole, or whose temporaries
/// are not all there, do one element of the strip after the other. Sums keep the order of the source.
tile::Kernel strips(const poly::Scop& scop, const HaloPlan& plan, const Device& device, const std::string& name);

}  // namespace tc::gpu
