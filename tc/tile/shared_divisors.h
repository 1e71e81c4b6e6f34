#pragma once

#include "tc/tile/program.h"

namespace tc::tile {

/// a / b of float32, which becomes a float of 16 bits. It may be farther from a / b than the nearest float32, by 2^-20
/// ULP.
inline constexpr const char* kNarrowQuotient = "tc.narrow_quotient";

/// Makes a kNarrowQuotient of each float32 division with a cast to 16 bits around it, and a kQuotient of each other one
/// by a divisor that serves at least four values of unrolled loops. Whoever prints them computes a reciprocal once;
/// every backend rounds a kQuotient as the division. Comes when loops are unrolled. `strict` (T5): none is narrow.
Program share_divisors(Program program, bool strict = false);

}  // namespace tc::tile
