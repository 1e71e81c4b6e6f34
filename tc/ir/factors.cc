#include "tc/ir/factors.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

std::vector<Expr> factors_of(const Expr& e) {
  const auto* product = e.as<hi::Mul>();
  if (product == nullptr) return {e};
  std::vector<Expr> factors = factors_of(product->a);
  for (Expr& factor : factors_of(product->b)) factors.push_back(std::move(factor));
  return factors;
}

bool is_narrow_factor(const Expr& e) {
  const auto* cast = e.as<hi::Cast>();
  if (cast == nullptr || e.type() != Halide::Float(32)) return false;
  const Halide::Type from = cast->value.type();
  return from == Halide::Float(16) || (!from.is_float() && from.bits() == 8);
}

}  // namespace tc::ir
