#include "tc/gpu/lower/body.h"

#include "tc/ir/halide_compat.h"
#include "tc/ir/linear_form.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
namespace hi = Halide::Internal;

namespace {

/// c ? a : b of which only one is evaluated: the other may read outside of its tensor (R6), or what has not been
/// written yet, since the dependences know which conditions never hold.
Expr only_one(const Expr& condition, const Expr& a, const Expr& b) {
  return hi::Call::make(a.type(), hi::Call::if_then_else, {condition, a, b}, hi::Call::PureIntrinsic);
}

/// The same where both read within their tensors: so vectorize() may read what the kernel does not write for both.
Expr one_of(const Expr& condition, const Expr& a, const Expr& b) {
  return hi::Call::make(a.type(), hi::Call::if_then_else, {condition, a, b, hi::const_true()}, hi::Call::PureIntrinsic);
}

/// Turns an expression over a statement's indices into one over loop variables, threads and places.
class BodyMutator : public hi::IRMutator {
 public:
  explicit BodyMutator(const BodyContext& context) : context_(context) {}

  using IRMutator::mutate;
  Expr mutate(const Expr& expr) override {
    if (!expr.defined() || expr.type() != Halide::Int(64)) return IRMutator::mutate(expr);
    return poly::as_int64(range(expr));
  }

  /// An expression of type Int(64), as narrow as it goes.
  Ranged range(const Expr& expr);
  std::vector<Expr> position(const std::string& tensor, const std::vector<Expr>& subscripts);

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override;
  Expr visit(const hi::Cast* op) override;
  Expr visit(const hi::Select* op) override {
    const Expr condition = mutate(op->condition);
    if (hi::is_const(condition)) return mutate(hi::is_const_one(condition) ? op->true_value : op->false_value);
    return one_of(condition, mutate(op->true_value), mutate(op->false_value));
  }
  Expr visit(const hi::And* op) override { return mutate(op->a) && mutate(op->b); }
  Expr visit(const hi::Or* op) override { return mutate(op->a) || mutate(op->b); }
  Expr visit(const hi::LT* op) override { return compare(op, &poly::less); }
  Expr visit(const hi::LE* op) override { return compare(op, &poly::less_equal); }
  Expr visit(const hi::GT* op) override {
    return compare(op, [](const Ranged& a, const Ranged& b) { return poly::less(b, a); });
  }
  Expr visit(const hi::GE* op) override {
    return compare(op, [](const Ranged& a, const Ranged& b) { return poly::less_equal(b, a); });
  }
  Expr visit(const hi::EQ* op) override { return compare(op, &poly::equal); }
  Expr visit(const hi::NE* op) override {
    return compare(op, [](const Ranged& a, const Ranged& b) { return !poly::equal(a, b); });
  }

  /// A constant where the intervals of both sides decide.
  template <typename Comparison, typename Decide>
  Expr compare(const Comparison* op, Decide decide) {
    if (op->a.type() != Halide::Int(64)) return IRMutator::visit(op);
    const Ranged a = range(op->a), b = range(op->b);
    if (const Expr decided = decide(a, b); hi::is_const(decided)) return decided;
    auto [x, y] = poly::matched(a, b);
    return Comparison::make(x, y);
  }

  Ranged range_of_choice(const Expr& condition, const Expr& if_true, const Expr& if_false);
  Ranged range_of_cast(const hi::Cast* op);

  const BodyContext& context_;
};

Ranged BodyMutator::range(const Expr& expr) {
  if (const int64_t* value = ir::constant_int(expr)) return poly::ranged(*value);
  if (const auto* op = expr.as<hi::Add>()) return range(op->a) + range(op->b);
  if (const auto* op = expr.as<hi::Sub>()) return range(op->a) - range(op->b);
  if (const auto* op = expr.as<hi::Mul>()) return range(op->a) * range(op->b);
  if (const auto* op = expr.as<hi::Min>()) return poly::min(range(op->a), range(op->b));
  if (const auto* op = expr.as<hi::Max>()) return poly::max(range(op->a), range(op->b));
  if (const auto* op = expr.as<hi::Cast>()) return range_of_cast(op);
  if (const auto* op = expr.as<hi::Div>()) {
    const int64_t* divisor = ir::constant_int(op->b);
    if (divisor != nullptr && *divisor > 0) return poly::floor_div(range(op->a), *divisor);
  }
  if (const auto* op = expr.as<hi::Mod>()) {
    const int64_t* divisor = ir::constant_int(op->b);
    if (divisor != nullptr && *divisor > 0) return poly::floor_mod(range(op->a), *divisor);
  }
  if (const auto* op = expr.as<hi::Select>()) {
    return range_of_choice(op->condition, op->true_value, op->false_value);
  }
  if (const auto* op = expr.as<hi::Call>(); op != nullptr && op->is_intrinsic(hi::Call::if_then_else)) {
    return range_of_choice(op->args[0], op->args[1], op->args[2]);
  }
  if (const auto* op = expr.as<hi::Variable>()) {
    auto index = context_.indices.find(op->name);
    if (index != context_.indices.end()) return index->second;
  }
  return poly::unranged(IRMutator::mutate(expr));
}

Ranged BodyMutator::range_of_choice(const Expr& condition, const Expr& if_true, const Expr& if_false) {
  const Expr chosen = mutate(condition);
  if (hi::is_const(chosen)) return range(hi::is_const_one(chosen) ? if_true : if_false);
  const Ranged a = range(if_true);
  const Ranged b = range(if_false);
  auto [x, y] = poly::matched(a, b);
  return poly::ranged(only_one(chosen, x, y), std::min(a.min, b.min), std::max(a.max, b.max));
}

Ranged BodyMutator::range_of_cast(const hi::Cast* op) {
  const Halide::Type from = op->value.type();
  if (from == Halide::Int(32)) {
    if (const auto* inner = op->value.as<hi::Cast>(); inner != nullptr && inner->value.type() == Halide::Int(64)) {
      Ranged value = range(inner->value);
      if (value.is_narrow()) return value;
    }
    return poly::unranged(mutate(op->value));
  }
  if (from.is_int_or_uint() && from.bits() < 32) {
    Expr value = Halide::cast(Halide::Int(32), mutate(op->value));
    if (from.is_bool()) return poly::ranged(value, 0, 1);
    const int64_t half = int64_t{1} << (from.bits() - 1);
    return from.is_int() ? poly::ranged(value, -half, half - 1) : poly::ranged(value, 0, 2 * half - 1);
  }
  Expr value = hi::Cast::make(Halide::Int(64), mutate(op->value));
  if (from == Halide::UInt(32)) return poly::ranged(value, 0, UINT32_MAX);
  return poly::unranged(value);
}

Expr BodyMutator::visit(const hi::Cast* op) {
  if (op->value.type() != Halide::Int(64)) return IRMutator::visit(op);
  Ranged value = range(op->value);
  return value.expr.type() == op->type ? value.expr : hi::Cast::make(op->type, value.expr);
}

Expr BodyMutator::visit(const hi::Call* op) {
  if (op->is_intrinsic(hi::Call::if_then_else)) {
    const Expr condition = mutate(op->args[0]);
    if (hi::is_const(condition)) return mutate(op->args[hi::is_const_one(condition) ? 1 : 2]);
    return only_one(condition, mutate(op->args[1]), mutate(op->args[2]));
  }
  if (!ir::is_tensor_read(*context_.program, op)) return IRMutator::visit(op);
  if (const auto element = context_.elements.find(op->name); element != context_.elements.end()) return element->second;
  const Place& place = context_.place(op->name);
  // Nothing can be read from a tensor without elements: only a choice that is never made gets here.
  for (int64_t extent : place.extents) {
    if (extent == 0) return ir::zero_of(op->type);
  }
  return hi::Call::make(place.type, place.name, position(op->name, op->args), hi::Call::PureExtern);
}

std::vector<Expr> BodyMutator::position(const std::string& tensor, const std::vector<Expr>& subscripts) {
  std::vector<Ranged> ranges;
  for (const Expr& subscript : subscripts) ranges.push_back(range(subscript));
  return position_in(context_.place(tensor), ranges);
}

}  // namespace

namespace {

/// The expression without variables that cancel out: of (r - x) * 2 + (x * 2 + i) Halide keeps them.
Expr simplified(const Expr& expr) {
  struct Variables : hi::IRVisitor {
    std::map<std::string, Expr> found;
    using IRVisitor::visit;
    void visit(const hi::Variable* op) override { found[op->name] = op; }
  } variables;
  const Expr simple = hi::simplify(expr);
  simple.accept(&variables);
  const std::optional<ir::LinearForm> form = ir::linear_form(simple);
  if (!form || form->coefficients.size() == variables.found.size()) return simple;
  Expr sum = hi::make_const(simple.type(), form->constant);
  for (const auto& [name, by] : form->coefficients) {
    sum = variables.found.at(name) * hi::make_const(simple.type(), by) + sum;
  }
  return hi::simplify(sum);
}

}  // namespace

std::vector<Expr> position_in(const Place& place, const std::vector<Ranged>& subscripts) {
  std::vector<Expr> result;
  if (place.slot.defined()) result.push_back(place.slot);
  for (size_t d = 0; d < subscripts.size(); ++d) {
    Ranged at = place.offset.empty() ? subscripts[d] : subscripts[d] - place.offset[d];
    // Every subscript lies inside: what is known of its interval can be no worse than the place's extent.
    const int64_t last = std::max<int64_t>(place.extents[d] - 1, 0);
    at = place.extents[d] == 1
             ? poly::ranged(0)
             : poly::ranged(at.expr, std::clamp<int64_t>(at.min, 0, last), std::clamp<int64_t>(at.max, 0, last));
    result.push_back(place.offset.empty() ? at.expr : simplified(at.expr));
  }
  return result;
}

Expr instance_value(const Expr& value, const BodyContext& context) { return BodyMutator(context).mutate(value); }

tile::NodePtr carrying(const poly::Statement& statement, const BodyContext& context, const tile::NodePtr& node) {
  tile::Instances instances{.statement = statement.id, .first = {{}}};
  for (const std::string& index : statement.indices) {
    const auto known = context.indices.find(index);
    if (known == context.indices.end()) return node;
    instances.first[0].push_back(known->second.expr);
  }
  return tile::carrying(std::make_shared<const tile::Instances>(std::move(instances)), node);
}

Expr statement_value(const poly::Statement& statement, const BodyContext& context) {
  return BodyMutator(context).mutate(statement.value);
}

std::vector<Expr> written_position(const poly::Statement& statement, const BodyContext& context) {
  return BodyMutator(context).position(statement.tensor, statement.subscripts);
}

tile::NodePtr statement_body(const poly::Statement& statement, const BodyContext& context) {
  BodyMutator mutator(context);
  const Expr guard = statement.guard.defined() ? mutator.mutate(statement.guard) : Expr();
  const Place& place = context.place(statement.tensor);
  Expr value = mutator.mutate(statement.value);
  const std::vector<Expr> position = mutator.position(statement.tensor, statement.subscripts);
  if (statement.kind == poly::Statement::Kind::kUpdate) {
    TC_CHECK(statement.accumulator == place.type, "{} accumulates into '{}' in another type than the tensor's",
             statement.id, statement.tensor);
    value = combine(statement.assign, hi::Call::make(place.type, place.name, position, hi::Call::PureExtern), value);
  } else if (value.type() != place.type) {
    value = hi::Cast::make(place.type, value);
  }
  tile::NodePtr body = carrying(statement, context, make_node(tile::Store{place.name, position, value}));
  if (guard.defined()) body = make_node(tile::If{guard, body, nullptr});
  return body;
}

ir::Names kernel_names(const ir::Program& program) {
  ir::Names names(program);
  for (const char* number : tile::kBlock) names.add(number);
  for (const char* number : tile::kThread) names.add(number);
  return names;
}

tile::NodePtr sequence(std::vector<tile::NodePtr> parts) {
  if (parts.size() == 1) return parts.front();
  return make_node(tile::Sequence{std::move(parts)});
}

tile::NodePtr guarded(const Expr& condition, const tile::NodePtr& body) {
  if (hi::is_const_one(condition)) return body;
  return make_node(tile::If{condition, body, nullptr});
}

}  // namespace tc::gpu
