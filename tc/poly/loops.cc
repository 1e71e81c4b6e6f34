#include "tc/poly/loops.h"

#include <isl/schedule.h>

#include "tc/poly/box_loops.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/isl_loops.h"
#include "tc/support/check.h"

namespace tc::poly {

using Halide::Expr;
using Op = LoopExpr::Op;

namespace {

Ranged operand(const LoopExpr& expr, size_t position, const Iterators& iterators) {
  return to_ranged(expr.operands.at(position), iterators);
}

Expr condition_operand(const LoopExpr& expr, size_t position, const Iterators& iterators) {
  return to_condition(expr.operands.at(position), iterators);
}

int64_t divisor(const LoopExpr& expr, const Iterators& iterators) {
  const Ranged value = operand(expr, 1, iterators);
  TC_CHECK(value.is_constant(), "division by a value that is not constant");
  return value.min;
}

/// The smallest or largest of all operands.
Ranged extremum(const LoopExpr& expr, bool largest, const Iterators& iterators) {
  Ranged result = operand(expr, 0, iterators);
  for (size_t i = 1; i < expr.operands.size(); ++i) {
    const Ranged next = operand(expr, i, iterators);
    result = largest ? max(result, next) : min(result, next);
  }
  return result;
}

Ranged select(const LoopExpr& expr, const Iterators& iterators) {
  const Expr condition = condition_operand(expr, 0, iterators);
  const Ranged a = operand(expr, 1, iterators);
  const Ranged b = operand(expr, 2, iterators);
  auto [x, y] = matched(a, b);
  return ranged(Halide::Internal::Select::make(condition, x, y), std::min(a.min, b.min), std::max(a.max, b.max));
}

/// isl_loops() for some children of the tree's outermost sequence.
loops::NodePtr isl_loops_of(const Scop& scop, const std::vector<isl::schedule_node>& parts,
                            const LoopOptions& options) {
  isl::union_set domain = node_domain(parts.front());
  for (const isl::schedule_node& part : parts) domain = domain.unite(node_domain(part));
  return isl_loops(scop, isl::manage(isl_schedule_intersect_domain(scop.schedule.copy(), domain.release())), options);
}

}  // namespace

loops::NodePtr generate_loops(const Scop& scop, const LoopOptions& options) {
  const isl::schedule_node top = scop.schedule.root().child(0);
  if (!top.isa<isl::schedule_node_sequence>()) {
    const std::optional<loops::NodePtr> boxes = box_loops(scop, top, options);
    return boxes ? *boxes : isl_loops(scop, scop.schedule, options);
  }
  loops::Block result;
  std::vector<isl::schedule_node> others;  // that stand next to each other
  const auto flush = [&] {
    if (!others.empty()) result.children.push_back(isl_loops_of(scop, others, options));
    others.clear();
  };
  for (int i = 0, n = static_cast<int>(top.n_children()); i < n; ++i) {
    if (const std::optional<loops::NodePtr> boxes = box_loops(scop, top.child(i), options)) {
      flush();
      result.children.push_back(*boxes);
    } else {
      others.push_back(top.child(i));
    }
  }
  if (result.children.empty()) return isl_loops(scop, scop.schedule, options);
  flush();
  return loops::make_node(std::move(result));
}

Ranged to_ranged(const LoopExpr& expr, const Iterators& iterators) {
  switch (expr.op) {
    case Op::kConstant:
      return ranged(expr.value);
    case Op::kVariable: {
      const auto found = iterators.find(expr.variable);
      TC_CHECK(found != iterators.end(), "loop variable '{}' is used outside its loop", expr.variable);
      return found->second;
    }
    case Op::kAdd:
      return operand(expr, 0, iterators) + operand(expr, 1, iterators);
    case Op::kSub:
      return operand(expr, 0, iterators) - operand(expr, 1, iterators);
    case Op::kMul:
      return operand(expr, 0, iterators) * operand(expr, 1, iterators);
    case Op::kMax:
      return extremum(expr, true, iterators);
    case Op::kMin:
      return extremum(expr, false, iterators);
    case Op::kFloorDiv:
      return floor_div(operand(expr, 0, iterators), divisor(expr, iterators));
    case Op::kFloorMod:
      return floor_mod(operand(expr, 0, iterators), divisor(expr, iterators));
    case Op::kSelect:
      return select(expr, iterators);
    default:
      TC_CHECK(false, "a condition where a number is asked for");
  }
}

Expr to_condition(const LoopExpr& expr, const Iterators& iterators) {
  switch (expr.op) {
    case Op::kConstant:
      return Halide::Internal::make_bool(expr.value != 0);
    case Op::kAnd:
      return condition_operand(expr, 0, iterators) && condition_operand(expr, 1, iterators);
    case Op::kOr:
      return condition_operand(expr, 0, iterators) || condition_operand(expr, 1, iterators);
    case Op::kEqual:
      return equal(operand(expr, 0, iterators), operand(expr, 1, iterators));
    case Op::kLessEqual:
      return less_equal(operand(expr, 0, iterators), operand(expr, 1, iterators));
    case Op::kLess:
      return less(operand(expr, 0, iterators), operand(expr, 1, iterators));
    default:
      TC_CHECK(false, "a number where a condition is asked for");
  }
}

void for_each_instance(const loops::NodePtr& node, const std::function<void(const loops::Instance&)>& visit) {
  if (node == nullptr) return;
  if (const auto* loop = std::get_if<loops::For>(&node->value)) {
    for_each_instance(loop->body, visit);
  } else if (const auto* branch = std::get_if<loops::If>(&node->value)) {
    for_each_instance(branch->then_case, visit);
    for_each_instance(branch->else_case, visit);
  } else if (const auto* block = std::get_if<loops::Block>(&node->value)) {
    for (const loops::NodePtr& child : block->children) for_each_instance(child, visit);
  } else if (const auto* mark = std::get_if<loops::Mark>(&node->value)) {
    for_each_instance(mark->child, visit);
  } else {
    visit(std::get<loops::Instance>(node->value));
  }
}

IteratorUse use_of(const LoopExpr& expr, const std::string& variable) {
  if (expr.op == Op::kVariable) return expr.variable == variable ? IteratorUse::kPlain : IteratorUse::kNone;
  IteratorUse result = IteratorUse::kNone;
  for (const LoopExpr& operand : expr.operands) result = std::max(result, use_of(operand, variable));
  return expr.op == Op::kMul && result == IteratorUse::kPlain ? IteratorUse::kScaled : result;
}

}  // namespace tc::poly
