#pragma once

#include <Halide.h>

#include <functional>
#include <string>

namespace tc::ir {

/// How names and floats are written.
struct TextStyle {
  std::function<std::string(const std::string&)> variable;  ///< the identity if empty
  std::function<std::string(const std::string&)> tensor;    ///< of tensors and intrinsics; the identity if empty
  bool exact = false;  ///< floats in hexadecimal and every constant with its type, for the canonical form
};

/// An expression of a Program in the notation of the language: `A(i + 1, k) * float32(n)`. int64 casts of index
/// arithmetic are not shown; a choice that must not evaluate both branches is `c ? a : b`, any other `select(c, a, b)`.
/// An undefined expression, of an extent that is not known yet, is "?".
std::string to_text(const Halide::Expr& expr, const TextStyle& style = {});

/// "float32", of a Halide type.
std::string type_text(Halide::Type type);

}  // namespace tc::ir
