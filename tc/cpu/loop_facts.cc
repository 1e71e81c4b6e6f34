#include "tc/cpu/loop_facts.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/lp.h>
#include <isl/set.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "tc/ir/halide_compat.h"
#include "tc/poly/isl_ext.h"

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// constant + the sum of multiples of variables, and of minima and maxima.
struct Sum {
  int64_t constant = 0;
  std::map<std::string, int64_t> variables;
  std::vector<std::pair<Expr, int64_t>> extrema;
};

bool is_index(const Expr& expr) { return expr.type() == Halide::Int(32) || expr.type() == Halide::Int(64); }

/// sum += factor * expr. False if that is not such a sum, or does not fit.
bool add(Sum& sum, const Expr& expr, int64_t factor) {
  if (!is_index(expr)) return false;
  if (const int64_t* value = ir::constant_int(expr)) {
    int64_t product;
    return !__builtin_mul_overflow(factor, *value, &product) &&
           !__builtin_add_overflow(sum.constant, product, &sum.constant);
  }
  if (const auto* op = expr.as<hi::Variable>()) {
    int64_t& coefficient = sum.variables[op->name];
    return !__builtin_add_overflow(coefficient, factor, &coefficient);
  }
  if (const auto* op = expr.as<hi::Cast>()) return add(sum, op->value, factor);
  if (const auto* op = expr.as<hi::Add>()) return add(sum, op->a, factor) && add(sum, op->b, factor);
  if (const auto* op = expr.as<hi::Sub>())
    return factor != INT64_MIN && add(sum, op->a, factor) && add(sum, op->b, -factor);
  if (const auto* op = expr.as<hi::Mul>()) {
    const int64_t* a = ir::constant_int(op->a);
    const int64_t* b = ir::constant_int(op->b);
    int64_t scaled;
    if (a == nullptr && b == nullptr) return false;
    if (__builtin_mul_overflow(factor, b != nullptr ? *b : *a, &scaled)) return false;
    return add(sum, b != nullptr ? op->a : op->b, scaled);
  }
  if (expr.as<hi::Min>() == nullptr && expr.as<hi::Max>() == nullptr) return false;
  sum.extrema.emplace_back(expr, factor);
  return true;
}

std::optional<Sum> difference(const Expr& a, const Expr& b, int64_t constant) {
  Sum sum;
  sum.constant = constant;
  if (!add(sum, a, 1) || !add(sum, b, -1)) return std::nullopt;
  return sum;
}

/// The conjuncts of a condition as sums that are not negative; nothing for one that is none.
std::vector<std::optional<Sum>> conjuncts(const Expr& condition) {
  if (hi::is_const_one(condition)) return {};
  if (const auto* op = condition.as<hi::And>()) {
    std::vector<std::optional<Sum>> result = conjuncts(op->a);
    for (auto& more : conjuncts(op->b)) result.push_back(std::move(more));
    return result;
  }
  if (const auto* op = condition.as<hi::LE>()) return {difference(op->b, op->a, 0)};
  if (const auto* op = condition.as<hi::LT>()) return {difference(op->b, op->a, -1)};
  if (const auto* op = condition.as<hi::GE>()) return {difference(op->a, op->b, 0)};
  if (const auto* op = condition.as<hi::GT>()) return {difference(op->a, op->b, -1)};
  if (const auto* op = condition.as<hi::EQ>()) return {difference(op->a, op->b, 0), difference(op->b, op->a, 0)};
  return {std::nullopt};
}

/// A sum with one extremum replaced by each of its operands: the smaller or the larger of the two.
struct Cases {
  std::optional<Sum> a;
  std::optional<Sum> b;
  bool smaller;
};

Cases split(Sum sum) {
  const auto [extremum, factor] = sum.extrema.back();
  sum.extrema.pop_back();
  const auto* least = extremum.as<hi::Min>();
  const auto* most = extremum.as<hi::Max>();
  Cases result{sum, sum, (least != nullptr) == (factor > 0)};
  if (!add(*result.a, least != nullptr ? least->a : most->a, factor)) result.a.reset();
  if (!add(*result.b, least != nullptr ? least->b : most->b, factor)) result.b.reset();
  return result;
}

/// Calls `visit` with linear sums all of which are not negative because this one is not.
void for_each_fact(const Sum& sum, const std::function<void(const Sum&)>& visit) {
  if (sum.extrema.empty()) return visit(sum);
  const Cases cases = split(sum);
  if (!cases.smaller) return;
  if (cases.a) for_each_fact(*cases.a, visit);
  if (cases.b) for_each_fact(*cases.b, visit);
}

/// True if `test` shows enough linear sums not to be negative that this one is not.
bool all_cases(const Sum& sum, const std::function<bool(const Sum&)>& test) {
  if (sum.extrema.empty()) return test(sum);
  const Cases cases = split(sum);
  const bool a = cases.a && all_cases(*cases.a, test);
  if (a != cases.smaller) return a;
  return cases.b && all_cases(*cases.b, test);
}

/// The sum on the space of the facts, which has all its variables.
isl::aff to_isl(const Sum& sum, const std::map<std::string, int>& dimension, const isl::basic_set& facts) {
  const isl::ctx ctx = facts.ctx();
  isl_aff* result = isl_aff_zero_on_domain(isl_local_space_from_space(isl_basic_set_get_space(facts.get())));
  result = isl_aff_set_constant_val(result, poly::make_val(ctx, sum.constant).release());
  for (const auto& [name, coefficient] : sum.variables) {
    if (coefficient == 0) continue;
    result =
        isl_aff_set_coefficient_val(result, isl_dim_in, dimension.at(name), poly::make_val(ctx, coefficient).release());
  }
  return isl::manage(result);
}

}  // namespace

LoopFacts::LoopFacts(isl::ctx ctx)
    : facts_(isl::manage(isl_basic_set_universe(isl_space_set_alloc(ctx.get(), 0, 0)))) {}

void LoopFacts::assume(const Expr& condition) {
  for (const std::optional<Sum>& conjunct : conjuncts(condition)) {
    if (!conjunct) continue;
    for_each_fact(*conjunct, [this](const Sum& sum) {
      for (const auto& [name, coefficient] : sum.variables) {
        if (!dimension_.insert({name, static_cast<int>(dimension_.size())}).second) continue;
        facts_ = isl::manage(isl_basic_set_add_dims(facts_.release(), isl_dim_set, 1));
      }
      const isl::aff value = to_isl(sum, dimension_, facts_);
      facts_ = isl::manage(isl_basic_set_add_constraint(facts_.release(), isl_inequality_from_aff(value.copy())));
    });
  }
}

bool LoopFacts::imply(const Expr& condition) const {
  auto holds = [this](const Sum& sum) {
    for (const auto& [name, coefficient] : sum.variables) {
      if (coefficient != 0 && dimension_.count(name) == 0) return false;
    }
    const isl::aff value = to_isl(sum, dimension_, facts_);
    const isl::val least = isl::manage(isl_basic_set_min_lp_val(facts_.get(), value.get()));
    // Integers above -1 are not negative.
    return least.is_rat() && least.gt(isl::val::negone(facts_.ctx()));
  };
  const std::vector<std::optional<Sum>> parts = conjuncts(condition);
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::optional<Sum>& part) { return part && all_cases(*part, holds); });
}

}  // namespace tc::cpu
