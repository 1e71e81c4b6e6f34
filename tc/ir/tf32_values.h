#pragma once

#include <string>

#include "tc/ir/program.h"

namespace tc::ir {

/// The name of the intrinsic in expressions.
inline constexpr const char* kTf32 = "tf32";

/// The argument of tf32(), if the expression is a call of it.
const Halide::Expr* tf32_argument(const Halide::Expr& e);

/// A float32 rounded to TF32.
Halide::Expr tf32_of(const Halide::Expr& e);

/// Whether TF32 holds each element of a temporary by the text: all statements that write it set it to tf32(...), to
/// zero, to a float of at most 16 bits or an integer of 8, to an element of such a temporary, or to a choice between
/// these.
bool holds_tf32(const Program& program, const std::string& tensor);

}  // namespace tc::ir
