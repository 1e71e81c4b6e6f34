#pragma once

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

/// `value` rounded to a float type (to nearest, ties to even); infinite where it is too large.
double round_to(ScalarType type, double value);

/// Whether an integer type (or bool: 0 and 1) holds the value.
bool holds(ScalarType type, int64_t value);

/// Division that rounds toward minus infinity, and 0 for a zero divisor (R8). Not for int64's minimum by -1.
int64_t floor_divide(int64_t a, int64_t b);
int64_t floor_modulo(int64_t a, int64_t b);

}  // namespace tc::lang
