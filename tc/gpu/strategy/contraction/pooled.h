#pragma once

#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/contraction/plan.h"

/// What is made of neighbouring results of a contraction, in the kernel that has them in registers.
namespace tc::gpu {

/// Adds the statements behind a contraction that pool its results, as Pooled says: those that write tensors of their
/// own, and read of others that the group writes only what a run of neighbours has. The contraction itself if there are
/// none.
Contraction with_pooled(const poly::Scop& scop, Contraction contraction);

/// Whether a thread of the plan finishes whole runs of neighbours at once.
bool has_runs(const Contraction& contraction, const ContractionPlan& plan);

}  // namespace tc::gpu
