#pragma once

#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/ir/program.h"

/// An operand that threads of warpgroups compute (TensorCores::computes_a).
namespace tc::gpu {

/// A read of a tensor other than the operand's source, that is the same for runs of the reduction: a scale of each row
/// and group of 32 values. Threads hold what a step needs, and read that of the next step ahead.
struct HeldRead {
  Halide::Expr read;   ///< over the operand's indices
  int64_t values = 0;  ///< of the reduction for which it is the same, at least a slice's; 0: for all
  int64_t runs = 1;    ///< of a step
};
std::vector<HeldRead> held_reads(const ir::Program& program, const Contraction& contraction,
                                 const ContractionPlan& plan);

/// Registers that a thread holds of the operand: those of a step. 0 where it computes none.
int64_t held_registers(const ContractionPlan& plan);

}  // namespace tc::gpu
