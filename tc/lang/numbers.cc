#include "tc/lang/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "tc/support/check.h"

namespace tc::lang {
namespace {

struct FloatFormat {
  int precision;     ///< bits of the significand, the leading one included
  int min_exponent;  ///< of the smallest normal number 2^min_exponent
  int max_exponent;  ///< of the largest power of two
};

FloatFormat format_of(ScalarType type) {
  switch (type) {
    case ScalarType::kFloat8E4M3:
      return {4, -6, 8};
    case ScalarType::kFloat8E5M2:
      return {3, -14, 15};
    case ScalarType::kFloat16:
      return {11, -14, 15};
    case ScalarType::kBFloat16:
      return {8, -126, 127};
    case ScalarType::kFloat32:
      return {24, -126, 127};
    case ScalarType::kFloat64:
      return {53, -1022, 1023};
    default:
      TC_CHECK(false, "{} is not a float type", name_of(type));
  }
}

/// 1.75 times the largest power of two: in e4m3 the next number would be the NaN.
double largest_float8(ScalarType type) { return std::scalbn(1.75, format_of(type).max_exponent); }

std::string malformed(std::string_view text) {
  if (text.size() > 1 && (text.back() == 'f' || text.back() == 'F')) {
    const auto rest = read_number(text.substr(0, text.size() - 1));
    if (std::holds_alternative<FloatLiteral>(rest)) {
      return fmt::format("'{}' is not a number: without the 'f' it is float32 already", text);
    }
  }
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return fmt::format("'{}' is not a number: numbers are decimal", text);
  }
  return fmt::format("'{}' is not a number", text);
}

}  // namespace

std::variant<IntegerLiteral, FloatLiteral, std::string> read_number(std::string_view text) {
  const char* const end = text.data() + text.size();
  if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{}) return fmt::format("the number {} does not fit int64", text);
    return IntegerLiteral{value};
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return malformed(text);
  if (error != std::errc{}) {
    return fmt::format("the number {} is outside the range of float64 (4.9e-324 to 1.8e308)", text);
  }
  return FloatLiteral{value, std::string(text)};
}

double round_to(ScalarType type, double value) {
  const FloatFormat format = format_of(type);
  if (is_float8(type) && std::isinf(value)) return std::copysign(largest_float8(type), value);
  if (type == ScalarType::kFloat64 || value == 0 || !std::isfinite(value)) return value;
  // The weight of the last bit kept: of the significand, or of the subnormals. Doubles divide by it exactly.
  const int last_bit = std::max(std::ilogb(value), format.min_exponent) - (format.precision - 1);
  const double rounded = std::scalbn(std::nearbyint(std::scalbn(value, -last_bit)), last_bit);
  if (is_float8(type)) return std::copysign(std::min(std::fabs(rounded), largest_float8(type)), value);
  const double limit = std::scalbn(1.0, format.max_exponent + 1);
  return std::fabs(rounded) < limit ? rounded : std::copysign(std::numeric_limits<double>::infinity(), value);
}

int64_t saturated(ScalarType type, double value) {
  TC_CHECK(is_integer(type), "{} is not an integer type", name_of(type));
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  const int magnitude_bits = bits_of(type) - (is_signed_integer(type) ? 1 : 0);
  const uint64_t most = ~uint64_t{0} >> (64 - magnitude_bits);
  if (whole >= std::scalbn(1.0, magnitude_bits)) return static_cast<int64_t>(most);
  if (!is_signed_integer(type)) return whole <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(whole));
  return whole < -std::scalbn(1.0, magnitude_bits) ? -static_cast<int64_t>(most) - 1 : static_cast<int64_t>(whole);
}

std::optional<double> find_constant(std::string_view name) {
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "pi") return std::numbers::pi;
  return std::nullopt;
}

bool holds(ScalarType type, int64_t value) {
  if (type == ScalarType::kBool) return value == 0 || value == 1;
  TC_CHECK(is_integer(type), "{} is not an integer type", name_of(type));
  const int bits = bits_of(type);
  if (is_signed_integer(type)) {
    return bits == 64 || (value >= -(int64_t{1} << (bits - 1)) && value < (int64_t{1} << (bits - 1)));
  }
  return value >= 0 && (bits == 64 || value < (int64_t{1} << bits));
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t remainder = a % b;
  return remainder + (remainder != 0 && (remainder < 0) != (b < 0) ? b : 0);
}

}  // namespace tc::lang
