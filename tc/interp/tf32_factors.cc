#include "tc/interp/tf32_factors.h"

namespace tc::interp {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

Expr about_tf32(const Expr& e) { return hi::Call::make(e.type(), kAboutTf32, {e}, hi::Call::PureExtern); }

}  // namespace

ir::Program with_tf32_factors(ir::Program program) {
  for (ir::Statement& s : program.statements) {
    // A temporary of products may be computed where they are summed up.
    const bool may_be_summed = s.assign == ir::Assign::kAdd || s.assign == ir::Assign::kSet;
    const auto* product = s.value.as<hi::Mul>();
    if (!product || !may_be_summed || s.value.type() != Halide::Float(32)) continue;
    s.value = hi::Mul::make(about_tf32(product->a), about_tf32(product->b));
  }
  return program;
}

}  // namespace tc::interp
