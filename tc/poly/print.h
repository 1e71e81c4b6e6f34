#pragma once

#include <string>

#include "tc/poly/scop.h"

namespace tc::poly {

/// The schedule as text: domain, tree, promotions. The same Scop gives the same text; statements stand in program
/// order.
///     domain
///       S0[i, j, k] : 0 <= i <= 127 and 0 <= j <= 95 and 0 <= k <= 63
///     schedule
///       parallel
///         band permutable coincident(1, 1)
///           S0: [32*floor(i/32), 32*floor(j/32)]
///           sequence
///             S0_init
///               ...
std::string schedule_text(const Scop& scop);

/// The dependences as text, by kind, one relation per line.
std::string dependences_text(const Scop& scop);

}  // namespace tc::poly
