#include "tc/interp/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tc/support/check.h"

namespace tc::interp {
namespace {

struct FloatFormat {
  int significand_bits;
  int largest_exponent;  // of 2^e * 1.xxx
  int smallest_normal;   // its exponent
};

FloatFormat format_of(ScalarType type) {
  switch (type) {
    case ScalarType::kFloat8E4M3:
      return {4, 8, -6};
    case ScalarType::kFloat8E5M2:
      return {3, 15, -14};
    case ScalarType::kFloat16:
      return {11, 15, -14};
    case ScalarType::kBFloat16:
      return {8, 127, -126};
    case ScalarType::kFloat32:
      return {24, 127, -126};
    case ScalarType::kFloat64:
      return {53, 1023, -1022};
    default:
      TC_CHECK(false, "'{}' is not a float type", name_of(type));
  }
}

// From the smallest subnormal number of float64 on.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(exponent < -1022 ? uint64_t{1} << (exponent + 1074)
                                                : static_cast<uint64_t>(exponent + 1023) << 52);
}

// The exponent of the lowest bit that a finite value of this size can have in the format.
int quantum_exponent(const FloatFormat& format, double value) {
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff) - 1023;  // -1023: subnormal or 0
  return std::max(exponent, format.smallest_normal) - (format.significand_bits - 1);
}

bool is_unsigned64(ScalarType type) { return type == ScalarType::kUInt64; }

}  // namespace

int64_t wrap(ScalarType type, int64_t value) {
  switch (type) {
    case ScalarType::kBool:
      return value != 0;
    case ScalarType::kInt8:
      return static_cast<int8_t>(value);
    case ScalarType::kInt16:
      return static_cast<int16_t>(value);
    case ScalarType::kInt32:
      return static_cast<int32_t>(value);
    case ScalarType::kUInt8:
      return static_cast<uint8_t>(value);
    case ScalarType::kUInt16:
      return static_cast<uint16_t>(value);
    case ScalarType::kUInt32:
      return static_cast<uint32_t>(value);
    case ScalarType::kInt64:
    case ScalarType::kUInt64:
      return value;
    default:
      TC_CHECK(false, "'{}' is not an integer type", name_of(type));
  }
}

double round_to(ScalarType type, double value) {
  if (is_float8(type) && std::isinf(value)) return std::copysign(largest_finite(type), value);
  if (type == ScalarType::kFloat64 || !std::isfinite(value)) return value;
  if (type == ScalarType::kFloat32) return static_cast<float>(value);
  const double largest = largest_finite(type);
  const double overflow = std::copysign(is_float8(type) ? largest : INFINITY, value);
  if (std::fabs(value) > 2 * largest) return overflow;
  // The sum has no bits below the quantum: the addition rounds, ties to even. The sign is lost where 0 is left.
  const double above = 1.5 * power_of_two(quantum_exponent(format_of(type), value) + 52);
  const double rounded = std::copysign(value + above - above, value);
  return std::fabs(rounded) > largest ? overflow : rounded;
}

double largest_finite(ScalarType type) {
  if (type == ScalarType::kFloat8E4M3) return 448;  // the number after it would be the NaN
  const FloatFormat format = format_of(type);
  return (2 - power_of_two(1 - format.significand_bits)) * power_of_two(format.largest_exponent);
}

double smallest_subnormal(ScalarType type) {
  const FloatFormat format = format_of(type);
  return power_of_two(quantum_exponent(format, 0));
}

int significand_bits(ScalarType type) { return format_of(type).significand_bits; }

double unit_roundoff(ScalarType type) { return power_of_two(-significand_bits(type)); }

double ulp(ScalarType type, double value) {
  if (!std::isfinite(value)) return 0;
  return power_of_two(quantum_exponent(format_of(type), value));
}

double next_after(ScalarType type, double from, double to) {
  if (std::isnan(from) || std::isnan(to)) return from + to;
  if (from == to) return to;
  if (from == 0) return std::copysign(smallest_subnormal(type), to);
  const bool grows = (from < to) == (from > 0);
  if (std::isinf(from)) return std::copysign(largest_finite(type), from);
  // Downward from a power of two the step is that of the numbers below it.
  const double step = grows ? ulp(type, from) : ulp(type, std::nextafter(from, 0.0));
  const double next = from + std::copysign(step, to - from);
  return std::fabs(next) > largest_finite(type) ? std::copysign(INFINITY, from) : next;
}

int64_t float_to_integer(ScalarType type, double value) {
  if (type == ScalarType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  const int bits = bits_of(type);
  const double above = std::ldexp(1.0, is_signed_integer(type) ? bits - 1 : bits);  // one past the largest
  if (is_signed_integer(type)) {
    if (whole >= above) return static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    if (whole < -above) return -static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) - 1;
    return static_cast<int64_t>(whole);
  }
  if (whole >= above) return static_cast<int64_t>(std::numeric_limits<uint64_t>::max() >> (64 - bits));
  if (whole <= 0) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(whole));
}

double integer_to_float(ScalarType from, ScalarType to, int64_t value) {
  // float32 straight from the integer: by way of float64 it would be rounded twice.
  if (to == ScalarType::kFloat32) {
    return is_unsigned64(from) ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value);
  }
  return round_to(to,
                  is_unsigned64(from) ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value));
}

int64_t add(ScalarType type, int64_t a, int64_t b) {
  return wrap(type, static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)));
}

int64_t subtract(ScalarType type, int64_t a, int64_t b) {
  return wrap(type, static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)));
}

int64_t multiply(ScalarType type, int64_t a, int64_t b) {
  return wrap(type, static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
}

int64_t floor_divide(ScalarType type, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (is_unsigned64(type)) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  if (b == -1) return subtract(type, 0, a);  // the smallest integer has no negative: it wraps
  const int64_t quotient = a / b;
  return wrap(type, quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
}

int64_t floor_modulo(ScalarType type, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (is_unsigned64(type)) return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  if (b == -1) return 0;
  const int64_t remainder = a % b;
  return wrap(type, remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
}

bool less(ScalarType type, int64_t a, int64_t b) {
  return is_unsigned64(type) ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t shift_left(ScalarType type, int64_t a, int64_t count) {
  if (count < 0) return shift_right(type, a, count < -64 ? 64 : -count);
  if (count >= bits_of(type)) return 0;
  return wrap(type, static_cast<int64_t>(static_cast<uint64_t>(a) << count));
}

int64_t shift_right(ScalarType type, int64_t a, int64_t count) {
  if (count < 0) return shift_left(type, a, count < -64 ? 64 : -count);
  const bool negative = is_signed_integer(type) && a < 0;
  if (count >= bits_of(type)) return negative ? -1 : 0;
  return is_unsigned64(type) ? static_cast<int64_t>(static_cast<uint64_t>(a) >> count) : a >> count;
}

}  // namespace tc::interp
