#pragma once

#include <string>

#include "tc/gpu/strategy/contraction/chain.h"
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

/// A chain as a kernel. A block goes through the products one after the other, with what lies between in shared memory.
/// Copies for the first steps of a product are under way while the product before it is added up:
///     start the copies of the first stages - 1 turns       a turn is a step of some product
///     for product, for step of it
///       wait for the copies of this turn; barrier          what the product before has left is there, too
///       start the copies of the turn stages - 1 later, fragments, sums
///       behind the last step: before, after: on registers; to the rows that the next product reads
tile::Kernel chain_kernel(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan, const std::string& name);

/// A chain of two products with a streamed link as a kernel. A slab is a step of the second one's reduction:
///     start the copies of the first one's operand without columns, and of the first stages - 1 slabs
///     for slab
///       wait for its copies; barrier
///       start the copies of the slab stages - 1 later; the first product's sums, of all its reduction
///       before, after: on registers; to fragments; reductions along rows go on
///       the second product's sums, of the slab
///     reductions along rows: exchanged within warps
///     the second product's before, after: on registers; stores
tile::Kernel stream_kernel(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan, const std::string& name);

}  // namespace tc::gpu
