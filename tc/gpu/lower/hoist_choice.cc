#include "tc/gpu/lower/hoist_choice.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tc/gpu/lower/body.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

/// What an expression is in iteration v: first + step * v.
struct Line {
  Expr first;
  int64_t step = 0;
};

/// Decides which conditions have one value in all iterations of a loop.
class Uniformity {
 public:
  Uniformity(const tile::For& loop, int64_t elements, const hi::Scope<hi::ModulusRemainder>& multiples)
      : loop_(loop), last_(elements - 1), multiples_(multiples) {}

  bool is_uniform(const Expr& condition) const {
    if (!hi::expr_uses_var(condition, loop_.variable)) return true;
    if (const auto* op = condition.as<hi::And>()) return is_uniform(op->a) && is_uniform(op->b);
    if (const auto* op = condition.as<hi::Or>()) return is_uniform(op->a) && is_uniform(op->b);
    if (const auto* op = condition.as<hi::Not>()) return is_uniform(op->a);
    if (const auto* op = condition.as<hi::LT>()) return is_less(op->a, op->b, 0);
    if (const auto* op = condition.as<hi::LE>()) return is_less(op->a, op->b, 1);
    if (const auto* op = condition.as<hi::GT>()) return is_less(op->b, op->a, 0);
    if (const auto* op = condition.as<hi::GE>()) return is_less(op->b, op->a, 1);
    if (const auto* op = condition.as<hi::EQ>()) return is_same(op->a, op->b);
    if (const auto* op = condition.as<hi::NE>()) return is_same(op->a, op->b);
    return false;
  }

 private:
  /// Whether a < b + further is true of all or of none.
  bool is_less(const Expr& a, const Expr& b, int further) const {
    const std::optional<Line> difference = minus(line(a), line(b));
    if (!difference) return false;
    Line ahead{difference->first - further, difference->step};
    if (ahead.step < 0) ahead = {ahead.first + hi::make_const(ahead.first.type(), ahead.step * last_), -ahead.step};
    return stays_between(ahead, 0);
  }

  /// Whether a == b is true of all or of none, for it is the same comparison in each.
  bool is_same(const Expr& a, const Expr& b) const {
    const std::optional<Line> difference = minus(line(a), line(b));
    return difference && difference->step == 0;
  }

  /// Whether all iterations lie between the same two multiples of a number; 0: of any, such as 0 itself.
  bool stays_between(const Line& line, int64_t number) const {
    if (line.step == 0) return true;
    const hi::ModulusRemainder known = hi::modulus_remainder(line.first, multiples_);
    const int64_t modulus = std::gcd(known.modulus, number);
    if (modulus == 0) return known.remainder >= 0 || known.remainder + line.step * last_ < 0;
    const int64_t least = (known.remainder % modulus + modulus) % modulus;
    return line.step > 0 && least + line.step * last_ < modulus;
  }

  static std::optional<Line> minus(const std::optional<Line>& a, const std::optional<Line>& b) {
    if (!a || !b || a->first.type() != b->first.type()) return std::nullopt;
    return Line{a->first - b->first, a->step - b->step};
  }

  std::optional<Line> line(const Expr& e) const {
    if (!e.type().is_int()) return std::nullopt;
    if (!hi::expr_uses_var(e, loop_.variable)) return Line{e, 0};
    if (e.as<hi::Variable>()) return Line{hi::make_zero(e.type()), 1};
    if (const auto* op = e.as<hi::Add>()) {
      const std::optional<Line> a = line(op->a), b = line(op->b);
      if (!a || !b) return std::nullopt;
      return Line{a->first + b->first, a->step + b->step};
    }
    if (const auto* op = e.as<hi::Sub>()) return minus(line(op->a), line(op->b));
    if (const auto* op = e.as<hi::Mul>()) return times(*op);
    if (const auto* op = e.as<hi::Div>()) return divided(op->a, op->b, true);
    if (const auto* op = e.as<hi::Mod>()) return divided(op->a, op->b, false);
    const auto* cast = e.as<hi::Cast>();
    if (cast == nullptr || !cast->value.type().is_int() || cast->value.type().bits() > e.type().bits()) {
      return std::nullopt;
    }
    std::optional<Line> result = line(cast->value);
    if (result) result->first = hi::Cast::make(e.type(), result->first);
    return result;
  }

  std::optional<Line> times(const hi::Mul& op) const {
    const int64_t* by = ir::constant_int(op.b);
    std::optional<Line> result = by == nullptr ? std::nullopt : line(op.a);
    if (result) result = Line{result->first * op.b, result->step * *by};
    return result;
  }

  /// The quotient by a constant, or the remainder, where all iterations have the same quotient.
  std::optional<Line> divided(const Expr& value, const Expr& divisor, bool quotient) const {
    const int64_t* by = ir::constant_int(divisor);
    const std::optional<Line> whole = by == nullptr || *by <= 0 ? std::nullopt : line(value);
    if (!whole || !stays_between(*whole, *by)) return std::nullopt;
    return quotient ? Line{whole->first / divisor, 0} : Line{whole->first % divisor, whole->step};
  }

  const tile::For& loop_;
  int64_t last_;
  const hi::Scope<hi::ModulusRemainder>& multiples_;
};

/// The condition and the branches of a choice; nothing of another expression.
struct Choice {
  Expr condition, if_true, if_false;
};

std::optional<Choice> choice_of(const Expr& e) {
  if (const auto* op = e.as<hi::Select>()) return Choice{op->condition, op->true_value, op->false_value};
  const auto* call = e.as<hi::Call>();
  if (call == nullptr || !call->is_intrinsic(hi::Call::if_then_else)) return std::nullopt;
  return Choice{call->args[0], call->args[1], call->args[2]};
}

/// Whether anything but variables and constants is in an expression.
bool calls_any(const Expr& e) {
  class Finder : public hi::IRVisitor {
   public:
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call*) override { found = true; }
  } finder;
  e.accept(&finder);
  return finder.found;
}

/// Finds a condition by which a value chooses between reads, alike in all iterations.
class FindCondition : public hi::IRVisitor {
 public:
  explicit FindCondition(const Uniformity& uniformity) : uniformity_(uniformity) {}
  Expr found;

 private:
  using IRVisitor::visit;
  void visit(const hi::Select* op) override {
    look(op);
    IRVisitor::visit(op);
  }
  void visit(const hi::Call* op) override {
    look(op);
    IRVisitor::visit(op);
  }
  void look(const Expr& e) {
    const std::optional<Choice> choice = choice_of(e);
    if (found.defined() || !choice || calls_any(choice->condition)) return;
    if (!calls_any(choice->if_true) && !calls_any(choice->if_false)) return;
    if (uniformity_.is_uniform(choice->condition)) found = choice->condition;
  }

  const Uniformity& uniformity_;
};

/// Takes one branch wherever a condition chooses.
class Decide : public hi::IRMutator {
 public:
  Decide(Expr condition, bool value) : condition_(std::move(condition)), value_(value) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Select* op) override {
    const Expr branch = branch_of(op);
    return branch.defined() ? mutate(branch) : IRMutator::visit(op);
  }
  Expr visit(const hi::Call* op) override {
    const Expr branch = branch_of(op);
    return branch.defined() ? mutate(branch) : IRMutator::visit(op);
  }
  Expr branch_of(const Expr& e) const {
    const std::optional<Choice> choice = choice_of(e);
    if (!choice || !hi::equal(choice->condition, condition_)) return {};
    return value_ ? choice->if_true : choice->if_false;
  }

  const Expr condition_;
  const bool value_;
};

/// Whether a loop's body is stores; their values in order.
bool collect(const NodePtr& node, std::vector<Expr>& values) {
  return tile::match(
      *node,
      [&](const tile::Sequence& n) {
        return std::all_of(n.children.begin(), n.children.end(),
                           [&](const NodePtr& child) { return collect(child, values); });
      },
      [&](const tile::Store& n) {
        values.push_back(n.value);
        return true;
      },
      [](const tile::OneOf<tile::For, tile::If, tile::Let, tile::Allocate, tile::Ring> auto&) { return false; },
      [](const tile::OneOf<tile::Atomic, tile::Move, tile::BoxCopy, tile::BoxStore, tile::ClusterLoad> auto&) {
        return false;
      },
      [](const tile::Collective auto&) { return false; }, [](const tile::Synchronisation auto&) { return false; });
}

/// The stores of a body where the condition has a value, with another loop variable.
NodePtr decided(const NodePtr& node, const Expr& condition, bool value, const std::string& from, const Expr& to) {
  const auto store = [&](tile::Store changed) {
    Decide decide(condition, value);
    changed.value = hi::substitute(from, to, decide.mutate(changed.value));
    for (Expr& subscript : changed.subscripts) subscript = hi::substitute(from, to, decide.mutate(subscript));
    const NodePtr made = tile::carrying(node->instances, make_node(std::move(changed), node->comment));
    return tile::map_exprs(made, [&](const Expr& e) { return hi::substitute(from, to, e); });
  };
  return tile::match(
      *node,
      [&](const tile::Structure auto&) {
        return tile::map_children(node,
                                  [&](const NodePtr& child) { return decided(child, condition, value, from, to); });
      },
      [&](const tile::Store& n) { return store(n); },
      [&](const tile::OneOf<tile::Atomic, tile::Move, tile::BoxCopy, tile::BoxStore, tile::ClusterLoad> auto&) {
        return node;
      },
      [&](const tile::Collective auto&) { return node; }, [&](const tile::Synchronisation auto&) { return node; });
}

}  // namespace

NodePtr hoist_choice(const tile::For& loop, int64_t elements, const hi::Scope<hi::ModulusRemainder>& multiples,
                     ir::Names& names) {
  std::vector<Expr> values;
  if (!collect(loop.body, values)) return nullptr;
  const Uniformity uniformity(loop, elements, multiples);
  FindCondition look(uniformity);
  for (const Expr& value : values) value.accept(&look);
  if (!look.found.defined()) return nullptr;
  const auto branch = [&](bool value) {
    tile::For result = loop;
    if (!value) result.variable = names.fresh(loop.variable);
    const Expr variable = hi::Variable::make(loop.begin.type(), result.variable);
    result.body = decided(loop.body, look.found, value, loop.variable, variable);
    return make_node(std::move(result));
  };
  const Expr condition = hi::simplify(hi::substitute(loop.variable, hi::make_zero(loop.begin.type()), look.found));
  const NodePtr if_true = branch(true), if_false = branch(false);
  return make_node(tile::If{condition, if_true, if_false});
}

}  // namespace tc::gpu
