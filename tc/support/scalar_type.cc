#include "tc/support/scalar_type.h"

#include <array>

#include "tc/support/check.h"
#include "tc/support/scalar_type_names.h"

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

constexpr std::array<ScalarTypeName, 5> kAliases = {{
    {"float", ScalarType::kFloat32},
    {"double", ScalarType::kFloat64},
    {"half", ScalarType::kFloat16},
    {"int", ScalarType::kInt32},
    {"uint", ScalarType::kUInt32},
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
  for (const ScalarTypeName& alias : kAliases) {
    if (alias.name == name) return alias.type;
  }
  return std::nullopt;
}

std::vector<ScalarTypeName> all_scalar_type_names() {
  std::vector<ScalarTypeName> names;
  for (size_t i = 0; i < kRows.size(); ++i) names.push_back({kRows[i].name, static_cast<ScalarType>(i)});
  names.insert(names.end(), kAliases.begin(), kAliases.end());
  return names;
}

bool is_float(ScalarType type) { return row(type).kind == Row::kFloating; }
bool is_float8(ScalarType type) { return is_float(type) && bits_of(type) == 8; }
bool is_integer(ScalarType type) { return row(type).kind == Row::kSigned || row(type).kind == Row::kUnsigned; }
bool is_signed_integer(ScalarType type) { return row(type).kind == Row::kSigned; }
int bits_of(ScalarType type) { return row(type).bits; }
int bytes_of(ScalarType type) { return row(type).bits / 8; }

}  // namespace tc
