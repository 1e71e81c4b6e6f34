#include "tc/gpu/lower/emit.h"
#include "tc/gpu/lower/reduce.h"
#include "tc/gpu/lower/translator.h"
#include "tc/support/check.h"

/// Loops whose copies run ahead, and those that the lanes of a warp share.
namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kWarp = 32;

}  // namespace

/// A loop whose copies run ahead.
NodePtr Translator::staged_loop(const poly::loops::For& node, const Ranged& begin, const Ranged& last, int64_t step) {
  Ahead ahead;
  ahead.steps.stages = stages_of(node);
  Ahead* const outer = std::exchange(ahead_, &ahead);
  ahead.steps.loop = counted_loop(node, begin, last, step, begin.min, [&](const Ranged& value) {
    ahead.slot = poly::floor_mod(poly::floor_div(value, step), ahead.steps.stages);
    return body_with(node, value);
  });
  ahead_ = outer;
  return pipelined(ahead.steps, loops_around_ > 0);
}

/// A staged loop, or what is left of one that has a single iteration: its body.
NodePtr Translator::once(const poly::loops::NodePtr& child) {
  Ahead ahead;
  ahead.steps.stages = 2;
  ahead.slot = poly::ranged(0);
  Ahead* const outer = std::exchange(ahead_, &ahead);
  tile::For loop{fresh("once"),
                 hi::make_zero(Halide::Int(32)),
                 hi::make_one(Halide::Int(32)),
                 hi::make_one(Halide::Int(32)),
                 false,
                 lower(child)};
  names_.erase(loop.variable);
  ahead_ = outer;
  if (ahead.steps.copies.empty()) return loop.body;
  ahead.steps.loop = std::move(loop);
  return pipelined(ahead.steps, loops_around_ > 0);
}

/// What the loop above runs ahead leaves nothing where it stood.
NodePtr Translator::staged_copies(NodePtr code) {
  ahead_->steps.copies.push_back(guarded(ahead_->condition, code));
  return sequence({});
}

/// What stands where a condition holds.
NodePtr Translator::under(const Expr& condition, const std::function<NodePtr()>& make) {
  if (ahead_ == nullptr || hi::is_const_one(condition)) return make();
  const Expr outer = ahead_->condition;
  ahead_->condition = hi::is_const_one(outer) ? condition : outer && condition;
  NodePtr result = make();
  ahead_->condition = outer;
  return result;
}

int64_t Translator::stages_of(const poly::loops::For& node) const {
  const auto named = named_.find(node.dimension);
  if (named == named_.end()) return 1;
  const auto staged = kernel_.staged.find(named->second);
  return staged == kernel_.staged.end() ? 1 : staged->second;
}

/// The iterations of a reduction by one warp: each lane has every 32nd, shuffles combine what they have, and the first
/// lane adds that to the result.
NodePtr Translator::by_warp(const poly::loops::NodePtr& child, int depth) {
  Warp warp{depth};
  warp_ = &warp;
  NodePtr own = lower(child);
  warp_ = nullptr;
  if (!warp.partial) return own;
  ir::Names names = kernel_names(*kernel_.scop.program);
  for (const std::string& name : names_) names.add(name);
  std::vector<tile::Tensor> shared;  // none: all are of one warp
  const Expr identity = ir::identity_of(warp.assign, warp.partial->type);
  NodePtr all = sequence({make_node(tile::Store{warp.partial->name, {index(0)}, identity}), own,
                          reduce_lanes(*warp.partial, warp.assign, kWarp, 1, names, shared),
                          guarded(number({Dealt::To::kThreads, 0, 1}).expr == 0, warp.total)});
  names_.erase(warp.partial->name);
  all = make_node(tile::Allocate{*warp.partial, all});
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t count = kernel_.block[static_cast<size_t>(axis)], first = axis == 0 ? kWarp : 1;
    if (count > first) all = guarded(number({Dealt::To::kThreads, axis, 1}).expr < index(first), all);
  }
  return all;
}

NodePtr Translator::warp_loop(const poly::loops::For& node, const Ranged& begin, const Ranged& last, int64_t step,
                              int64_t first) {
  const bool outer = std::exchange(warp_->is_dealt, true);
  const Ranged lane = poly::ranged(number({Dealt::To::kThreads, 0, 1}).expr, 0, kWarp - 1);
  NodePtr result = make_node(counted_loop(node, begin + lane * poly::ranged(step), last, step * kWarp, first,
                                          [&](const Ranged& value) { return body_with(node, value); }));
  warp_->is_dealt = outer;
  return result;
}

NodePtr Translator::add_to_partial(const poly::Statement& statement, const BodyContext& context) {
  TC_CHECK(statement.kind == poly::Statement::Kind::kUpdate && !statement.guard.defined(),
           "{} is no reduction that a warp can share", statement.id);
  const Place& place = context.place(statement.tensor);
  if (!warp_->partial) {
    warp_->partial = registers(fresh(statement.tensor + "_partial"), statement.accumulator, 1);
    warp_->assign = statement.assign;
    const std::vector<Expr> at = written_position(statement, context);
    const Expr old = hi::Call::make(place.type, place.name, at, hi::Call::PureExtern);
    const Expr own = element(*warp_->partial, index(0));
    warp_->total = make_node(tile::Store{place.name, at, combine(statement.assign, old, own)});
  }
  const Expr own = element(*warp_->partial, index(0));
  const Expr value = combine(statement.assign, own, statement_value(statement, context));
  NodePtr add = carrying(statement, context, make_node(tile::Store{warp_->partial->name, {index(0)}, value}));
  return warp_->is_dealt ? add : guarded(number({Dealt::To::kThreads, 0, 1}).expr == 0, add);
}

}  // namespace tc::gpu
