#pragma once

#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::poly {

/// The instances and dependences of some statements alone, not scheduled.
Scop restricted(const Scop& scop, const std::vector<std::string>& statements);

/// The same of some instances.
Scop restricted(const Scop& scop, const isl::union_set& instances);

}  // namespace tc::poly
