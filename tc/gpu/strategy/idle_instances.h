#pragma once

#include <isl/cpp.h>

#include <set>
#include <string>

#include "tc/poly/scop.h"

namespace tc::gpu {

/// Instances { S[i] } of some statements, which share a launch, that nothing needs: where points of a streamed chain
/// count for nothing (contraction/idle_points.h), what only those use, and elements of temporaries that nobody reads.
/// `seen` are tensors that somebody else reads.
/// This is found from the Scop alone, whatever the launch does.
isl::union_set idle_instances(const poly::Scop& scop, const isl::union_set& launch, const std::set<std::string>& seen);

}  // namespace tc::gpu
