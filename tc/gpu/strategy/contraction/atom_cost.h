#pragma once

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// Cycles of a kernel by products of tiles of single warps, whose blocks have so many bytes of shared memory. What the
/// figures were fitted to, and how far it is from them: docs/lab/measurements.md.
double atom_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device,
                   int64_t shared_bytes);

/// No more than those of any plan by an atom.
double least_atom_cycles(const Contraction& contraction, const tile::MatMulAtom& atom, const Device& device);

}  // namespace tc::gpu
