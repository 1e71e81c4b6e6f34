#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tc/api/editor.h"
#include "tc/compile/pipeline.h"
#include "tc/lang/instantiate.h"
#include "tc/support/result.h"

/// What can be said of a text without compiling it: errors, types, ranges, preconditions.
namespace tc::api {

/// A def, or an instance of a generic one.
struct CheckedDef {
  std::string name;  ///< of an instance: "softmax<float32>"
  lang::TypeArguments types{};
  compile::Compilation compilation{};        ///< as far as it got
  std::map<std::string, int64_t> sizes{};    ///< of those given, the def's
  std::map<std::string, int64_t> scalars{};  ///< likewise
  Result<void> done{};
};

/// A def of the text, with its instances if it is generic.
struct CheckedDefinition {
  const lang::Definition* definition;  ///< in CheckedText::file
  std::vector<CheckedDef> instances;   ///< one if it is not generic
  /// Of a generic def, the instances that the time limit left unchecked, and how many there are in all. The first of
  /// them is also in `instances` if its check had begun, or if there is no other.
  std::vector<std::string> unchecked{};
  size_t wanted = 1;

  /// The instance that stands for all: the first without errors. Null if there is none.
  const CheckedDef* good() const;
  /// The error that the time limit is, at the def's name. Only if `unchecked` has any.
  Error out_of_time(const SourcePtr& source, int64_t limit_ms) const;
};

struct CheckedText {
  SourcePtr source;
  std::shared_ptr<const lang::File> file;  ///< null after errors of syntax
  /// Errors that need neither ranges nor sizes. `definitions` then has the defs without such errors.
  std::optional<Error> error{};
  std::vector<CheckedDefinition> definitions{};
  int64_t time_limit_ms = 0;

  bool ok() const;
};

/// Checks all defs of a text, each as far as it is without errors. The time limit is that of all of them together.
/// After the first def or instance that ends early, the others are not checked.
/// Errors: options that fit no def of the text. Errors of the text are in the result.
Result<CheckedText> check_text(SourcePtr source, const CheckOptions& options);

/// As docs/editors.md describes it.
std::string to_json(const CheckedText& checked);

}  // namespace tc::api
