#include <algorithm>
#include <set>

#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/reads.h"

/// Points of slabs in which every mask lets all through, and no column is beyond the end. Most slabs of a causal or
/// ragged product are such: their points need no test.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;

namespace {

/// The conditions of a value's choices, each once.
class Conditions : public hi::IRVisitor {
 public:
  std::vector<Expr> found;

 private:
  using IRVisitor::visit;
  void add(const Expr& condition) {
    const auto is_known = [&](const Expr& other) { return hi::equal(other, condition); };
    if (std::none_of(found.begin(), found.end(), is_known)) found.push_back(condition);
  }
  void visit(const hi::Select* op) override {
    add(op->condition);
    IRVisitor::visit(op);
  }
  void visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else)) add(op->args[0]);
    IRVisitor::visit(op);
  }
};

/// A comparison as one of a difference with zero: a - b, or b - a, is less than, or at most, that.
struct Bound {
  Expr difference;
  bool is_strict = false;
};
std::optional<Bound> bound_of(const Expr& condition) {
  const auto apart = [](const Expr& a, const Expr& b, bool is_strict) -> std::optional<Bound> {
    if (!a.type().is_int()) return std::nullopt;
    return Bound{hi::Sub::make(a, b), is_strict};
  };
  if (const auto* op = condition.as<hi::LE>()) return apart(op->a, op->b, false);
  if (const auto* op = condition.as<hi::LT>()) return apart(op->a, op->b, true);
  if (const auto* op = condition.as<hi::GE>()) return apart(op->b, op->a, false);
  if (const auto* op = condition.as<hi::GT>()) return apart(op->b, op->a, true);
  return std::nullopt;
}

}  // namespace

/// Whether an affine condition on a point holds for all of the block's tile; nothing if that is no simple question.
std::optional<Expr> ContractionBuilder::holds_in_tile(const Expr& condition) const {
  if (const auto* both = condition.as<hi::And>()) {
    const std::optional<Expr> a = holds_in_tile(both->a), b = holds_in_tile(both->b);
    return a && b ? std::optional<Expr>(*a && *b) : std::nullopt;
  }
  const std::optional<Bound> bound = bound_of(condition);
  std::vector<std::string> names;
  for (const Axis& axis : c_.parallel) names.push_back(axis.name);
  const std::optional<LinearForm> form = bound ? linear(bound->difference, names) : std::nullopt;
  if (!form) return std::nullopt;
  constexpr int64_t kLimit = INT32_MAX / 2;
  int64_t most = std::abs(form->constant);
  Expr greatest = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t by = form->coefficients[i], tile = plan_.parallel[i].tile;
    if (by == 0) continue;
    const Axis& axis = c_.parallel[i];
    most += std::abs(by) * (std::abs(axis.begin) + axis.extent + tile);
    if (most > kLimit) return std::nullopt;
    const Expr at = by > 0 ? first_[i] + static_cast<int>(tile - 1) : first_[i];
    greatest = greatest + at * static_cast<int>(by);
  }
  if (most > kLimit) return std::nullopt;
  greatest = greatest + static_cast<int>(form->constant);
  return hi::simplify(bound->is_strict ? greatest < 0 : greatest <= 0);
}

/// Of a streamed link's first product: whether points beyond the end of an axis of rows may be made as all others are.
/// They stay in registers of rows that nobody stores, and touch no memory that the axis finds.
bool ContractionBuilder::is_free_of_memory(size_t axis) const {
  if (axis == slab_axis_) return false;
  std::set<std::string> own = {c_.update.tensor};
  for (const poly::Statement& point : c_.after) own.insert(point.tensor);
  for (const TileReduction& reduction : c_.reductions) own.insert(reduction.statement.tensor);
  const auto touches = [&](const Expr& value) {
    const std::vector<const hi::Call*> reads = ir::reads_in(program_, value);
    return std::any_of(reads.begin(), reads.end(), [&](const hi::Call* read) {
      return own.count(read->name) == 0 && std::any_of(read->args.begin(), read->args.end(), [&](const Expr& e) {
               return ir::mentions(e, c_.parallel[axis].name);
             });
    });
  };
  return std::none_of(c_.after.begin(), c_.after.end(), [&](const auto& point) { return touches(point.value); }) &&
         std::none_of(c_.reductions.begin(), c_.reductions.end(), [&](const auto& r) { return touches(r.value); });
}

/// The same as finish(), with points of whole slabs by themselves.
NodePtr ContractionBuilder::finish_slab(const PointPart& part) {
  const std::vector<PointStep> steps = point_steps();
  Conditions conditions;
  for (size_t s = part.first; s < std::min(part.last, steps.size()); ++s) steps[s].statement->value.accept(&conditions);
  Expr all;
  const auto require = [&](const Expr& condition) { all = all.defined() ? all && condition : condition; };
  std::vector<Expr> assumed;
  for (const Expr& condition : conditions.found) {
    const std::optional<Expr> holds = holds_in_tile(condition);
    if (!holds) continue;
    require(*holds);
    assumed.push_back(condition);
  }
  for (size_t i = 0; i < c_.parallel.size(); ++i) {
    if (!is_partial(i) || is_free_of_memory(i)) continue;
    const auto end = static_cast<int>(c_.parallel[i].begin + c_.parallel[i].extent);
    require(hi::simplify(first_[i] + static_cast<int>(plan_.parallel[i].tile) <= end));
  }
  const NodePtr each = finish(part);
  if (!all.defined() || hi::is_const_zero(all)) return each;
  assumed_ = std::move(assumed);
  is_whole_ = true;
  const NodePtr together = finish(part);
  assumed_.clear();
  is_whole_ = false;
  return hi::is_const_one(all) ? together : build::if_then(all, together, each);
}

}  // namespace tc::gpu
