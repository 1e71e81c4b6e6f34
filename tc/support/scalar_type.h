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
  kFloat64
};

/// The name in canonical source: "float32", "uint8", "bool".
std::string_view name_of(ScalarType type);
/// Accepts aliases too: "float", "double", "half", "int" (int32).
std::optional<ScalarType> scalar_type_from_name(std::string_view name);

bool is_float(ScalarType type);
/// True for the signed and unsigned integers; not for bool.
bool is_integer(ScalarType type);
bool is_signed_integer(ScalarType type);
int bits_of(ScalarType type);  ///< 8 for bool, which is stored in one byte
int bytes_of(ScalarType type);

}  // namespace tc
