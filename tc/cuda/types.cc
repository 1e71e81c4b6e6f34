#include "tc/cuda/types.h"

#include "tc/support/check.h"

namespace tc::cuda {

std::string half_name(Halide::Type type) { return type.is_bfloat() ? "bfloat16" : "float16"; }

std::string memory_type(Halide::Type type) {
  TC_CHECK(type.lanes() == 1, "a vector type in a tile program");
  if (is_half(type)) return half_name(type);
  return type.is_bool() ? "uint8" : value_type(type);
}

std::string value_type(Halide::Type type) {
  if (is_float8(type)) return "uint8";
  if (type.is_float()) return type.bits() == 64 ? "double" : "float";
  if (type.is_bool()) return "bool";
  TC_CHECK(type.is_int() || type.is_uint(), "a type that is no number in a tile program");
  if (type.is_int()) return type.bits() == 32 ? "int" : "int" + std::to_string(type.bits());
  return "uint" + std::to_string(type.bits());
}

}  // namespace tc::cuda
