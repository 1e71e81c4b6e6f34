#include "tc/support/float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tc/support/check.h"

namespace tc {
namespace {

struct Format {
  int fraction_bits;
  int bias;
};

Format format_of(ScalarType type) {
  TC_CHECK(is_float8(type), "{} is not an 8-bit float", name_of(type));
  return type == ScalarType::kFloat8E4M3 ? Format{3, 7} : Format{2, 15};
}

}  // namespace

double float8_from_bits(ScalarType type, uint8_t bits) {
  const Format format = format_of(type);
  const int size = bits & 0x7f;
  const int exponent = size >> format.fraction_bits;
  const int fraction = size & ((1 << format.fraction_bits) - 1);
  const int hidden = exponent == 0 ? 0 : 1 << format.fraction_bits;
  double value = std::ldexp(hidden + fraction, (exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits);
  if (type == ScalarType::kFloat8E4M3 && size == 0x7f) value = std::numeric_limits<double>::quiet_NaN();
  if (type == ScalarType::kFloat8E5M2 && size == 0x7c) value = std::numeric_limits<double>::infinity();
  if (type == ScalarType::kFloat8E5M2 && size > 0x7c) value = std::numeric_limits<double>::quiet_NaN();
  return bits & 0x80 ? -value : value;
}

uint8_t float8_bits(ScalarType type, double value) {
  const Format format = format_of(type);
  if (std::isnan(value)) return 0x7f;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) {
    TC_CHECK(type == ScalarType::kFloat8E5M2, "{} has no infinity", name_of(type));
    return static_cast<uint8_t>(sign | 0x7c);
  }
  const int exponent = magnitude == 0 ? 1 - format.bias : std::max(std::ilogb(magnitude), 1 - format.bias);
  // In units of the last place; one bit more than the fraction where the number is normal.
  const auto units = static_cast<int>(std::ldexp(magnitude, format.fraction_bits - exponent));
  return static_cast<uint8_t>(sign | (((exponent + format.bias - 1) << format.fraction_bits) + units));
}

}  // namespace tc
