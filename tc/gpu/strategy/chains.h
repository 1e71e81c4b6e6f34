#pragma once

#include <string>
#include <vector>

#include "tc/gpu/strategy/pieces.h"

namespace tc::gpu {

/// Joins contractions that follow each other, so that they share a kernel, where options ask for it or the estimate
/// gains.
std::vector<Piece> join_chains(const poly::Scop& scop, std::vector<Piece> pieces,
                               const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
