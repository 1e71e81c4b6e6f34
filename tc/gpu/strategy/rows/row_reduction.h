#pragma once

#include <string>

#include "tc/gpu/strategy/rows/plan.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Code for a part whose shared members' iterations are rows that several threads work on together.
///     m(n) max=! I(n,d)                each lane: the largest of its own I(n,d), read once into registers
///     O(n,d) = exp(I(n,d) - m(n))      lanes of a warp exchange by shuffles, warps through shared memory and a
///     barrier, s(n) +=! O(n,d)                  so that every lane knows m(n); and so on
/// Statements run in program order; what they write stays in registers until the end, where it fits. All reductions of
/// a row are in the same order on every run, but not in the source's.
tile::Kernel row_reduction(const FusedGroup& part, const RowsPlan& plan, const Device& device, const std::string& name);

}  // namespace tc::gpu
