#pragma once

#include <optional>
#include <string>

#include "tests/random/scope.h"

namespace tc::testing {

/// Writes random expressions over the names in scope, and marks the plain indices and the lets that they use.
class Expressions {
 public:
  explicit Expressions(Scope& scope) : scope_(scope) {}

  std::string expression(Kind kind, int depth);
  std::string literal(Kind kind);

 private:
  std::string leaf(Kind kind);
  /// A read of a random tensor of the kind, or of another by way of a cast.
  std::optional<std::string> tensor_read(Kind kind);
  std::string converted(const std::string& text, Kind from, Kind to);
  /// Into [0, extent): an index alone, affine, constant, or data-dependent.
  std::optional<std::string> subscript(const Extent& extent);
  std::optional<std::string> plain_subscript(const Extent& extent);
  std::vector<std::string> affine_subscripts(const Extent& extent);
  /// I(i), of an integer tensor made for extents of this value.
  std::optional<std::string> gather(int64_t bound);
  std::string float_expression(int depth);
  std::string integer_expression(int depth);
  std::string bool_expression(int depth);

  Scope& scope_;
};

}  // namespace tc::testing
