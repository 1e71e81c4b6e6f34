#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::poly {

/// The instances and dependences of some statements alone, not scheduled.
Scop restricted(const Scop& scop, const std::vector<std::string>& statements);

/// The same of the statements [first, last).
Scop restricted(const Scop& scop, size_t first, size_t last);

/// The same of some instances.
Scop restricted(const Scop& scop, const isl::union_set& instances);

/// With a part of the schedule, as of a launch. The domain of a statement that has some of its instances there is
/// these. Accesses and dependences remain those of all: they say what the other parts use.
Scop part_of(const Scop& scop, const isl::schedule& part);

}  // namespace tc::poly
