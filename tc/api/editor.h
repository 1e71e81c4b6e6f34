#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "tc/support/error.h"
#include "tc/support/scalar_type.h"

/// What editors ask of a text: errors, ranges and types as JSON, the canonical form, the words of the language.
/// Nothing is compiled.
namespace tc::api {

struct CheckOptions {
  std::map<std::string, int64_t> sizes{};    ///< values of sizes; those that no def has are ignored
  std::map<std::string, int64_t> scalars{};  ///< values of scalars that are compiled in; likewise
  /// Of generic defs' variables, by "VARIABLE" or "DEF.VARIABLE": checks these instances only. A def without any is
  /// checked for all types.
  std::map<std::string, ScalarType> types{};
  bool first_instance = false;     ///< of a generic def, checks instances only until one has no errors
  int64_t time_limit_ms = 60'000;  ///< of the whole check
  std::stop_token cancel{};
};

/// Checks a text. Returns the JSON object that `tensorc check --json` prints; docs/editors.md has its schema. Errors of
/// the text are in it. `name` stands for the text in it. Errors: a limit below 1; `types` without a generic def, or
/// that fit none; as ErrorKind::kCancelled, cancellation.
Result<std::string> check(std::string_view text, std::string_view name = "tc", const CheckOptions& options = {});

/// The text in canonical form, as `tensorc fmt` prints it. Errors: those of syntax.
Result<std::string> format(std::string_view text, std::string_view name = "tc");

/// All words of the language from the compiler's own tables, as a JSON object: keywords, types, constants, intrinsics
/// and symbols, with what each means.
std::string words();

}  // namespace tc::api
