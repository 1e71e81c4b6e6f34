#include "tc/ir/index_expr.h"

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "tc/ir/fold_constant.h"
#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

Expr index_constant(int64_t value) { return hi::IntImm::make(index_type(), value); }

Expr scalar_variable(Halide::Type type, const std::string& name) {
  return hi::Variable::make(type, name, HalideParameter(type, false, 0, name));
}

Expr index_variable(const std::string& name) { return hi::Variable::make(index_type(), name); }

std::string extent_variable(const std::string& tensor, int dimension) {
  return fmt::format("{}.{}", tensor, dimension);
}

int64_t begin_of(const Index& index) {
  const int64_t* value = constant_int(index.begin);
  TC_CHECK(value != nullptr, "a range of a specialised program is not constant");
  return *value;
}

int64_t extent_of(const Index& index) {
  const int64_t* end = constant_int(index.end);
  TC_CHECK(end != nullptr, "a range of a specialised program is not constant");
  return *end - begin_of(index);
}

namespace {

int64_t count(const Statement& statement, bool with_reductions) {
  int64_t result = 1;
  for (const Index& index : statement.indices) {
    if (index.is_reduction && !with_reductions) continue;
    if (__builtin_mul_overflow(result, extent_of(index), &result)) return std::numeric_limits<int64_t>::max();
  }
  return result;
}

}  // namespace

int64_t instance_count(const Statement& statement) { return count(statement, true); }
int64_t result_count(const Statement& statement) { return count(statement, false); }

Index make_index(const std::string& name, int64_t extent, bool is_reduction) {
  Index index;
  index.name = name;
  index.begin = index_constant(0);
  index.end = index_constant(extent);
  index.is_reduction = is_reduction;
  return index;
}

std::optional<int64_t> constant_value(const Expr& expr) {
  if (!expr.defined()) return std::nullopt;
  const Expr simple = hi::simplify(fold_divisions(expr));
  const int64_t* value = constant_int(simple);
  if (!value) return std::nullopt;
  return *value;
}

Expr substitute_variables(const Expr& expr, const Substitution& replacements) {
  if (!expr.defined() || replacements.empty()) return expr;
  return hi::substitute(replacements, expr);
}

Expr simplify_index(const Expr& expr, const std::vector<std::string>& sizes) {
  if (!expr.defined()) return expr;
  hi::Scope<hi::Interval> bounds;
  for (const std::string& size : sizes) bounds.push(size, hi::Interval(index_constant(0), hi::Interval::pos_inf()));
  return hi::simplify(expr, true, bounds);
}

Expr simplify_indices(const Expr& expr, const std::vector<Index>& indices) {
  struct Simplifier : hi::IRMutator {
    hi::Scope<hi::Interval> bounds;
    using hi::IRMutator::mutate;
    Expr mutate(const Expr& e) override {
      return e.type() == index_type() && !is_data_dependent(e) ? hi::simplify(e, true, bounds) : IRMutator::mutate(e);
    }
  } simplifier;
  for (const Index& index : indices) {
    simplifier.bounds.push(index.name, hi::Interval(index.begin, hi::simplify(index.end - 1)));
  }
  return simplifier.mutate(expr);
}

namespace {

class Variables : public hi::IRVisitor {
 public:
  std::set<std::string> names;

 private:
  using hi::IRVisitor::visit;
  void visit(const hi::Variable* op) override { names.insert(op->name); }
};

class DataDependence : public hi::IRVisitor {
 public:
  bool found = false;

 private:
  using hi::IRVisitor::visit;
  void visit(const hi::Variable* op) override { found = found || op->type != index_type() || op->param.defined(); }
  void visit(const hi::Call* op) override {
    // The only pure calls of index arithmetic are ours and the choice; every other call reads a tensor or computes
    // with values.
    const bool pure = op->name == "tc.floor_div" || op->name == "tc.floor_mod" || op->is_intrinsic();
    found = found || !pure;
    hi::IRVisitor::visit(op);
  }
};

}  // namespace

std::set<std::string> variables_of(const Expr& expr) {
  Variables visitor;
  if (expr.defined()) expr.accept(&visitor);
  return std::move(visitor.names);
}

bool mentions(const Expr& expr, const std::string& variable) { return variables_of(expr).contains(variable); }

bool is_data_dependent(const Expr& expr) {
  DataDependence visitor;
  if (expr.defined()) expr.accept(&visitor);
  return visitor.found;
}

std::vector<Expr> conjuncts_of(const Expr& condition) {
  if (!condition.defined()) return {};
  if (const auto* both = condition.as<hi::And>()) {
    std::vector<Expr> result = conjuncts_of(both->a);
    for (Expr& e : conjuncts_of(both->b)) result.push_back(e);
    return result;
  }
  return {condition};
}

Expr conjunction(const Expr& a, const Expr& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return hi::And::make(a, b);
}

void transform_expressions(Statement& statement, const std::function<Expr(const Expr&)>& function) {
  auto apply = [&](Expr& e) {
    if (e.defined()) e = function(e);
  };
  for (Expr& e : statement.subscripts) apply(e);
  for (Index& index : statement.indices) {
    apply(index.begin);
    apply(index.end);
  }
  apply(statement.guard);
  apply(statement.value);
  for (Access& access : statement.accesses) {
    for (Expr& e : access.subscripts) apply(e);
    apply(access.guard);
  }
  for (IndexValue& value : statement.index_values) {
    apply(value.value);
    apply(value.guard);
  }
}

namespace {

/// What an integer constant of any width holds.
std::optional<int64_t> integer_of(const Expr& e) {
  if (const int64_t* i = constant_int(e)) return *i;
  if (const uint64_t* u = constant_uint(e)) {
    if (*u <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(*u);
  }
  return std::nullopt;
}

/// By a negative constant: floor(a / b) = floor(-a / -b), and the remainder has the sign of the divisor, -(-a mod -b).
/// For index arithmetic only: of data, -a may overflow.
std::optional<Expr> negative_divisor(const Expr& a, int64_t divisor) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  if (divisor >= 0 || divisor == kLeast || a.type() != index_type() || is_data_dependent(a)) return std::nullopt;
  if (const int64_t* value = constant_int(a); value && *value == kLeast) return std::nullopt;
  return index_constant(-divisor);
}

class FoldDivisions : public hi::IRMutator {
  using hi::IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (op->name != "tc.floor_div" && op->name != "tc.floor_mod") return hi::IRMutator::visit(op);
    const Expr a = mutate(op->args[0]), b = hi::simplify(mutate(op->args[1]));
    return op->name == "tc.floor_div" ? floor_div(a, b) : floor_mod(a, b);
  }
};

}  // namespace

Expr fold_divisions(const Expr& expr) { return expr.defined() ? FoldDivisions().mutate(expr) : expr; }

Expr floor_div(const Expr& a, const Expr& b) {
  if (const auto divisor = integer_of(b)) {
    if (*divisor == 0) return hi::make_zero(a.type());
    if (*divisor > 0) return hi::Div::make(a, b);
    if (const auto positive = negative_divisor(a, *divisor))
      return hi::Div::make(simplify_unless_overflow(0 - a), *positive);
  }
  return hi::Call::make(a.type(), "tc.floor_div", {a, b}, hi::Call::PureExtern);
}

Expr floor_mod(const Expr& a, const Expr& b) {
  if (const auto divisor = integer_of(b)) {
    if (*divisor == 0) return hi::make_zero(a.type());
    if (*divisor > 0) return hi::Mod::make(a, b);
    if (const auto positive = negative_divisor(a, *divisor))
      return 0 - hi::Mod::make(simplify_unless_overflow(0 - a), *positive);
  }
  return hi::Call::make(a.type(), "tc.floor_mod", {a, b}, hi::Call::PureExtern);
}

}  // namespace tc::ir
