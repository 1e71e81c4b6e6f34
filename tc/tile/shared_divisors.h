#pragma once

#include "tc/tile/program.h"

namespace tc::tile {

/// a / b of float32 for a divisor that many share, which becomes a float of 16 bits. It may be farther from a / b than
/// the nearest float32, by 2^-21 ULP.
inline constexpr const char* kNarrowQuotient = "tc.narrow_quotient";

/// Makes a kQuotient of each float32 division by a divisor that serves at least four values of unrolled loops, or a
/// kNarrowQuotient if a cast to 16 bits is around it. Whoever prints it computes the reciprocal once; every backend
/// rounds a kQuotient as the division. Comes when loops are unrolled.
Program share_divisors(Program program);

}  // namespace tc::tile
