#include <algorithm>

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

/// Reductions of a contraction's results within a block's tile: in the registers of a thread, then by exchanges within
/// warps, then through shared memory.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

Tensor as_written(Tensor tensor) {
  tensor.written = true;
  return tensor;
}

}  // namespace

void ContractionBuilder::declare_reductions() {
  for (const TileReduction& reduction : c_.reductions) {
    TileSum sum{&reduction, *thread_reduction(plan_, reduction), {}, {}, {}};
    const std::string& name = reduction.statement.tensor;
    const Halide::Type type = reduction.statement.accumulator;
    std::vector<int64_t> registers, tile = {sum.threads.slots}, points;
    for (size_t axis : all_axes()) {
      points.push_back(plan_.parallel[axis].registers);
      if (reduction.reduced[axis]) continue;
      registers.push_back(plan_.parallel[axis].registers);
      tile.push_back(plan_.parallel[axis].tile);
    }
    if (registers.empty()) registers = {1};
    points.push_back(plan_.points_threads());
    sum.sums = as_written(build::registers(names_.fresh(name + "_reduced"), type, row_major(registers)));
    if (plan_.groups > 1) {
      sum.points = as_written(build::shared(names_.fresh(name + "_points"), type, row_major(points)));
    }
    if (sum.threads.slots > 1) {
      sum.shared = as_written(build::shared(names_.fresh(name + "_shared"), type, row_major(tile)));
    }
    reductions_.push_back(std::move(sum));
  }
}

/// The axes along which it has several results, slowest first.
std::vector<size_t> ContractionBuilder::kept_axes(const TileReduction& reduction) const {
  std::vector<size_t> result;
  for (size_t axis : all_axes()) {
    if (!reduction.reduced[axis]) result.push_back(axis);
  }
  return result;
}

std::vector<Expr> ContractionBuilder::kept_registers(const TileReduction& reduction) const {
  std::vector<Expr> result;
  for (size_t axis : kept_axes(reduction)) result.push_back(register_at(axis));
  if (result.empty()) result.push_back(0);
  return result;
}

/// The statement's indices at places of the block's tile.
BodyContext ContractionBuilder::reduction_context(const TileReduction& reduction,
                                                  const std::map<size_t, Expr>& local) const {
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t a = 0; a < c_.parallel.size(); ++a) {
    const Axis& axis = c_.parallel[a];
    const bool has_parts = !reduction.part[a].empty();
    if (has_parts) {
      const int64_t parts = ceil_div(axis.extent, reduction.part_extents[a]);
      context.indices[reduction.part[a]] = poly::ranged(block_[a], 0, parts - 1);
    }
    const auto at = local.find(a);
    if (at == local.end()) continue;
    const int64_t begin = axis.begin - reduction.shift[a];
    Expr value = at->second + static_cast<int>(begin);
    if (!has_parts) value = first_[a] - static_cast<int>(reduction.shift[a]) + at->second;
    context.indices[reduction.index[a]] =
        poly::ranged(hi::simplify(value), begin, begin + std::min(reduction.part_extents[a], axis.extent) - 1);
  }
  return context;
}

BodyContext ContractionBuilder::reduction_context(const TileReduction& reduction) const {
  std::map<size_t, Expr> all;
  for (size_t a = 0; a < c_.parallel.size(); ++a) all[a] = local(a);
  return reduction_context(reduction, all);
}

/// Whether the block has results at a place: undefined if it always does.
Expr ContractionBuilder::has_results(const TileReduction& reduction, const BodyContext& context) const {
  Expr result;
  const auto demand = [&](const Expr& condition) { result = result.defined() ? result && condition : condition; };
  for (size_t a = 0; a < c_.parallel.size(); ++a) {
    if (!is_partial(a)) continue;
    const int64_t extent = c_.parallel[a].extent;
    if (!reduction.reduced[a]) {
      const int64_t end = c_.parallel[a].begin - reduction.shift[a] + extent;
      demand(context.indices.at(reduction.index[a]).expr < static_cast<int>(end));
    } else if (const int64_t parts = ceil_div(extent, plan_.parallel[a].tile); parts < plan_.parallel[a].blocks) {
      demand(block_[a] < static_cast<int>(parts));  // a cluster's last block may have none
    }
  }
  return result;
}

NodePtr ContractionBuilder::store_reduced(const TileSum& sum, const BodyContext& context, const Expr& value) const {
  const poly::Statement& statement = sum.of->statement;
  const Tensor to = global_tensor(program_.tensor(statement.tensor), true);
  const NodePtr store = build::store(to, element_at(statement.subscripts, context), value);
  const Expr condition = has_results(*sum.of, context);
  return condition.defined() ? build::if_then(condition, store) : store;
}

NodePtr ContractionBuilder::start_sums(const TileSum& sum) const {
  const poly::Statement& statement = sum.of->statement;
  return over_registers(kept_axes(*sum.of), [&] {
    const NodePtr start =
        build::store(sum.sums, kept_registers(*sum.of), ir::identity_of(statement.assign, statement.accumulator));
    return sum.of->start ? carrying(scop_.statement(*sum.of->start), reduction_context(*sum.of), start) : start;
  });
}

/// Where a point's value lies until all groups of threads have finished theirs.
std::vector<Expr> ContractionBuilder::point_in_shared() const {
  std::vector<Expr> result = sum_subscripts();
  result.push_back(point_thread_);
  return result;
}

/// What is done for each reduction at a point, or for some of them.
NodePtr ContractionBuilder::reduce_points(const std::vector<bool>& which) {
  std::vector<NodePtr> parts;
  for (size_t r = 0; r < reductions_.size(); ++r) {
    if (!which.empty() && !which[r]) continue;
    const TileSum& sum = reductions_[r];
    const BodyContext own = reduction_context(*sum.of);
    BodyContext context = context_at(true);
    for (const std::string& part : sum.of->part) {
      if (!part.empty()) context.indices[part] = own.indices.at(part);
    }
    const poly::Statement& statement = sum.of->statement;
    Expr value = point_value(sum.of->value, context);
    if (value.type() != statement.accumulator) value = hi::Cast::make(statement.accumulator, value);
    NodePtr reduce;
    if (plan_.groups > 1) {
      reduce = build::store(sum.points, point_in_shared(), value);
    } else {
      const std::vector<Expr> at = kept_registers(*sum.of);
      reduce = build::store(sum.sums, at, combine(statement.assign, build::read(sum.sums, at), value));
    }
    parts.push_back(carrying(statement, own, reduce));
  }
  return build::sequence(std::move(parts));
}

/// The same outside of the ranges.
NodePtr ContractionBuilder::reduce_nothing() const {
  std::vector<NodePtr> parts;
  for (const TileSum& sum : reductions_) {
    const poly::Statement& statement = sum.of->statement;
    parts.push_back(
        build::store(sum.points, point_in_shared(), ir::identity_of(statement.assign, statement.accumulator)));
  }
  return build::sequence(std::move(parts));
}

NodePtr ContractionBuilder::exchange_lanes(const TileSum& sum) {
  if (sum.threads.lane_masks.empty()) return build::sequence({});
  const Tensor other =
      as_written(build::registers(names_.fresh(sum.sums.name + "_other"), sum.sums.type, tile::Layout::row_major({1})));
  const std::vector<Expr> at = kept_registers(*sum.of);
  const Expr own = build::read(sum.sums, at);
  std::vector<NodePtr> parts;
  for (const int mask : sum.threads.lane_masks) {
    parts.push_back(build::shuffle(other, {0}, tile::Shuffle::Kind::kXor, own, mask));
    parts.push_back(build::store(sum.sums, at, combine(sum.of->statement.assign, own, build::read(other, {0}))));
  }
  const NodePtr all = build::sequence(std::move(parts));
  return build::allocate(other, over_registers(kept_axes(*sum.of), [&] { return all; }));
}

/// The first of the lanes that have exchanged writes what they have: to where the results are, or to shared memory.
NodePtr ContractionBuilder::put_partial_results(const TileSum& sum) const {
  Expr is_first, slot = 0;
  int64_t stride = 1;
  for (size_t a = 0; a < c_.parallel.size(); ++a) {
    if (!sum.of->reduced[a]) continue;
    const auto lanes = static_cast<int>(sum.threads.lanes[a]);
    if (lanes > 1) {
      const Expr first = hi::simplify(thread_[a] % lanes == 0);
      is_first = is_first.defined() ? is_first && first : first;
    }
    if (plan_.by_warpgroups()) continue;
    slot = slot + thread_[a] / lanes * static_cast<int>(stride);
    stride *= plan_.parallel[a].threads() / lanes;
  }
  if (plan_.by_warpgroups() && sum.threads.slots > 1) {
    constexpr int kQuad = 4;
    is_first = is_first.defined() ? lane_ == 0 : lane_ / kQuad == 0;
    slot = row_warp_;
  }
  const NodePtr put = over_registers(kept_axes(*sum.of), [&] {
    const Expr value = build::read(sum.sums, kept_registers(*sum.of));
    if (sum.threads.slots == 1) return store_reduced(sum, reduction_context(*sum.of), value);
    std::vector<Expr> at = {hi::simplify(slot)};
    for (size_t axis : kept_axes(*sum.of)) at.push_back(local(axis));
    return build::store(sum.shared, at, value);
  });
  return is_first.defined() ? build::if_then(is_first, put) : put;
}

/// Identities before the first point. Groups of threads start when all points are there.
NodePtr ContractionBuilder::start_reductions() const {
  std::vector<NodePtr> parts;
  for (const TileSum& sum : reductions_) {
    if (plan_.groups == 1) parts.push_back(start_sums(sum));
  }
  return build::sequence(std::move(parts));
}

/// After the last point: partial results of threads, brought together within warps. Of groups of threads the first one
/// goes through what all have put into shared memory.
NodePtr ContractionBuilder::reduce_threads() {
  if (reductions_.empty()) return build::sequence({});
  std::vector<NodePtr> parts;
  for (const TileSum& sum : reductions_) {
    if (plan_.groups > 1) {
      parts.push_back(start_sums(sum));
      parts.push_back(over_registers(all_axes(), [&] {
        const std::vector<Expr> at = kept_registers(*sum.of);
        const Expr all = build::read(sum.sums, at), point = build::read(sum.points, point_in_shared());
        return build::store(sum.sums, at, combine(sum.of->statement.assign, all, point));
      }));
    }
    parts.push_back(exchange_lanes(sum));
    parts.push_back(put_partial_results(sum));
  }
  const NodePtr all = build::sequence(std::move(parts));
  return plan_.groups == 1 ? all : build::sequence({build::barrier(), build::if_then(part_ == 0, all)});
}

/// All threads of the block add up what shared memory has of the tile's results.
NodePtr ContractionBuilder::add_slots(const TileSum& sum) {
  const int64_t threads = plan_.block_threads(), elements = sum.threads.elements;
  const std::string round = names_.fresh("round");
  const int64_t rounds = ceil_div(elements, threads);
  Expr number = build::thread_x();
  if (rounds > 1) number = number + build::var(round) * static_cast<int>(threads);
  const Tensor total =
      as_written(build::registers(names_.fresh(sum.sums.name + "_total"), sum.sums.type, tile::Layout::row_major({1})));
  const std::vector<size_t> axes = kept_axes(*sum.of);
  std::vector<Expr> at(axes.size() + 1, 0);
  std::map<size_t, Expr> local;
  Expr rest = number;
  int64_t left = elements;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t tile = plan_.parallel[axes[i]].tile;
    left /= tile;
    at[i + 1] = tile == 1 ? Expr(0) : hi::simplify(left > 1 ? rest % static_cast<int>(tile) : rest);
    local[axes[i]] = at[i + 1];
    rest = rest / static_cast<int>(tile);
  }
  std::vector<NodePtr> parts = {build::store(total, {0}, build::read(sum.shared, at))};
  const std::string slot = names_.fresh("slot");
  at[0] = build::var(slot);
  const Expr all = build::read(total, {0});
  parts.push_back(
      build::unrolled(slot, 1, static_cast<int>(sum.threads.slots),
                      build::store(total, {0}, combine(sum.of->statement.assign, all, build::read(sum.shared, at)))));
  parts.push_back(store_reduced(sum, reduction_context(*sum.of, local), all));
  NodePtr body = build::allocate(total, build::sequence(std::move(parts)));
  if (rounds * threads != elements) body = build::if_then(number < static_cast<int>(elements), body);
  return rounds == 1 ? body : build::for_loop(round, 0, static_cast<int>(rounds), body);
}

/// The kernel's body with what shared memory is needed for.
NodePtr ContractionBuilder::with_reductions(NodePtr body) {
  std::vector<NodePtr> parts = {std::move(body), build::barrier()};
  for (const TileSum& sum : reductions_) {
    if (sum.threads.slots > 1) parts.push_back(add_slots(sum));
  }
  NodePtr result = parts.size() > 2 ? build::sequence(std::move(parts)) : parts[0];
  for (const TileSum& sum : reductions_) {
    if (sum.threads.slots > 1) result = build::allocate(sum.shared, result);
    if (plan_.groups > 1) result = build::allocate(sum.points, result);
  }
  return result;
}

}  // namespace tc::gpu
