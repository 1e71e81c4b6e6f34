#pragma once

#include <string>

#include "tc/gpu/strategy/halo/plan.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Code for stages whose blocks compute tiles that overlap:
///     T(i,j) +=! X(i,j+r) * w(r)       a block computes 34 x 128 elements of T in shared memory, a barrier,
///     Y(i,j) +=! T(i+r,j) * w(r)       and 32 x 128 of Y from these
/// Sums keep the order of the source.
tile::Kernel halo(const poly::Scop& scop, const HaloPlan& plan, const Device& device, const std::string& name);

}  // namespace tc::gpu
