#include "tc/gpu/lower/corrections.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/online_reduction.h"
#include "tc/ir/combine.h"

/// Slabs of a streamed chain whose points read a reduction that goes on (online_reduction.h).
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

/// Registers beside those of the reduction. Points of this product read the number.
void ContractionBuilder::declare_online(const OnlineReduction& online, const Expr& is_present) {
  const TileSum& sum = reductions_.at(online.reduction);
  const auto registers = [&](const char* what, Halide::Type type) {
    Tensor tensor = sum.sums;
    tensor.name = names_.fresh(sum.of->statement.tensor + what);
    tensor.type = type;
    return tensor;
  };
  online_.before = registers("_before", sum.sums.type);
  online_.number = registers("_number", sum.sums.type);
  online_.correction = registers("_correction", Halide::Float(32));
  if (online.is_subtracted) {
    online_.any_large = build::registers(names_.fresh(sum.of->statement.tensor + "_any_large"), Halide::Int(32),
                                         tile::Layout::row_major({1}));
  }
  online_.is_present = is_present;
  if (is_present.defined()) online_.present = registers("_present", Halide::Int(32));
  row_values_[sum.of->statement.tensor] = {online_.number, kept_axes(*sum.of)};
}

/// The registers that a slab needs, and those that all slabs do.
NodePtr ContractionBuilder::with_online_of_slab(NodePtr body) const {
  body = build::allocate(online_.before, build::allocate(online_.number, with_results(std::move(body))));
  return online_.any_large.name.empty() ? body : build::allocate(online_.any_large, body);
}

NodePtr ContractionBuilder::with_online(NodePtr body) const {
  body = build::allocate(online_.correction, body);
  return online_.is_present.defined() ? build::allocate(online_.present, body) : body;
}

NodePtr ContractionBuilder::start_online(const OnlineReduction& online) const {
  if (!online_.is_present.defined()) return build::sequence({});
  const TileSum& sum = reductions_.at(online.reduction);
  return over_registers(kept_axes(*sum.of), [&] { return build::store(online_.present, kept_registers(*sum.of), 0); });
}

/// Goes on with the mark of a point's row, which the reduction's operator brings together as the reduction itself.
NodePtr ContractionBuilder::find_present(const OnlineReduction& online) {
  const TileSum& sum = reductions_.at(online.reduction);
  const ir::Assign assign = sum.of->statement.assign;
  const std::vector<Expr> at = kept_registers(*sum.of);
  const Expr mark = assign == ir::Assign::kMax ? 1 : -1;
  const Expr own = hi::Select::make(point_value(online_.is_present, context_at(true)), mark, 0);
  return build::store(online_.present, at, ir::combine(assign, build::read(online_.present, at), own));
}

size_t ContractionBuilder::first_step_behind(const OnlineReduction& online) const {
  return c_.before.size() + 1 + online.points_before;
}

/// A slab's points as far as the reduction needs them, the reduction of a whole row in each of its lanes, and
/// corrections for all that was made before the slab.
NodePtr ContractionBuilder::reduce_online(const OnlineReduction& online) {
  const TileSum& sum = reductions_.at(online.reduction);
  const std::vector<size_t> axes = kept_axes(*sum.of);
  const std::vector<Expr> at = kept_registers(*sum.of);
  const Expr value = build::read(sum.sums, at), before = build::read(online_.before, at);
  const auto over_rows = [&](const NodePtr& body) { return over_registers(axes, [&] { return body; }); };
  std::vector<NodePtr> parts = {over_rows(build::store(online_.before, at, value))};
  parts.push_back(
      finish_slab({.last = first_step_behind(online), .to = online.kept, .reductions = online.before, .fills = false}));
  parts.push_back(exchange_lanes(sum));
  parts.push_back(
      over_rows(build::sequence({build::store(online_.number, at, as_number(sum.of->statement, value)),
                                 build::store(online_.correction, at, correction(online.factor, before, value))})));
  parts.push_back(correct_reductions(online));
  if (online.is_subtracted) parts.push_back(subtract_large(online));
  return build::sequence(std::move(parts));
}

/// Where R is large, points hold their distance from it, and 0 is in its place: multiples of the distance have no error
/// then that goes by how large R is. Masked rows have such an R, and few others.
NodePtr ContractionBuilder::subtract_large(const OnlineReduction& online) const {
  constexpr float kLarge = 1024;  // a multiple below 2 is rounded by no more than 2^-14
  const TileSum& sum = reductions_.at(online.reduction);
  const std::vector<size_t> axes = kept_axes(*sum.of);
  const std::vector<Expr> at = kept_registers(*sum.of);
  const Expr number = build::read(online_.number, at), any = build::read(online_.any_large, {0});
  const Expr is_large = number >= kLarge || number <= -kLarge, point = build::read(sum_, sum_subscripts());
  const auto over_rows = [&](const Expr& value, const Tensor& to, const std::vector<Expr>& place) {
    return over_registers(axes, [&] { return build::store(to, place, value); });
  };
  const NodePtr distances = over_registers(all_axes(), [&] {
    return build::store(sum_, sum_subscripts(), hi::Select::make(is_large, point - number, point));
  });
  return build::sequence(
      {build::store(online_.any_large, {0}, 0), over_rows(hi::Select::make(is_large, 1, any), online_.any_large, {0}),
       build::if_then(
           any != 0,
           build::sequence({distances, over_rows(hi::Select::make(is_large, hi::make_zero(number.type()), number),
                                                 online_.number, at)}))});
}

/// The rest of a slab's points, which read the reduction.
NodePtr ContractionBuilder::finish_online(const OnlineReduction& online) {
  std::vector<bool> behind = online.before;
  behind.flip();
  PointPart part{.first = first_step_behind(online), .from = online.kept, .reductions = behind};
  if (online_.is_present.defined()) part.also = [&] { return find_present(online); };
  return finish_slab(part);
}

/// Behind the last slab: NaN in the place of corrections where there was nothing but the reduction's identity.
NodePtr ContractionBuilder::last_corrections(const OnlineReduction& online) {
  const TileSum& sum = reductions_.at(online.reduction);
  const std::vector<Expr> at = kept_registers(*sum.of);
  const Expr value = build::read(sum.sums, at);
  std::vector<NodePtr> parts;
  const bool has_marks = online_.is_present.defined();
  if (has_marks) {
    TileSum marks = sum;
    marks.sums = online_.present;
    parts.push_back(exchange_lanes(marks));
  }
  parts.push_back(over_registers(kept_axes(*sum.of), [&] {
    Expr last = last_correction(sum.of->statement, value);
    if (has_marks) {
      last = hi::Select::make(build::read(online_.present, at) != 0, last, hi::make_one(last.type()));
    }
    return build::store(online_.correction, at, last);
  }));
  parts.push_back(correct_reductions(online));
  return build::sequence(std::move(parts));
}

NodePtr ContractionBuilder::correct_reductions(const OnlineReduction& online) const {
  std::vector<NodePtr> parts;
  for (size_t r = 0; r < reductions_.size(); ++r) {
    if (!online.rescaled[r]) continue;
    const TileSum& sum = reductions_[r];
    const std::vector<Expr> at = kept_registers(*sum.of);
    parts.push_back(over_registers(kept_axes(*sum.of), [&] {
      return build::store(sum.sums, at, build::read(sum.sums, at) * build::read(online_.correction, at));
    }));
  }
  return build::sequence(std::move(parts));
}

/// Multiplies all sums of this product by the corrections of their rows.
NodePtr ContractionBuilder::correct_sums(const RowValue& correction) const {
  return over_registers(all_axes(), [&] {
    std::vector<Expr> row;
    for (size_t axis : correction.axes) row.push_back(register_at(axis));
    const Expr sum = build::read(sum_, sum_subscripts());
    return build::store(sum_, sum_subscripts(), sum * build::read(correction.sums, row));
  });
}

}  // namespace tc::gpu
