#pragma once

#include "tc/tile/program.h"

namespace tc::tile {

/// Makes a kQuotient of each float32 division by a divisor that serves at least four values of unrolled loops. Whoever
/// prints it computes the reciprocal once; every backend rounds it as the division. Comes when loops are unrolled.
Program share_divisors(Program program);

}  // namespace tc::tile
