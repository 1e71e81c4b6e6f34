#include "tc/ir/linear_form.h"
#include "tc/ir/halide_compat.h"

#include <utility>

namespace tc::ir {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

void add_scaled(LinearForm& form, const LinearForm& other, int64_t factor) {
  form.constant += factor * other.constant;
  for (const auto& [variable, coefficient] : other.coefficients) {
    int64_t& mine = form.coefficients[variable];
    mine += factor * coefficient;
    if (mine == 0) form.coefficients.erase(variable);
  }
}

}  // namespace

std::optional<LinearForm> linear_form(const Expr& expr) {
  if (const int64_t* value = constant_int(expr)) return LinearForm{{}, *value};
  if (const auto* op = expr.as<hi::Variable>()) return LinearForm{{{op->name, 1}}, 0};
  auto both = [](const Expr& a, const Expr& b, int64_t factor) -> std::optional<LinearForm> {
    auto x = linear_form(a);
    auto y = linear_form(b);
    if (!x || !y) return std::nullopt;
    add_scaled(*x, *y, factor);
    return x;
  };
  if (const auto* op = expr.as<hi::Add>()) return both(op->a, op->b, 1);
  if (const auto* op = expr.as<hi::Sub>()) return both(op->a, op->b, -1);
  if (const auto* op = expr.as<hi::Mul>()) {
    auto x = linear_form(op->a);
    auto y = linear_form(op->b);
    if (!x || !y) return std::nullopt;
    if (!y->coefficients.empty()) std::swap(x, y);
    if (!y->coefficients.empty()) return std::nullopt;
    LinearForm result;
    add_scaled(result, *x, y->constant);
    return result;
  }
  return std::nullopt;
}

LinearForm difference(const LinearForm& a, const LinearForm& b) {
  LinearForm result = a;
  add_scaled(result, b, -1);
  return result;
}

}  // namespace tc::ir
