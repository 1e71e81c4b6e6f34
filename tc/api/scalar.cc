#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tc/api/call.h"
#include "tc/api/elements.h"
#include "tc/interp/scalar.h"

namespace tc::api {
namespace {

/// The float as an integer, if it is one that int64 or uint64 holds: kind and bits.
std::optional<Scalar> as_integer(double value) {
  if (std::nearbyint(value) != value) return std::nullopt;
  if (value >= -0x1p63 && value < 0x1p63) return Scalar(static_cast<int64_t>(value));
  if (value >= 0x1p63 && value < 0x1p64) return Scalar(static_cast<uint64_t>(value));
  return std::nullopt;
}

double as_float(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::kFloat:
      return scalar.floating();
    case Scalar::Kind::kSigned:
      return static_cast<double>(scalar.integer());
    case Scalar::Kind::kUnsigned:
      return static_cast<double>(static_cast<uint64_t>(scalar.integer()));
  }
  return 0;
}

bool holds(ScalarType type, const Scalar& integer) {
  const bool negative = integer.kind() == Scalar::Kind::kSigned && integer.integer() < 0;
  const auto magnitude = static_cast<uint64_t>(integer.integer());
  if (type == ScalarType::kBool) return !negative && magnitude <= 1;
  const int bits = bits_of(type);
  if (!is_signed_integer(type)) return !negative && (bits == 64 || magnitude >> bits == 0);
  if (negative) return bits == 64 || integer.integer() >= -(int64_t{1} << (bits - 1));
  return magnitude >> (bits - 1) == 0;
}

const char* largest_of_float(ScalarType type) {
  if (type == ScalarType::kFloat16) return "65504";
  if (type == ScalarType::kBFloat16) return "3.3895e+38";
  return type == ScalarType::kFloat32 ? "3.40282e+38" : "1.79769e+308";
}

}  // namespace

std::string Scalar::to_string() const {
  switch (kind_) {
    case Kind::kFloat:
      return fmt::format("{}", float_);
    case Kind::kSigned:
      return fmt::format("{}", integer_);
    case Kind::kUnsigned:
      return fmt::format("{}", static_cast<uint64_t>(integer_));
  }
  return {};
}

std::optional<int64_t> scalar_bits(const Scalar& scalar, ScalarType type) {
  int64_t bits = 0;
  if (is_float(type)) {
    // Integers beyond 2^53 are rounded twice, to float64 first: within half a unit of either, as NumPy does.
    const double value = as_float(scalar);
    store_float(type, value, &bits);
    if (std::isfinite(value) && !std::isfinite(load_float(type, &bits))) return std::nullopt;
    return bits;
  }
  std::optional<Scalar> integer = scalar;
  if (scalar.kind() == Scalar::Kind::kFloat) integer = as_integer(scalar.floating());
  if (!integer || !holds(type, *integer)) return std::nullopt;
  store_integer(type, integer->integer(), &bits);
  return bits;
}

std::string what_fits(ScalarType type) {
  if (type == ScalarType::kBool) return "bool holds 0 and 1";
  if (is_float(type)) return fmt::format("{} holds numbers up to {}", name_of(type), largest_of_float(type));
  const int bits = bits_of(type);
  if (!is_signed_integer(type)) {
    return fmt::format("{} holds integers from 0 to {}", name_of(type),
                       std::numeric_limits<uint64_t>::max() >> (64 - bits));
  }
  const int64_t largest = std::numeric_limits<int64_t>::max() >> (64 - bits);
  return fmt::format("{} holds integers from {} to {}", name_of(type), -largest - 1, largest);
}

}  // namespace tc::api
