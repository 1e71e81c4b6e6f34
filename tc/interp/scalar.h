#pragma once

#include <cstdint>

#include "tc/support/scalar_type.h"

/// How single elements behave: the integer semantics of the language and the rounding of its float types.
///
/// An integer or bool is held as int64, wrapped to its type: sign-extended if signed, zero-extended if unsigned
/// (uint64 by bit pattern). A float is held as float64.
namespace tc::interp {

/// The value modulo 2^bits, in the range of the type. bool: whether it is not zero.
int64_t wrap(ScalarType type, int64_t value);

/// To the nearest value of a float type, ties to even; NaN stays NaN. Too large becomes infinite, and the largest
/// finite number of an 8-bit type, infinities too (T8).
double round_to(ScalarType type, double value);

/// Of a float type.
double largest_finite(ScalarType type);
double smallest_subnormal(ScalarType type);
/// The number of bits of a significand, the hidden one included: 24 for float32.
int significand_bits(ScalarType type);
/// 2^-significand_bits: the largest relative error of one rounding.
double unit_roundoff(ScalarType type);
/// The distance between the floats of the type around |value| (of the larger numbers at a power of two).
double ulp(ScalarType type, double value);
/// The value of the type that follows `from` toward `to`.
double next_after(ScalarType type, double from, double to);

/// Rounds toward zero. NaN becomes 0; what does not fit becomes the nearest value of the type, as in CUDA.
int64_t float_to_integer(ScalarType type, double value);
/// The nearest value of a float type.
double integer_to_float(ScalarType from, ScalarType to, int64_t value);

// Arithmetic on values of one type; the results are wrapped to it.
int64_t add(ScalarType type, int64_t a, int64_t b);
int64_t subtract(ScalarType type, int64_t a, int64_t b);
int64_t multiply(ScalarType type, int64_t a, int64_t b);
/// Toward minus infinity; a zero divisor gives 0 (R8).
int64_t floor_divide(ScalarType type, int64_t a, int64_t b);
/// a - b * floor(a / b), which has the sign of b; a zero divisor gives 0 (R8).
int64_t floor_modulo(ScalarType type, int64_t a, int64_t b);
bool less(ScalarType type, int64_t a, int64_t b);

/// Shifts by a negative count shift the other way. Counts of the type's width or more shift everything out: 0, or -1
/// for a negative number shifted right.
int64_t shift_left(ScalarType type, int64_t a, int64_t count);
int64_t shift_right(ScalarType type, int64_t a, int64_t count);

}  // namespace tc::interp
