#pragma once

#include <cstdint>

#include "tc/support/scalar_type.h"

namespace tc {

/// The number that 8 bits stand for in float8_e4m3 or float8_e5m2: exact.
double float8_from_bits(ScalarType type, uint8_t bits);

/// The bits of a number of the type. It must be one: rounding is the caller's. A NaN has the bits 0x7f.
uint8_t float8_bits(ScalarType type, double value);

}  // namespace tc
