#pragma once

#include <vector>

#include "tc/gpu/strategy/map.h"
#include "tc/tile/proof.h"

namespace tc::gpu {

/// What a launch of a mapping has to do: all instances of the statements that its part of the schedule runs, and all
/// elements that they write of tensors that somebody else sees.
tile::Work work_of(const Mapping& mapping, size_t kernel);

/// All that the verifiers find of a mapping of `scop`: tile::prove() with the work of each launch, and that the
/// launches share out all instances of the scop's statements, each to one.
tile::Proof prove(const poly::Scop& scop, const Mapping& mapping, const tile::Limits& limits = {});

/// Holds when the launches share out all instances of the scop's statements, each to one, and none depends on a later
/// launch. The error names an instance, or a pair of launches.
Result<void> check_launches(const poly::Scop& scop, const Mapping& mapping);

/// Proves of each kernel of a mapping that it does its work (tile::cover()).
std::vector<tile::Coverage> cover(const Mapping& mapping);

}  // namespace tc::gpu
