#include "tc/support/scalar_type.h"

#include <array>

#include "tc/support/check.h"

namespace tc {
namespace {

struct Row {
  std::string_view name;
  int bits;
  enum { kBoolean, kSigned, kUnsigned, kFloating } kind;
};

constexpr std::array<Row, kScalarTypes> kRows = {{
    {"bool", 8, Row::kBoolean},
    {"int8", 8, Row::kSigned},
    {"int16", 16, Row::kSigned},
    {"int32", 32, Row::kSigned},
    {"int64", 64, Row::kSigned},
    {"uint8", 8, Row::kUnsigned},
    {"uint16", 16, Row::kUnsigned},
    {"uint32", 32, Row::kUnsigned},
    {"uint64", 64, Row::kUnsigned},
    {"float16", 16, Row::kFloating},
    {"bfloat16", 16, Row::kFloating},
    {"float32", 32, Row::kFloating},
    {"float64", 64, Row::kFloating},
    {"float8_e4m3", 8, Row::kFloating},
    {"float8_e5m2", 8, Row::kFloating},
}};

const Row& row(ScalarType type) {
  const auto i = static_cast<size_t>(type);
  TC_CHECK(i < kRows.size(), "no scalar type has the number {}", i);
  return kRows[i];
}

}  // namespace

std::string_view name_of(ScalarType type) { return row(type).name; }

std::optional<ScalarType> scalar_type_from_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ScalarType>(i);
  }
  if (name == "float") return ScalarType::kFloat32;
  if (name == "double") return ScalarType::kFloat64;
  if (name == "half") return ScalarType::kFloat16;
  if (name == "int") return ScalarType::kInt32;
  if (name == "uint") return ScalarType::kUInt32;
  return std::nullopt;
}

bool is_float(ScalarType type) { return row(type).kind == Row::kFloating; }
bool is_float8(ScalarType type) { return is_float(type) && bits_of(type) == 8; }
bool is_integer(ScalarType type) { return row(type).kind == Row::kSigned || row(type).kind == Row::kUnsigned; }
bool is_signed_integer(ScalarType type) { return row(type).kind == Row::kSigned; }
int bits_of(ScalarType type) { return row(type).bits; }
int bytes_of(ScalarType type) { return row(type).bits / 8; }

}  // namespace tc
