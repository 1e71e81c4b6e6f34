#pragma once

#include <cstdint>

#include "tests/random/products.h"

namespace tc::testing {

/// A def `f` whose statements read and write at unusual places: products, sums of windows and normalised rows whose
/// operands are reversed, clamped, wrapped, reflected, halved or bordered with zeros, in several spellings; whose
/// results go to reversed, shifted, interleaved or skewed places, some to two parts of one tensor; gradients of windows
/// with steps, by what reaches a result or by what is scattered; then statements that set or change some of these
/// results again, and sums of them.
RandomProduct random_placement(uint64_t seed);

}  // namespace tc::testing
