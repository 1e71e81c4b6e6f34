#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "tc/support/source.h"

namespace tc {

/// A remark that belongs to a diagnostic: "'A' is declared here".
struct Note {
  std::optional<SourceRange> range;
  std::string text;
};

/// As printed to a terminal: "file:1:2: note: ...", the source line and a marker, one after the other.
std::string to_string(const SourcePtr& source, const std::vector<Note>& notes);

/// One error of the user's: a sentence that quotes the names and numbers involved, where it is, and notes.
/// Errors without a place in a source (a wrong shape at a call, a missing file) have no range.
struct Diagnostic {
  std::optional<SourceRange> range;
  std::string message;
  std::vector<Note> notes;
};

/// Whose fault an error is, and what to do about it.
enum class ErrorKind {
  kUser,       ///< the text, the sizes, the tensors or the options are wrong
  kBudget,     ///< the compilation would take more than the budget allows
  kCancelled,  ///< the caller asked to stop
  kInternal,   ///< ours: please report it
};

/// What a fallible call returns instead of its value: one or more diagnostics and the source they point into.
class Error {
 public:
  Error(SourcePtr source, std::vector<Diagnostic> diagnostics)
      : source_(std::move(source)), diagnostics_(std::move(diagnostics)) {}
  /// An error without a place.
  explicit Error(std::string message) : diagnostics_{{std::nullopt, std::move(message), {}}} {}
  /// An error at one place.
  Error(SourcePtr source, SourceRange range, std::string message, std::vector<Note> notes = {})
      : source_(std::move(source)), diagnostics_{{range, std::move(message), std::move(notes)}} {}

  /// The same error, of another kind.
  Error with_kind(ErrorKind kind) && {
    kind_ = kind;
    return std::move(*this);
  }
  ErrorKind kind() const { return kind_; }
  /// Whether the work ended early, and says nothing of its subject.
  bool ended_early() const { return kind_ == ErrorKind::kBudget || kind_ == ErrorKind::kCancelled; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  const SourcePtr& source() const { return source_; }

  /// As printed to a terminal: file:line:column, the sentence, the source line, a marker under the exact text, notes.
  std::string to_string() const;

 private:
  ErrorKind kind_ = ErrorKind::kUser;
  SourcePtr source_;
  std::vector<Diagnostic> diagnostics_;
};

template <typename T>
using Result = tl::expected<T, Error>;

}  // namespace tc
