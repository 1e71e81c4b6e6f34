#include "tests/random/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tc::testing {
namespace {

/// The last two are types of tensors and casts only (T8).
constexpr ScalarType kFloatTypes[] = {ScalarType::kFloat32,  ScalarType::kFloat64,    ScalarType::kFloat16,
                                      ScalarType::kBFloat16, ScalarType::kFloat8E4M3, ScalarType::kFloat8E5M2};
constexpr ScalarType kIntegerTypes[] = {ScalarType::kInt32,  ScalarType::kInt8,  ScalarType::kInt16,
                                        ScalarType::kInt64,  ScalarType::kUInt8, ScalarType::kUInt16,
                                        ScalarType::kUInt32, ScalarType::kUInt64};

}  // namespace

Kind kind_of(ScalarType type) {
  if (is_float(type)) return Kind::kFloat;
  return type == ScalarType::kBool ? Kind::kBool : Kind::kInteger;
}

ScalarType Scope::random_float() { return random.chance(60) ? ScalarType::kFloat32 : kFloatTypes[random.below(6)]; }
ScalarType Scope::random_float_of_scalar() {
  return random.chance(60) ? ScalarType::kFloat32 : kFloatTypes[random.below(4)];
}
ScalarType Scope::random_integer() { return random.chance(40) ? ScalarType::kInt32 : kIntegerTypes[random.below(8)]; }

std::string Scope::new_input_name() { return fmt::format("A{}", inputs++); }

void Scope::add_parameter(const RandomTensor& tensor) {
  program.parameters.push_back(fmt::format("{}{} {}", name_of(tensor.type), shape_text(tensor.shape), tensor.name));
  readable.push_back(tensor);
}

RandomTensor Scope::add_index_tensor(const std::string& extent, int64_t value, int64_t bound) {
  const RandomTensor tensor{new_input_name(), kIntegerTypes[random.below(8)], {{extent, value}}};
  add_parameter(tensor);
  program.index_bounds[tensor.name] = bound;
  return tensor;
}

std::string shape_text(const std::vector<Extent>& shape) {
  std::vector<std::string> texts;
  for (const Extent& extent : shape) texts.push_back(extent.text);
  return texts.empty() ? "" : fmt::format("({})", fmt::join(texts, ", "));
}

std::string cast(ScalarType type, const std::string& text) {
  const bool is_constant = std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c); });
  return fmt::format("{}({})", name_of(type), is_constant && is_integer(type) ? "7" : text);
}

}  // namespace tc::testing
