#include "tc/gpu/strategy/contraction/idle_points.h"

#include <isl/set.h>
#include <isl/space.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/strategy/contraction/online_presence.h"
#include "tc/ir/combine.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/reads.h"
#include "tc/poly/affine.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// The conditions that values are chosen by, and their parts.
class Conditions : public hi::IRVisitor {
 public:
  std::vector<Expr> all;

 private:
  using IRVisitor::visit;
  void add(const Expr& condition) {
    if (hi::is_const(condition)) return;
    const auto is_it = [&](const Expr& e) { return hi::equal(e, condition); };
    if (std::none_of(all.begin(), all.end(), is_it)) all.push_back(condition);
    if (const auto* op = condition.as<hi::And>()) add(op->a), add(op->b);
    if (const auto* op = condition.as<hi::Or>()) add(op->a), add(op->b);
    if (const auto* op = condition.as<hi::Not>()) add(op->a);
  }
  void visit(const hi::Select* op) override {
    add(op->condition);
    IRVisitor::visit(op);
  }
  void visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else)) add(op->args[0]);
    IRVisitor::visit(op);
  }
  void visit(const hi::Cast* op) override {
    if (op->value.type().is_bool()) add(op->value);
    IRVisitor::visit(op);
  }
};

/// A condition that is affine as a whole.
struct Decided {
  Expr condition;
  poly::AffineScope::Truth truth;
};

/// What a value is at some points, by the conditions that all of them share.
class There : public hi::IRMutator {
 public:
  There(const std::vector<Decided>& conditions, const isl::set& points) : conditions_(conditions), points_(points) {}

  using IRMutator::mutate;
  Expr mutate(const Expr& e) override {
    if (!e.type().is_bool()) return IRMutator::mutate(e);
    for (const Decided& decided : conditions_) {
      if (!hi::equal(decided.condition, e)) continue;
      if (points_.is_subset(decided.truth.holds)) return hi::const_true();
      if (points_.is_subset(decided.truth.fails)) return hi::const_false();
    }
    return IRMutator::mutate(e);
  }

 private:
  using IRMutator::visit;
  Expr visit(const hi::And* op) override {
    const Expr a = mutate(op->a), b = mutate(op->b);
    if (hi::is_const_zero(a) || hi::is_const_zero(b)) return hi::const_false();
    return hi::is_const_one(a) ? b : hi::is_const_one(b) ? a : hi::And::make(a, b);
  }
  Expr visit(const hi::Or* op) override {
    const Expr a = mutate(op->a), b = mutate(op->b);
    if (hi::is_const_one(a) || hi::is_const_one(b)) return hi::const_true();
    return hi::is_const_zero(a) ? b : hi::is_const_zero(b) ? a : hi::Or::make(a, b);
  }
  Expr visit(const hi::Not* op) override {
    const Expr a = mutate(op->a);
    if (hi::is_const(a)) return hi::is_const_zero(a) ? hi::const_true() : hi::const_false();
    return hi::Not::make(a);
  }
  Expr visit(const hi::Select* op) override {
    const Expr condition = mutate(op->condition);
    if (hi::is_const(condition)) return mutate(hi::is_const_one(condition) ? op->true_value : op->false_value);
    return hi::Select::make(condition, mutate(op->true_value), mutate(op->false_value));
  }
  Expr visit(const hi::Call* op) override {
    if (!op->is_intrinsic(hi::Call::if_then_else)) return IRMutator::visit(op);
    const Expr condition = mutate(op->args[0]);
    if (hi::is_const(condition)) return mutate(op->args[hi::is_const_one(condition) ? 1 : 2]);
    return IRMutator::visit(op);
  }
  Expr visit(const hi::Cast* op) override {
    const Expr value = mutate(op->value);
    if (op->value.type().is_bool() && hi::is_const(value)) return hi::make_const(op->type, hi::is_const_one(value));
    return hi::Cast::make(op->type, value);
  }

  const std::vector<Decided>& conditions_;
  const isl::set& points_;
};

/// Whether a cast changes a number: 1e30 is an infinity in half.
bool rounds_numbers(const Expr& e) {
  class Rounding : public hi::IRVisitor {
   public:
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Cast* op) override {
      const std::optional<double> value = constant_number(op->value);
      const bool narrows = op->type.is_float() && op->type.bits() < op->value.type().bits();
      found = found || (value && narrows && std::isfinite(*value) && *value != 0);
      IRVisitor::visit(op);
    }
  } rounding;
  e.accept(&rounding);
  return rounding.found;
}

/// Whether a value is made of R and numbers alone.
bool is_of_extreme(const ir::Program& program, const Expr& e) {
  const std::set<std::string> variables = ir::variables_of(e);
  return ir::reads_in(program, e).empty() &&
         std::all_of(variables.begin(), variables.end(), [](const auto& v) { return v == kExtremeVariable; });
}

class IdleFinder {
 public:
  IdleFinder(const poly::Scop& scop, const PointsBetween& between)
      : program_(*scop.program), between_(between), c_(between.product.product) {
    std::vector<std::string> names;
    std::vector<poly::AffineScope::Range> ranges;
    for (const Axis& axis : c_.parallel) {
      names.push_back(axis.name);
      ranges.emplace_back(std::pair(axis.begin, axis.begin + axis.extent - 1));
    }
    isl_space* space = isl_space_set_alloc(scop.context->get().get(), 0, static_cast<unsigned>(c_.parallel.size()));
    affine_.emplace(isl::manage(space), names, ranges);
    domain_ = affine_->space().universe_set();
    for (size_t i = 0; i < c_.parallel.size(); ++i) {
      const auto value = poly::variable(affine_->space(), static_cast<int>(i));
      const auto at = [&](int64_t x) { return poly::constant(affine_->space(), x); };
      domain_ = domain_.intersect(value.ge_set(at(ranges[i]->first))).intersect(value.le_set(at(ranges[i]->second)));
    }
  }

  std::optional<IdlePoints> run() {
    Conditions conditions;
    for (const Expr& value : between_.values.reductions) value.accept(&conditions);
    if (!between_.values.operand.defined()) return std::nullopt;
    between_.values.operand.accept(&conditions);
    for (const Expr& condition : conditions.all) {
      const poly::AffineScope::Truth truth = affine_->truth(condition);
      if (truth.holds.is_disjoint(truth.fails)) decided_.push_back({condition, truth});
    }
    std::optional<IdlePoints> always, masked;
    for (const Decided& decided : decided_) {
      for (const isl::set& side : {decided.truth.holds, decided.truth.fails}) {
        const isl::set where = side.intersect(domain_);
        if (where.is_empty()) continue;
        std::optional<IdlePoints> idle = idle_at(where);
        if (!idle) continue;
        std::optional<IdlePoints>& of_kind = idle->mask ? masked : always;
        if (!of_kind) {
          of_kind = std::move(idle);
        } else if (!idle->mask || is_same(*idle->mask, *of_kind->mask)) {
          of_kind->points = of_kind->points.unite(idle->points).coalesce();
        }
      }
    }
    return always ? always : masked;
  }

 private:
  static bool is_same(const IdlePoints::Mask& a, const IdlePoints::Mask& b) {
    const auto same = [](const Expr& x, const Expr& y) {
      return x.defined() == y.defined() && (!x.defined() || hi::equal(x, y));
    };
    return same(a.extreme, b.extreme) && same(a.operand, b.operand) &&
           std::equal(a.reductions.begin(), a.reductions.end(), b.reductions.begin(), b.reductions.end(), same);
  }

  /// Whether a reduction's value is its identity.
  static bool is_identity(const TileReduction& reduction, const Expr& value) {
    const std::optional<double> number = constant_number(value);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (reduction.statement.assign) {
      case ir::Assign::kAdd:
        return vanishing_of(value, {}) == Vanishing::kAlways;
      case ir::Assign::kMax:
        return value.type().is_float() && number == -kInfinity;
      case ir::Assign::kMin:
        return value.type().is_float() && number == kInfinity;
      default:
        return false;
    }
  }

  /// Whether some points count for nothing, all of them in one way.
  std::optional<IdlePoints> idle_at(const isl::set& where) const {
    There there(decided_, where);
    std::vector<Expr> reductions;
    for (const Expr& value : between_.values.reductions) reductions.push_back(there.mutate(value));
    const Expr operand = there.mutate(between_.values.operand);
    if (rounds_numbers(operand) || std::any_of(reductions.begin(), reductions.end(), rounds_numbers)) {
      return std::nullopt;
    }
    const std::optional<OnlineReduction>& online = between_.product.online;
    IdlePoints result{where};
    IdlePoints::Mask mask;
    bool is_far = false;
    Extreme extreme;
    if (online) {
      const poly::Statement& s = c_.reductions[online->reduction].statement;
      extreme = {kExtremeVariable, {}, s.assign == ir::Assign::kMax};
      // Rows have a mark of what is not there, which idle points must not be.
      if (between_.present.defined() && !hi::is_const_zero(there.mutate(between_.present))) return std::nullopt;
    }
    for (size_t r = 0; r < reductions.size(); ++r) {
      mask.reductions.emplace_back();
      if (online && online->rescaled[r]) {
        const Vanishing vanishing = vanishing_of(reductions[r], extreme);
        if (vanishing == Vanishing::kNo) return std::nullopt;
        is_far = is_far || vanishing == Vanishing::kFar;
        mask.reductions.back() = reductions[r];
      } else if (online && online->reduction == r && constant_number(reductions[r]).has_value()) {
        const double number = *constant_number(reductions[r]);
        if (std::isnan(number)) return std::nullopt;
        if (is_identity(c_.reductions[r], reductions[r])) continue;
        if (std::isinf(number)) return std::nullopt;
        is_far = true;
        mask.extreme = reductions[r];
      } else if (!is_identity(c_.reductions[r], reductions[r])) {
        return std::nullopt;
      }
    }
    const Vanishing vanishing = vanishing_of(there.mutate(between_.values.term), extreme);
    if (vanishing == Vanishing::kNo) return std::nullopt;
    if (!is_far && vanishing == Vanishing::kAlways) return result;
    mask.operand = operand;
    // R takes in the number that the exponents have.
    if (!mask.extreme.defined() || !is_of_extreme(program_, operand)) return std::nullopt;
    for (const Expr& value : mask.reductions) {
      if (value.defined() && !is_of_extreme(program_, value)) return std::nullopt;
    }
    result.mask = std::move(mask);
    return result;
  }

  const ir::Program& program_;
  const PointsBetween& between_;
  const Contraction& c_;
  std::optional<poly::AffineScope> affine_;
  isl::set domain_;
  std::vector<Decided> decided_;
};

}  // namespace

std::optional<IdlePoints> idle_points(const poly::Scop& scop, const Contraction& first, const Contraction& second) {
  const std::optional<PointsBetween> between = points_between(scop, first, second);
  return between ? IdleFinder(scop, *between).run() : std::nullopt;
}

}  // namespace tc::gpu
