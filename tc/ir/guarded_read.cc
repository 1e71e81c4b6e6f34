#include "tc/ir/guarded_read.h"

#include <algorithm>
#include <cmath>

#include "tc/ir/linear_form.h"
#include "tc/ir/specialise.h"

namespace tc::ir {

namespace hi = Halide::Internal;
using Halide::Expr;

std::optional<LinearForm> slack(const Expr& comparison) {
  const auto minus = [](const Expr& a, const Expr& b, int64_t more) -> std::optional<LinearForm> {
    if (a.type().is_float()) return std::nullopt;
    const std::optional<LinearForm> x = linear_form(a), y = linear_form(b);
    if (!x || !y) return std::nullopt;
    LinearForm result = difference(*x, *y);
    result.constant -= more;
    return result;
  };
  if (const auto* op = comparison.as<hi::GE>()) return minus(op->a, op->b, 0);
  if (const auto* op = comparison.as<hi::GT>()) return minus(op->a, op->b, 1);
  if (const auto* op = comparison.as<hi::LE>()) return minus(op->b, op->a, 0);
  if (const auto* op = comparison.as<hi::LT>()) return minus(op->b, op->a, 1);
  return std::nullopt;
}

namespace {

/// Adds what a condition says; false if it says anything else.
bool add_bounds(const Expr& condition, const std::vector<LinearForm>& subscripts, std::vector<Inside>& inside) {
  if (const auto* both = condition.as<hi::And>()) {
    return add_bounds(both->a, subscripts, inside) && add_bounds(both->b, subscripts, inside);
  }
  const std::optional<LinearForm> least = slack(condition);
  if (!least) return false;
  for (size_t d = 0; d < subscripts.size(); ++d) {
    const LinearForm& at = subscripts[d];
    if (at.coefficients.empty()) continue;
    if (least->coefficients == at.coefficients) {
      const int64_t bound = at.constant - least->constant;
      inside[d].least = std::max(bound, inside[d].least.value_or(bound));
      return true;
    }
    if (least->coefficients == difference({}, at).coefficients) {
      const int64_t bound = at.constant + least->constant;
      inside[d].greatest = std::min(bound, inside[d].greatest.value_or(bound));
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_negative_zero(const Expr& e) {
  const Expr simple = hi::simplify(e);
  const double* number = hi::as_const_float(simple);
  return number != nullptr && *number == 0 && std::signbit(*number);
}

std::optional<GuardedRead> guarded_read(const Program& program, const hi::Call* choice) {
  if (!choice->is_intrinsic(hi::Call::if_then_else) || is_negative_zero(choice->args[2])) return std::nullopt;
  const auto* cast = choice->args[1].as<hi::Cast>();
  const auto* read = (cast ? cast->value : choice->args[1]).as<hi::Call>();
  if (!read || !is_tensor_read(program, read) || read->args.empty()) return std::nullopt;
  std::vector<LinearForm> subscripts;
  for (const Expr& subscript : read->args) {
    const std::optional<LinearForm> form = linear_form(subscript);
    if (!form) return std::nullopt;
    subscripts.push_back(*form);
  }
  GuardedRead result{read, std::vector<Inside>(subscripts.size()), choice->args[2]};
  if (!add_bounds(choice->args[0], subscripts, result.inside)) return std::nullopt;
  // No element is needed that the tensor does not have.
  const Shape extents = constant_shape(program.tensor(read->name));
  for (size_t d = 0; d < extents.size(); ++d) {
    Inside& bounds = result.inside[d];
    if (bounds.least) bounds.least = std::max<int64_t>(*bounds.least, 0);
    if (bounds.greatest) bounds.greatest = std::min<int64_t>(*bounds.greatest, extents[d] - 1);
  }
  return result;
}

}  // namespace tc::ir
