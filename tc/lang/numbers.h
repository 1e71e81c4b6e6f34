#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tc/lang/ast.h"

namespace tc::lang {

/// Reads a number token. An integer fits int64; one with '.', 'e' or 'E' is a finite float64. Otherwise a
/// sentence that says what is wrong with it.
std::variant<IntegerLiteral, FloatLiteral, std::string> read_number(std::string_view text);

/// `value` rounded to a float type (to nearest, ties to even); infinite where it is too large, but the largest finite
/// number of an 8-bit type (T8).
double round_to(ScalarType type, double value);

/// T6: the value without its fraction; the nearest of an integer type where it does not fit, 0 for a NaN. Of uint64 the
/// bits.
int64_t saturated(ScalarType type, double value);

/// The value of a reserved name: `inf`, `nan` or `pi`.
std::optional<double> find_constant(std::string_view name);
inline constexpr std::array<std::string_view, 3> kConstantNames = {"inf", "nan", "pi"};

/// Whether an integer type (or bool: 0 and 1) holds the value.
bool holds(ScalarType type, int64_t value);

/// Division that rounds toward minus infinity, and 0 for a zero divisor (R8). Not for int64's minimum by -1.
int64_t floor_divide(int64_t a, int64_t b);
int64_t floor_modulo(int64_t a, int64_t b);

}  // namespace tc::lang
