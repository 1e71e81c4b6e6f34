#pragma once

#include <Halide.h>

#include <optional>

/// A choice of a Statement's value, of either kind.
namespace tc::ir {

struct Choice {
  Halide::Expr condition, yes, no;
  bool is_select = false;  ///< both values are computed; of the intrinsic only the one that is chosen
};

/// Of a Select, or of the intrinsic with three arguments.
std::optional<Choice> choice_of(const Halide::Expr& e);
Halide::Expr make_choice(const Choice& choice);

/// A choice of the second kind.
Halide::Expr either(const Halide::Expr& condition, const Halide::Expr& yes, const Halide::Expr& no);

}  // namespace tc::ir
