#include "tc/cpu/statement_body.h"

#include "tc/cpu/lanes.h"
#include "tc/ir/combine.h"
#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::Stmt;
namespace hi = Halide::Internal;

namespace {

Ranged either(const Expr& condition, const Ranged& a, const Ranged& b) {
  auto [x, y] = matched(a, b);
  return ranged(hi::Select::make(condition, x, y), std::min(a.min, b.min), std::max(a.max, b.max));
}

/// Turns an expression over a statement's indices into one over loop variables and flat buffers. Arithmetic of type
/// Int(64) becomes Int(32) where intervals prove that nothing is lost.
class BodyMutator : public hi::IRMutator {
 public:
  BodyMutator(const poly::Statement& statement, const BodyContext& context)
      : statement_(statement), context_(context) {}

  using IRMutator::mutate;
  Expr mutate(const Expr& expr) override {
    if (!expr.defined() || expr.type() != Halide::Int(64)) return IRMutator::mutate(expr);
    return as_int64(range(expr));
  }

  /// An expression of type Int(64), as narrow as it goes.
  Ranged range(const Expr& expr);
  /// The flat index of tensor(subscripts) at its present place, checked or clamped where that is needed.
  Expr address(const std::string& tensor, const std::vector<Expr>& subscripts);

  /// Checks of subscripts met so far, in the order in which they must run.

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override;
  Expr visit(const hi::Cast* op) override;
  Expr visit(const hi::Variable* op) override;
  Expr visit(const hi::LT* op) override { return compare(op); }
  Expr visit(const hi::LE* op) override { return compare(op); }
  Expr visit(const hi::GT* op) override { return compare(op); }
  Expr visit(const hi::GE* op) override { return compare(op); }
  Expr visit(const hi::EQ* op) override { return compare(op); }
  Expr visit(const hi::NE* op) override { return compare(op); }

  template <typename Comparison>
  Expr compare(const Comparison* op) {
    if (op->a.type() != Halide::Int(64)) return IRMutator::visit(op);
    auto [a, b] = matched(range(op->a), range(op->b));
    return Comparison::make(a, b);
  }

  Expr choice(const hi::Call* op);
  Ranged range_of_cast(const hi::Cast* op);

  const poly::Statement& statement_;
  const BodyContext& context_;
  bool safe_ = false;         ///< within a subscript that must stay inside although the instance may be padding
  bool hold_ = false;         ///< and which no predicate protects
  std::vector<Expr> guards_;  ///< conditions under which the expression at hand is wanted (R6)
};

Ranged BodyMutator::range(const Expr& expr) {
  if (const int64_t* value = ir::constant_int(expr)) return ranged(*value);
  if (const auto* op = expr.as<hi::Add>()) return range(op->a) + range(op->b);
  if (const auto* op = expr.as<hi::Sub>()) return range(op->a) - range(op->b);
  if (const auto* op = expr.as<hi::Mul>()) return range(op->a) * range(op->b);
  if (const auto* op = expr.as<hi::Min>()) return min(range(op->a), range(op->b));
  if (const auto* op = expr.as<hi::Max>()) return max(range(op->a), range(op->b));
  if (const auto* op = expr.as<hi::Cast>()) return range_of_cast(op);
  if (const auto* op = expr.as<hi::Div>()) {
    const int64_t* divisor = ir::constant_int(op->b);
    if (divisor != nullptr && *divisor > 0) return floor_div(range(op->a), *divisor);
  }
  if (const auto* op = expr.as<hi::Mod>()) {
    const int64_t* divisor = ir::constant_int(op->b);
    if (divisor != nullptr && *divisor > 0) return floor_mod(range(op->a), *divisor);
  }
  if (const auto* op = expr.as<hi::Select>()) {
    return either(mutate(op->condition), range(op->true_value), range(op->false_value));
  }
  if (const auto* op = expr.as<hi::Call>(); op != nullptr && op->is_intrinsic(hi::Call::if_then_else)) {
    Expr condition = mutate(op->args[0]);
    guards_.push_back(condition);
    Ranged a = range(op->args[1]);
    guards_.back() = !condition;
    Ranged b = range(op->args[2]);
    guards_.pop_back();
    return either(condition, a, b);
  }
  if (const auto* op = expr.as<hi::Variable>()) {
    const auto& indices = !safe_ ? context_.indices : hold_ ? context_.held_indices : *context_.safe_indices;
    auto index = indices.find(op->name);
    if (index != indices.end()) return index->second;
  }
  return unranged(IRMutator::mutate(expr));
}

Ranged BodyMutator::range_of_cast(const hi::Cast* op) {
  Halide::Type from = op->value.type();
  if (from == Halide::Int(32)) {
    if (const auto* inner = op->value.as<hi::Cast>(); inner != nullptr && inner->value.type() == Halide::Int(64)) {
      Ranged value = range(inner->value);
      if (value.is_narrow()) return value;
    }
    return unranged(mutate(op->value));
  }
  if (from.is_int_or_uint() && from.bits() < 32) {
    Expr value = Halide::cast(Halide::Int(32), mutate(op->value));
    if (from.is_bool()) return ranged(value, 0, 1);
    int64_t half = int64_t{1} << (from.bits() - 1);
    return from.is_int() ? ranged(value, -half, half - 1) : ranged(value, 0, 2 * half - 1);
  }
  Expr value = hi::Cast::make(Halide::Int(64), mutate(op->value));
  if (from == Halide::UInt(32)) return ranged(value, 0, UINT32_MAX);
  return unranged(value);
}

Expr BodyMutator::visit(const hi::Variable* op) {
  TC_CHECK(context_.indices.count(op->name) == 0, "index '{}' of statement {} is not of the index type", op->name,
           statement_.id);
  return op;
}

Expr BodyMutator::visit(const hi::Cast* op) {
  if (op->value.type() != Halide::Int(64)) return IRMutator::visit(op);
  Ranged value = range(op->value);
  return value.expr.type() == op->type ? value.expr : hi::Cast::make(op->type, value.expr);
}

/// c ? a : b of which only one is wanted. Both are evaluated, with their reads held inside of their tensors.
Expr BodyMutator::choice(const hi::Call* op) {
  Expr condition = mutate(op->args[0]);
  guards_.push_back(condition);
  Expr true_value = mutate(op->args[1]);
  guards_.back() = !condition;
  Expr false_value = op->args.size() > 2 ? mutate(op->args[2]) : ir::zero_of(op->type);
  guards_.pop_back();
  return hi::Select::make(condition, true_value, false_value);
}

Expr BodyMutator::visit(const hi::Call* op) {
  if (op->is_intrinsic(hi::Call::if_then_else)) return choice(op);
  if (!ir::is_tensor_read(*context_.program, op)) return IRMutator::visit(op);
  const Place& place = context_.place(op->name);
  // Nothing can be read from a tensor without elements: only a guard that never holds gets here.
  if (place.span() == 0) return ir::zero_of(op->type);
  Expr index = address(op->name, op->args);
  if (!context_.safe.defined() || place.padded || hold_ || !hi::expr_uses_var(index, context_.lane)) {
    return place.load(index);
  }
  if (lane_step(index, context_.lane) == 1) return place.load(index, context_.safe);
  // Halide cannot predicate all that does not simply run forward.
  hold_ = true;
  index = address(op->name, op->args);
  hold_ = false;
  return place.load(index);
}

Expr BodyMutator::address(const std::string& tensor, const std::vector<Expr>& subscripts) {
  const Place& place = context_.place(tensor);
  const bool outer_safe = safe_;
  safe_ = outer_safe || (context_.safe_indices && !place.padded);
  std::vector<Ranged> inside;
  for (size_t d = 0; d < subscripts.size(); ++d) {
    Ranged subscript = range(subscripts[d]);
    int64_t extent = place.extents[d];
    Ranged first = place.offset.empty() ? ranged(0) : place.offset[d];
    Ranged position = subscript - first;
    bool proved = position.min >= 0 && position.max < extent;
    if (!guards_.empty() && !proved) {
      // The read may be unwanted and outside (R6): any element inside serves then.
      subscript = min(max(subscript, first), first + ranged(extent - 1));
    }
    inside.push_back(subscript);
  }
  safe_ = outer_safe;
  return place.address(inside);
}

}  // namespace

Stmt statement_body(const poly::Statement& statement, const BodyContext& context) {
  BodyMutator mutator(statement, context);
  Expr guard = statement.guard.defined() ? mutator.mutate(statement.guard) : Expr();

  const Place& place = context.place(statement.tensor);
  Expr value = mutator.mutate(statement.value);
  Expr address = mutator.address(statement.tensor, statement.subscripts);
  if (statement.kind == poly::Statement::Kind::kUpdate) {
    TC_CHECK(statement.accumulator == place.type, "{} accumulates into '{}' in another type than the tensor's",
             statement.id, statement.tensor);
    value = combine(statement.assign, place.load(address), value);
  } else if (value.type() != place.type) {
    value = hi::Cast::make(place.type, value);
  }
  const Stmt store = place.store(address, value);
  return guard.defined() ? hi::IfThenElse::make(guard, store) : store;
}

}  // namespace tc::cpu
