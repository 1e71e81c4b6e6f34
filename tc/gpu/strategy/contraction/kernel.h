#pragma once

#include <string>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// A contraction as a kernel. A value of an axis past its end is computed from the operands' last elements, and thrown
/// away.
///     for step                                      copies of step + 2 go on
///       wait for the copies of this step; barrier
///       start the copies of step + stages - 1
///       for k in the step: fragments from shared memory, then sum(m, n) += a(m) * b(n) on registers
///     the groups' sums through shared memory; barrier
///     before, after: on registers; stores
/// Further products are summed up behind the first, each by its own plan, with the tiles and threads of the first.
tile::Kernel contraction_kernel(const poly::Scop& scop, const Contraction& contraction,
                                const std::vector<ContractionPlan>& plans, const std::string& name);

}  // namespace tc::gpu
