#pragma once

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// The contraction with the statement right before it computed where its results are copied to shared memory, by each
/// block for its own boxes:
///     E(m,k) = exp(A(m,k))                 E is nowhere in memory
///     C(m,n) += E(m,k) * B(k,n)
/// Nothing where others look at E, or where the contraction changes what E is made of.
std::optional<Contraction> with_prologue(const poly::Scop& scop, const Contraction& contraction);

/// Microseconds that a plan of it takes more than one that finds E in memory, those in which E is made once, and those
/// of a launch for that.
struct PrologueTimes {
  double again_us = 0, once_us = 0, launch_us = 0;
};
PrologueTimes prologue_times(const Contraction& contraction, const ContractionPlan& plan, const ir::Program& program,
                             const Device& device);

/// Takes the statements right before a contraction into it, back to the statement `first`, as long as each costs less
/// than what is made once, in its own launch or behind what it reads, and what the longer plan takes more than that of
/// the contraction alone.
void add_prologues(const poly::Scop& scop, size_t first, const options::MappingOptions& options, const Device& device,
                   Contraction& contraction, ContractionPlan& plan);

}  // namespace tc::gpu
