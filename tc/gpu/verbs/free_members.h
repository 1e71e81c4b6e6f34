#pragma once

#include <cstdint>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::gpu {

/// A member of a band that may be dealt out: coincident, with more than one iteration.
struct Free {
  int member = 0;
  int64_t extent = 1;
};

/// The free members of a band, outermost first.
std::vector<Free> free_members(const isl::schedule_node& node);

/// How many iterations they have together, up to about 2^31.
int64_t product(const std::vector<Free>& members);

/// The most iterations that the outermost free bands at and below a node have at once.
int64_t parallel_below(const isl::schedule_node& node);

/// The first band at or below a node, or the first node with several children or none.
isl::schedule_node first_band(isl::schedule_node node);

/// Whether the outermost band of a part has members that blocks can share.
bool has_blocks(const poly::Scop& scop);

}  // namespace tc::gpu
