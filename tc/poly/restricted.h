#pragma once

#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::poly {

/// The instances and dependences of some statements alone, not scheduled.
Scop restricted(const Scop& scop, const std::vector<std::string>& statements);

}  // namespace tc::poly
