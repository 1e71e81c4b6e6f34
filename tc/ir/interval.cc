#include "tc/ir/interval.h"

#include <algorithm>

#include "tc/ir/index_expr.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool mentions_any(const Expr& e, const std::vector<std::string>& indices) {
  const auto used = variables_of(e);
  return std::any_of(indices.begin(), indices.end(), [&](const std::string& i) { return used.contains(i); });
}

IndexInterval from_halide(const hi::Interval& interval, const Ranges& ranges) {
  IndexInterval result;
  if (interval.has_lower_bound()) result.lower = simplify_index(interval.min, ranges.sizes);
  if (interval.has_upper_bound()) result.upper = simplify_index(interval.max, ranges.sizes);
  return result;
}

}  // namespace

bool is_monotone(const Expr& e, const std::vector<std::string>& indices) {
  if (e.as<hi::IntImm>() || e.as<hi::Variable>()) return true;
  if (is_data_dependent(e)) return false;
  if (!mentions_any(e, indices)) return true;
  if (const auto* op = e.as<hi::Add>()) return is_monotone(op->a, indices) && is_monotone(op->b, indices);
  if (const auto* op = e.as<hi::Sub>()) return is_monotone(op->a, indices) && is_monotone(op->b, indices);
  if (const auto* op = e.as<hi::Mul>()) {
    if (mentions_any(op->a, indices) && mentions_any(op->b, indices)) return false;
    return is_monotone(op->a, indices) && is_monotone(op->b, indices);
  }
  if (const auto* op = e.as<hi::Div>()) {
    const int64_t* divisor = hi::as_const_int(op->b);
    return divisor && *divisor > 0 && is_monotone(op->a, indices);
  }
  return false;
}

Expr coefficient_of(const Expr& e, const std::string& index) {
  if (!mentions(e, index)) return index_constant(0);
  if (e.as<hi::Variable>()) return index_constant(1);
  auto combine = [&](const Expr& a, const Expr& b, bool subtract) -> Expr {
    const Expr left = coefficient_of(a, index), right = coefficient_of(b, index);
    if (!left.defined() || !right.defined()) return Expr();
    return hi::simplify(subtract ? left - right : left + right);
  };
  if (const auto* op = e.as<hi::Add>()) return combine(op->a, op->b, false);
  if (const auto* op = e.as<hi::Sub>()) return combine(op->a, op->b, true);
  if (const auto* op = e.as<hi::Mul>()) {
    const bool left = mentions(op->a, index);
    const Expr inner = coefficient_of(left ? op->a : op->b, index);
    return inner.defined() ? hi::simplify(inner * (left ? op->b : op->a)) : Expr();
  }
  return Expr();
}

std::optional<IndexInterval> solve_subscript(const Expr& subscript, const Expr& extent, const std::string& index,
                                             const Ranges& ranges) {
  const Expr inside = simplify_index(subscript >= index_constant(0) && subscript < extent, ranges.sizes);
  const Expr for_all = hi::and_condition_over_domain(inside, ranges.solved);
  const hi::Interval found = hi::solve_for_inner_interval(for_all, index);
  if (found.is_empty()) return IndexInterval{index_constant(0), index_constant(-1)};
  if (!found.has_upper_bound()) return std::nullopt;
  return from_halide(found, ranges);
}

IndexInterval solve_strided(const Expr& rest, const Expr& coefficient, const Expr& extent, const Ranges& ranges,
                            Expr& room) {
  const IndexInterval around = bounds_of(rest, ranges);
  IndexInterval result;
  // ceil(-lower / coefficient), and floor((extent - 1 - upper) / coefficient)
  if (around.lower.defined()) result.lower = (coefficient - 1 - around.lower) / coefficient;
  if (around.lower.defined() && hi::is_const_zero(around.lower)) result.lower = index_constant(0);
  if (around.upper.defined()) {
    room = simplify_index(extent - 1 - around.upper, ranges.sizes);
    result.upper = simplify_index(room / coefficient, ranges.sizes);
  }
  return result;
}

IndexInterval bounds_of(const Expr& expr, const Ranges& ranges) {
  return from_halide(hi::bounds_of_expr_in_scope(expr, ranges.solved), ranges);
}

}  // namespace tc::ir
