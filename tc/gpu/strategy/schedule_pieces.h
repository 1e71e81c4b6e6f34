#pragma once

#include <string>

#include "tc/gpu/strategy/pieces.h"

namespace tc::gpu {

/// The pieces of a def: contractions with their plans, and everything else with a schedule. `scop` is that of
/// from_ir(). Errors: options out of the device's limits; the context's budget.
Result<Pieces> schedule_pieces(const poly::Scop& scop, const options::MappingOptions& options,
                               const Device& device = {});

/// For each piece its statements, and the plan of a contraction or the schedule tree of anything else.
///     piece 0: a contraction of S0_init, S0
///       tile: [128, 256, 64]
///       ...
///     piece 1: S1
///     domain
///       S1[m, n] : ...
std::string to_text(const Pieces& pieces);

/// Holds when each statement has one piece, none depends on a later piece, and the schedule trees are legal.
/// The error names statements or instances.
Result<void> check_pieces(const poly::Scop& scop, const Pieces& pieces);

}  // namespace tc::gpu
