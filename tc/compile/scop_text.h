#pragma once

#include <string>

#include "tc/poly/scop.h"

namespace tc::compile {

/// The statements' domains, accesses and dependences, one relation a line. What the pass "scop" shows.
std::string scop_text(const poly::Scop& scop);

/// The schedule tree and the buffers that it promotes tiles to. What the passes "schedule" and "map" show.
std::string schedule_text(const poly::Scop& scop);

}  // namespace tc::compile
