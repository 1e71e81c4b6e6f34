#include "tc/api/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tc/interp/scalar.h"
#include "tc/support/check.h"
#include "tc/support/float8.h"

namespace tc::api {
namespace {

template <typename T>
T read(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <typename T>
void write(T value, void* element) {
  std::memcpy(element, &value, sizeof value);
}

double float16_from_bits(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

/// The bits of a double that is a float16, an infinity or a NaN.
uint16_t float16_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (magnitude < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::ldexp(magnitude, 24));
  const int exponent = std::ilogb(magnitude);
  return sign | static_cast<uint16_t>((exponent + 15) << 10) |
         static_cast<uint16_t>(std::ldexp(magnitude, 10 - exponent) - 1024);
}

}  // namespace

double load_float(ScalarType type, const void* element) {
  switch (type) {
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      return float8_from_bits(type, read<uint8_t>(element));
    case ScalarType::kFloat16:
      return float16_from_bits(read<uint16_t>(element));
    case ScalarType::kBFloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(element)) << 16);
    case ScalarType::kFloat32:
      return read<float>(element);
    case ScalarType::kFloat64:
      return read<double>(element);
    default:
      TC_CHECK(false, "{} is not a float type", name_of(type));
  }
}

void store_float(ScalarType type, double value, void* element) {
  // An element that is infinite stays so; only a conversion saturates (T8).
  const bool infinite = type == ScalarType::kFloat8E5M2 && std::isinf(value);
  const double rounded = infinite ? value : interp::round_to(type, value);
  switch (type) {
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      return write(float8_bits(type, rounded), element);
    case ScalarType::kFloat16:
      return write(float16_bits(rounded), element);
    case ScalarType::kBFloat16:
      return write(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(rounded)) >> 16), element);
    case ScalarType::kFloat32:
      return write(static_cast<float>(rounded), element);
    case ScalarType::kFloat64:
      return write(rounded, element);
    default:
      TC_CHECK(false, "{} is not a float type", name_of(type));
  }
}

int64_t load_integer(ScalarType type, const void* element) {
  switch (type) {
    case ScalarType::kBool:
      return read<uint8_t>(element) != 0;
    case ScalarType::kInt8:
      return read<int8_t>(element);
    case ScalarType::kInt16:
      return read<int16_t>(element);
    case ScalarType::kInt32:
      return read<int32_t>(element);
    case ScalarType::kUInt8:
      return read<uint8_t>(element);
    case ScalarType::kUInt16:
      return read<uint16_t>(element);
    case ScalarType::kUInt32:
      return read<uint32_t>(element);
    case ScalarType::kInt64:
    case ScalarType::kUInt64:
      return read<int64_t>(element);
    default:
      TC_CHECK(false, "{} is not an integer type", name_of(type));
  }
}

void store_integer(ScalarType type, int64_t value, void* element) {
  TC_CHECK(!is_float(type), "{} is not an integer type", name_of(type));
  switch (bytes_of(type)) {
    case 1:
      return write(static_cast<uint8_t>(type == ScalarType::kBool ? value != 0 : value), element);
    case 2:
      return write(static_cast<uint16_t>(value), element);
    case 4:
      return write(static_cast<uint32_t>(value), element);
    default:
      return write(value, element);
  }
}

}  // namespace tc::api
