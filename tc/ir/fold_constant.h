#pragma once

#include <Halide.h>

namespace tc::ir {

/// The constant that an integer or bool operation on constants is, or the operation itself. It wraps in its own type as
/// a run does; Halide's simplifier calls that an overflow, also of the difference by which it compares. Looks at the
/// outermost operation only.
Halide::Expr fold_constant(const Halide::Expr& e);

/// Halide's simplifier; the expression itself where that finds an overflow.
Halide::Expr simplify_unless_overflow(const Halide::Expr& e);

}  // namespace tc::ir
