#include <algorithm>
#include <numeric>

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
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
      const AxisPlan& a = plan_.parallel[axis];
      points.push_back(a.registers);
      const bool has_parts = has_several_parts(plan_, reduction, axis);
      if (reduction.reduced[axis] && !has_parts) continue;
      registers.push_back(a.registers / (sum.threads.low[axis] * sum.threads.high[axis]));
      tile.push_back(has_parts ? a.tile / reduction.part_extents[axis] : a.tile);
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
    if (!reduction.reduced[axis] || has_several_parts(plan_, reduction, axis)) result.push_back(axis);
  }
  return result;
}

std::vector<Expr> ContractionBuilder::kept_registers(const TileReduction& reduction) const {
  std::vector<Expr> result;
  for (size_t axis : kept_axes(reduction)) result.push_back(register_at(axis));
  if (result.empty()) result.push_back(0);
  return result;
}

/// The same where a tile may have several parts of an axis.
std::vector<Expr> ContractionBuilder::kept_registers(const TileSum& sum) const {
  std::vector<Expr> result;
  for (size_t axis : kept_axes(*sum.of)) {
    const AxisPlan& a = plan_.parallel[axis];
    const auto low = static_cast<int>(sum.threads.low[axis]), high = static_cast<int>(sum.threads.high[axis]);
    if (low * high == 1) {
      result.push_back(register_at(axis));
      continue;
    }
    const Expr number = a.registers > a.group ? build::var(high_[axis]) / high : Expr(0);
    const Expr in_group = a.group > low ? build::var(low_[axis]) / low : Expr(0);
    result.push_back(hi::simplify(number * static_cast<int>(a.group / low) + in_group));
  }
  if (result.empty()) result.push_back(0);
  return result;
}

/// Does something for each result of a thread, at the first of its points; of the axis `whole_group`, if there is one,
/// for each group of neighbours.
NodePtr ContractionBuilder::over_kept(const TileSum& sum, int whole_group, const Body& body) const {
  const std::vector<size_t> axes = kept_axes(*sum.of);
  const auto first_points = [&] {
    Expr is_first;
    const auto demand = [&](const std::string& digit, int64_t by) {
      if (by == 1) return;
      const Expr first = build::var(digit) % static_cast<int>(by) == 0;
      is_first = is_first.defined() ? is_first && first : first;
    };
    for (size_t axis : axes) {
      demand(low_[axis], sum.threads.low[axis]);
      demand(high_[axis], sum.threads.high[axis]);
    }
    return is_first.defined() ? build::if_then(is_first, body()) : body();
  };
  return over_registers(axes, first_points, whole_group);
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
    const auto at = local.find(a);
    const auto part = static_cast<int>(reduction.part_extents[a]);
    const bool has_several = has_several_parts(plan_, reduction, a);
    if (has_parts) {
      const int64_t parts = ceil_div(axis.extent, reduction.part_extents[a]);
      Expr number = block_[a];
      if (has_several) number = number * static_cast<int>(plan_.parallel[a].tile / part) + at->second / part;
      context.indices[reduction.part[a]] = poly::ranged(hi::simplify(number), 0, parts - 1);
    }
    if (at == local.end()) continue;
    const int64_t begin = axis.begin - reduction.shift[a];
    Expr value = (has_several ? at->second % part : at->second) + static_cast<int>(begin);
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
    } else if (has_several_parts(plan_, reduction, a)) {
      const int64_t parts = ceil_div(extent, reduction.part_extents[a]);
      demand(context.indices.at(reduction.part[a]).expr < static_cast<int>(parts));
    } else if (const int64_t parts = ceil_div(extent, plan_.parallel[a].tile); parts < plan_.parallel[a].blocks) {
      demand(block_[a] < static_cast<int>(parts));  // a cluster's last block may have none
    }
  }
  return result;
}

/// Neighbours along the fastest axis that a thread stores at once: as many as are aligned in a vector.
int64_t ContractionBuilder::reduced_vector(const TileSum& sum) const {
  constexpr int64_t kVector = 16;  // bytes
  const size_t axis = plan_.order[0];
  const AxisPlan& a = plan_.parallel[axis];
  const Axis& own = c_.parallel[axis];
  const poly::Statement& statement = sum.of->statement;
  if (sum.threads.slots > 1 || sum.of->reduced[axis] || statement.subscripts.empty()) return 1;
  const Expr index = hi::Variable::make(ir::index_type(), sum.of->index[axis]);
  const Expr offset = hi::simplify(statement.subscripts.back() - index);
  const int64_t* constant = ir::constant_int(offset);
  const ir::Tensor& tensor = program_.tensor(statement.tensor);
  const int64_t vector = std::gcd(a.group, kVector / tensor.type.bytes());
  const bool is_aligned = constant && (*constant + own.begin - sum.of->shift[axis]) % vector == 0 &&
                          own.extent % vector == 0 && (a.blocks == 1 || a.tile % vector == 0) &&
                          ir::row_divisor(tensor) % vector == 0;
  return is_aligned ? vector : 1;
}

/// Stores a group of a thread's neighbours, by vectors.
NodePtr ContractionBuilder::store_reduced_group(const TileSum& sum) const {
  const size_t axis = plan_.order[0];
  const int64_t vector = reduced_vector(sum);
  const poly::Statement& statement = sum.of->statement;
  const Tensor to = global_tensor(program_.tensor(statement.tensor), true);
  const BodyContext context = reduction_context(*sum.of);
  const Expr condition = has_results(*sum.of, context);
  std::vector<NodePtr> stores;
  for (int64_t low = 0; low < plan_.parallel[axis].group; low += vector) {
    const auto here = [&](const Expr& e) {
      return hi::simplify(hi::substitute(low_[axis], Expr(static_cast<int>(low)), e));
    };
    const auto all_here = [&](std::vector<Expr> subscripts) {
      for (Expr& e : subscripts) e = here(e);
      return subscripts;
    };
    const NodePtr store = build::move(to, all_here(element_at(statement.subscripts, context)), sum.sums,
                                      all_here(kept_registers(sum)), static_cast<int>(vector));
    stores.push_back(condition.defined() ? build::if_then(here(condition), store) : store);
  }
  return build::sequence(std::move(stores));
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
  return over_kept(sum, -1, [&] {
    const NodePtr start =
        build::store(sum.sums, kept_registers(sum), ir::identity_of(statement.assign, statement.accumulator));
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
      const std::vector<Expr> at = kept_registers(sum);
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
  const std::vector<Expr> at = kept_registers(sum);
  const Expr own = build::read(sum.sums, at);
  std::vector<NodePtr> parts;
  for (const int mask : sum.threads.lane_masks) {
    parts.push_back(build::shuffle(other, {0}, tile::Shuffle::Kind::kXor, own, mask));
    parts.push_back(build::store(sum.sums, at, combine(sum.of->statement.assign, own, build::read(other, {0}))));
  }
  const NodePtr all = build::sequence(std::move(parts));
  return build::allocate(other, over_kept(sum, -1, [&] { return all; }));
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
    if (plan_.by_warpgroups() || has_several_parts(plan_, *sum.of, a)) continue;
    slot = slot + thread_[a] / lanes * static_cast<int>(stride);
    stride *= plan_.parallel[a].threads() / lanes;
  }
  if (plan_.by_warpgroups() && sum.threads.slots > 1) {
    constexpr int kQuad = 4;
    is_first = is_first.defined() ? lane_ == 0 : lane_ / kQuad == 0;
    slot = row_warp_;
  }
  const bool by_vectors = reduced_vector(sum) > 1;
  const int whole_group = by_vectors ? static_cast<int>(plan_.order[0]) : -1;
  const NodePtr put = over_kept(sum, whole_group, [&] {
    if (by_vectors) return store_reduced_group(sum);
    const Expr value = build::read(sum.sums, kept_registers(sum));
    if (sum.threads.slots == 1) return store_reduced(sum, reduction_context(*sum.of), value);
    std::vector<Expr> at = {hi::simplify(slot)};
    for (size_t axis : kept_axes(*sum.of)) {
      const bool has_parts = has_several_parts(plan_, *sum.of, axis);
      at.push_back(has_parts ? hi::simplify(local(axis) / static_cast<int>(sum.of->part_extents[axis])) : local(axis));
    }
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
        const std::vector<Expr> at = kept_registers(sum);
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
    const bool has_parts = has_several_parts(plan_, *sum.of, axes[i]);
    const int64_t part = has_parts ? sum.of->part_extents[axes[i]] : 1, tile = plan_.parallel[axes[i]].tile / part;
    left /= tile;
    at[i + 1] = tile == 1 ? Expr(0) : hi::simplify(left > 1 ? rest % static_cast<int>(tile) : rest);
    local[axes[i]] = hi::simplify(at[i + 1] * static_cast<int>(part));
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
