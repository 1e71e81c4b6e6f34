#include "tc/api/editor.h"

#include <fmt/format.h>

#include "tc/api/check.h"
#include "tc/api/engine_impl.h"
#include "tc/lang/format.h"
#include "tc/lang/intrinsics.h"
#include "tc/lang/numbers.h"
#include "tc/lang/parser.h"
#include "tc/lang/words.h"
#include "tc/support/json.h"
#include "tc/support/scalar_type_names.h"

namespace tc::api {
namespace {

SourcePtr source_of(std::string_view text, std::string_view name) {
  return std::make_shared<const Source>(std::string(name), std::string(text));
}

/// What an intrinsic takes and gives, in one line: "(float x) -> float".
std::string_view types_text(lang::Signature signature) {
  switch (signature) {
    case lang::Signature::kFloat:
      return "floats -> float";
    case lang::Signature::kArithmetic:
      return "numbers -> number";
    case lang::Signature::kFloatToBool:
      return "float -> bool";
    case lang::Signature::kFloatToInt32:
      return "float -> int32";
    case lang::Signature::kFloatToInt64:
      return "float -> int64";
    case lang::Signature::kFloatInt32:
      return "float, int32 -> float";
    case lang::Signature::kInt32Float:
      return "int32, float -> float";
    case lang::Signature::kInteger:
      return "integers -> integer";
    case lang::Signature::kShift:
      return "integer, integer -> integer";
    case lang::Signature::kIntegerToInt32:
      return "integer -> int32";
    case lang::Signature::kFloat32:
      return "number -> float32";
    case lang::Signature::kSelect:
      return "bool, value, value -> value";
  }
  return "";
}

std::string json_of(const lang::IntrinsicInfo& info) {
  const std::string alias = fmt::format("{}f", info.name);
  const bool has_alias = lang::find_intrinsic(alias) == &info;
  return json_object({{"name", json_string(info.name)},
                      {"alias", has_alias ? json_string(alias) : "null"},
                      {"min_arguments", fmt::format("{}", info.min_arguments)},
                      {"max_arguments", fmt::format("{}", info.max_arguments)},
                      {"types", json_string(types_text(info.signature))},
                      {"meaning", json_string(info.meaning)}});
}

}  // namespace

Result<std::string> check(std::string_view text, std::string_view name, const CheckOptions& options) {
  return guarded([&]() -> Result<std::string> {
    TC_TRY(checked, check_text(source_of(text, name), options));
    return to_json(checked);
  });
}

Result<std::string> format(std::string_view text, std::string_view name) {
  return guarded([&]() -> Result<std::string> {
    TC_TRY(file, lang::parse(source_of(text, name)));
    return lang::format(file);
  });
}

std::string words() {
  std::vector<std::string> keywords, types, constants, intrinsics, symbols;
  for (const lang::KeywordInfo& info : lang::kKeywords) {
    keywords.push_back(json_object({{"name", json_string(info.name)}, {"meaning", json_string(info.meaning)}}));
  }
  for (const ScalarTypeName& one : all_scalar_type_names()) {
    types.push_back(json_object({{"name", json_string(one.name)},
                                 {"type", json_string(name_of(one.type))},
                                 {"bits", fmt::format("{}", bits_of(one.type))}}));
  }
  for (const std::string_view name : lang::kConstantNames) {
    constants.push_back(json_object({{"name", json_string(name)}}));
  }
  for (const lang::IntrinsicInfo& info : lang::all_intrinsics()) intrinsics.push_back(json_of(info));
  for (const std::string_view symbol : lang::all_symbols()) symbols.push_back(json_string(symbol));
  return json_object({{"keywords", json_array(keywords)},
                      {"types", json_array(types)},
                      {"constants", json_array(constants)},
                      {"intrinsics", json_array(intrinsics)},
                      {"symbols", json_array(symbols)}});
}

}  // namespace tc::api
