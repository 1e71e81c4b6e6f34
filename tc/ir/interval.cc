#include "tc/ir/interval.h"

#include <algorithm>
#include <limits>

#include "tc/ir/halide_compat.h"
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
    const int64_t* divisor = constant_int(op->b);
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

namespace {

using Wide = __int128;

/// Interval arithmetic, wide enough for one operation on 64 bits.
class Bounds {
 public:
  explicit Bounds(const std::map<std::string, ConstantInterval>& indices) : indices_(indices) {}

  std::optional<ConstantInterval> of(const Expr& e) const {
    if (const int64_t* value = constant_int(e)) return ConstantInterval{*value, *value};
    if (const auto* variable = e.as<hi::Variable>()) {
      const auto known = indices_.find(variable->name);
      return known == indices_.end() ? std::nullopt : std::optional(known->second);
    }
    if (const auto* op = e.as<hi::Select>()) return hull(of(op->true_value), of(op->false_value));
    if (const auto* op = e.as<hi::Call>()) {
      if (op->name == "tc.floor_div") return combine(op->args[0], op->args[1], quotient);
      if (op->name == "tc.floor_mod") return combine(op->args[0], op->args[1], remainder);
      return std::nullopt;
    }
    if (const auto* op = e.as<hi::Add>()) return combine(op->a, op->b, sum);
    if (const auto* op = e.as<hi::Sub>()) return combine(op->a, op->b, difference);
    if (const auto* op = e.as<hi::Mul>()) return combine(op->a, op->b, product);
    if (const auto* op = e.as<hi::Div>()) return combine(op->a, op->b, quotient);
    if (const auto* op = e.as<hi::Mod>()) return combine(op->a, op->b, remainder);
    if (const auto* op = e.as<hi::Min>()) return combine(op->a, op->b, least);
    if (const auto* op = e.as<hi::Max>()) return combine(op->a, op->b, greatest);
    return std::nullopt;
  }

 private:
  using Interval = std::optional<ConstantInterval>;

  template <typename Operation>
  Interval combine(const Expr& a, const Expr& b, Operation operation) const {
    const Interval left = of(a), right = of(b);
    if (!left || !right) return std::nullopt;
    return operation(*left, *right);
  }

  static Interval fit(Wide lower, Wide upper) {
    constexpr Wide kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
    if (lower < kLeast || upper > kMost) return std::nullopt;
    return ConstantInterval{static_cast<int64_t>(lower), static_cast<int64_t>(upper)};
  }
  static Interval hull(const Interval& a, const Interval& b) {
    if (!a || !b) return std::nullopt;
    return ConstantInterval{std::min(a->lower, b->lower), std::max(a->upper, b->upper)};
  }
  static Interval sum(const ConstantInterval& a, const ConstantInterval& b) {
    return fit(Wide{a.lower} + b.lower, Wide{a.upper} + b.upper);
  }
  static Interval difference(const ConstantInterval& a, const ConstantInterval& b) {
    return fit(Wide{a.lower} - b.upper, Wide{a.upper} - b.lower);
  }
  static Interval product(const ConstantInterval& a, const ConstantInterval& b) {
    const auto [lower, upper] = std::minmax(
        {Wide{a.lower} * b.lower, Wide{a.lower} * b.upper, Wide{a.upper} * b.lower, Wide{a.upper} * b.upper});
    return fit(lower, upper);
  }
  static Interval least(const ConstantInterval& a, const ConstantInterval& b) {
    return ConstantInterval{std::min(a.lower, b.lower), std::min(a.upper, b.upper)};
  }
  static Interval greatest(const ConstantInterval& a, const ConstantInterval& b) {
    return ConstantInterval{std::max(a.lower, b.lower), std::max(a.upper, b.upper)};
  }
  static Wide floor_of(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
  /// R8: by zero it is 0. Otherwise the extremes lie at the divisors that are largest or nearest to zero.
  static Interval quotient(const ConstantInterval& a, const ConstantInterval& b) {
    std::vector<Wide> values;
    if (b.lower <= 0 && b.upper >= 0) values.push_back(0);
    std::vector<Wide> divisors{b.lower, b.upper};
    if (b.lower <= 1 && b.upper >= 1) divisors.push_back(1);
    if (b.lower <= -1 && b.upper >= -1) divisors.push_back(-1);
    for (const Wide divisor : divisors) {
      if (divisor == 0) continue;
      values.push_back(floor_of(a.lower, divisor));
      values.push_back(floor_of(a.upper, divisor));
    }
    const auto [lower, upper] = std::minmax_element(values.begin(), values.end());
    return fit(*lower, *upper);
  }
  /// R8: the sign of the divisor, smaller than it, and 0 by zero. No more than a dividend that is not negative.
  static Interval remainder(const ConstantInterval& a, const ConstantInterval& b) {
    const Wide lower = b.lower < 0 ? Wide{b.lower} + 1 : 0;
    Wide upper = b.upper > 0 ? Wide{b.upper} - 1 : 0;
    if (a.lower >= 0) upper = std::min<Wide>(upper, a.upper);
    return fit(lower, upper);
  }

  const std::map<std::string, ConstantInterval>& indices_;
};

}  // namespace

std::optional<ConstantInterval> constant_bounds(const Expr& expr,
                                                const std::map<std::string, ConstantInterval>& indices) {
  return Bounds(indices).of(expr);
}

}  // namespace tc::ir
