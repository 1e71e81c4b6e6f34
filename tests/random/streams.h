#pragma once

#include <cstdint>

#include "tests/random/products.h"

namespace tc::testing {

/// A def `f` of two products of 16-bit floats, of which the second sums over the columns of the first: batches, orders
/// of all operands, bounds of a triangle, functions of the first one's results that may read a reduction of them,
/// reductions of what becomes of them, and what follows the second product, which may read those.
RandomProduct random_stream(uint64_t seed);

}  // namespace tc::testing
