#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tc {

/// The element types of the language.
enum class ScalarType : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kFloat8E4M3,  ///< 4 bits of exponent, 3 of fraction; no infinities, and a NaN where all bits but the sign are set
  kFloat8E5M2,  ///< 5 bits of exponent, 2 of fraction; infinities and NaNs as IEEE 754 has them
};
inline constexpr int kScalarTypes = static_cast<int>(ScalarType::kFloat8E5M2) + 1;

/// The name in canonical source: "float32", "uint8", "bool".
std::string_view name_of(ScalarType type);
/// Accepts aliases too: "float", "double", "half", "int" (int32).
std::optional<ScalarType> scalar_type_from_name(std::string_view name);

bool is_float(ScalarType type);
/// A type of tensors only (T8): values are float32.
bool is_float8(ScalarType type);
/// True for the signed and unsigned integers; not for bool.
bool is_integer(ScalarType type);
bool is_signed_integer(ScalarType type);
int bits_of(ScalarType type);  ///< 8 for bool, which is stored in one byte
int bytes_of(ScalarType type);

}  // namespace tc
