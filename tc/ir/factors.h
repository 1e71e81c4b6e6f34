#pragma once

#include <vector>

#include "tc/ir/program.h"

namespace tc::ir {

/// The factors of a product, in the order of the text: one, if it is none.
std::vector<Halide::Expr> factors_of(const Halide::Expr& e);

/// Whether a float32 has the magnitude of a float16, and is none of a greater type that was rounded: products of some
/// such factors, and sums of them, overflow in no order.
bool is_narrow_factor(const Halide::Expr& e);

}  // namespace tc::ir
