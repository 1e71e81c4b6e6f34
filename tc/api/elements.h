#pragma once

#include <cstdint>

#include "tc/support/scalar_type.h"

/// Single elements in memory.
namespace tc::api {

/// Of a float type.
double load_float(ScalarType type, const void* element);
/// Rounds to the nearest value of a float type, ties to even.
void store_float(ScalarType type, double value, void* element);

/// Of an integer type or bool; uint64 by bit pattern.
int64_t load_integer(ScalarType type, const void* element);
/// Keeps the low bits; a bool is whether the value is not zero.
void store_integer(ScalarType type, int64_t value, void* element);

}  // namespace tc::api
