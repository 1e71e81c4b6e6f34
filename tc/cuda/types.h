#pragma once

#include <Halide.h>

#include <string>

namespace tc::cuda {

inline bool is_half(Halide::Type type) { return type.is_float() && type.bits() == 16; }

inline bool is_float8(Halide::Type type) { return type.is_float() && type.bits() == 8; }

/// The type of an element in memory: "float", "int64", "float16", "uint8" for a bool.
std::string memory_type(Halide::Type type);
/// The type of a value in an expression: as in memory, but a bool is `bool`, and a float16 or bfloat16 is a `float`
/// that holds a number of the narrow type. An 8-bit float is its bits, a `uint8`.
std::string value_type(Halide::Type type);
/// "float16" or "bfloat16".
std::string half_name(Halide::Type type);

}  // namespace tc::cuda
