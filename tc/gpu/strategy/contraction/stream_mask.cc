#include <algorithm>

#include "tc/gpu/lower/corrections.h"
#include "tc/gpu/strategy/contraction/online_presence.h"
#include "tc/gpu/strategy/contraction/stream_builder.h"
#include "tc/ir/combine.h"

/// What points of slabs that are left out add where a mask hides them by a number (idle_points.h).
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;

namespace {

Expr converted(const Expr& e, Halide::Type type) { return e.type() == type ? e : hi::Cast::make(type, e); }

}  // namespace

/// What the second product adds up for a column, of the value that all its idle points have.
Expr StreamBuilder::masked_term(const Expr& operand, const Expr& column) const {
  const Contraction& c = second_.c_;
  std::map<std::string, Expr> values;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Operand& o = c.operands[i];
    if (i == chain_.links[0].operand) {
      values[o.placeholder] = converted(operand, o.type);
      continue;
    }
    std::vector<Expr> at;
    for (const Subscript& s : o.subscripts) {
      Expr value = static_cast<int>(s.constant);
      for (size_t a = 0; a < s.parallel.size(); ++a) {
        if (s.parallel[a] != 0)
          value = value + (second_.first_[a] + second_.local(a)) * static_cast<int>(s.parallel[a]);
      }
      if (s.reduction[0] != 0) {
        value = value + (column + static_cast<int>(c.reduction[0].begin)) * static_cast<int>(s.reduction[0]);
      }
      at.push_back(hi::simplify(value));
    }
    values[o.placeholder] = build::read(build::global(o.tensor, o.type, row_major(o.extents)), at);
  }
  return converted(hi::substitute(values, c.update.value), second_.sum_.type);
}

/// Of each row of a thread whose extreme is not far enough from the mask's number: the extreme takes in the number, and
/// the columns that no slab had are added one by one.
NodePtr StreamBuilder::add_masked() {
  if (!range_ || !chain_.idle->mask) return build::sequence({});
  const IdlePoints::Mask& mask = *chain_.idle->mask;
  const OnlineReduction& online = *chain_.online;
  const ContractionBuilder::TileSum& extreme = first_.reductions_[online.reduction];
  const poly::Statement& s = extreme.of->statement;
  const auto columns = static_cast<int>(chain_.products[0].parallel[slab_axis_].extent);
  const auto slab = static_cast<int>(first_.plan_.parallel[slab_axis_].tile);
  const Expr head = first_slab_ * slab;
  const Expr end = head + turns_ * slab;
  const Expr done = hi::simplify((columns % slab == 0 ? end : Halide::min(end, columns)) - head);
  const Expr left = hi::simplify(columns - done);

  std::vector<Expr> row;
  for (size_t axis : correction_.axes) row.push_back(second_.register_at(axis));
  const Expr value = build::read(extreme.sums, row), correction_here = build::read(online_correction(), row);
  const Expr number = converted(mask.extreme, extreme.sums.type);
  const auto at_extreme = [&](const Expr& e) {
    return hi::substitute(std::map<std::string, Expr>{{kExtremeVariable, converted(value, s.accumulator)}}, e);
  };
  const auto is_zero = [&](const Expr& e) {
    return hi::EQ::make(converted(at_extreme(e), Halide::Float(32)), hi::make_zero(Halide::Float(32)));
  };
  Expr is_far = s.assign == ir::Assign::kMax ? hi::GE::make(value, number) : hi::LE::make(value, number);
  is_far = hi::And::make(is_far, is_zero(mask.operand));
  for (const Expr& e : mask.reductions) {
    if (e.defined()) is_far = hi::And::make(is_far, is_zero(e));
  }
  Expr here = left > 0;
  std::vector<size_t> other_axes;
  for (size_t axis : second_.all_axes()) {
    const bool is_row = std::find(correction_.axes.begin(), correction_.axes.end(), axis) != correction_.axes.end();
    if (!is_row) other_axes.push_back(axis);
  }
  const auto within = [&](size_t axis) {
    const Axis& a = second_.c_.parallel[axis];
    return second_.first_[axis] + second_.local(axis) < static_cast<int>(a.begin + a.extent);
  };
  for (size_t axis : correction_.axes) {
    if (second_.is_partial(axis)) here = here && within(axis);
  }

  const Expr raised = ir::combine(s.assign, value, number);
  std::vector<NodePtr> parts = {build::store(online_correction(), row, correction(online.factor, value, raised)),
                                build::store(extreme.sums, row, raised)};
  constexpr int kQuad = 4;  // lanes of a row, of which one counts
  for (size_t r = 0; r < first_.reductions_.size(); ++r) {
    if (!mask.reductions[r].defined()) continue;
    const tile::Tensor& sums = first_.reductions_[r].sums;
    const Expr added = converted(left, sums.type) * converted(at_extreme(mask.reductions[r]), sums.type);
    parts.push_back(build::store(sums, row,
                                 build::read(sums, row) * correction_here +
                                     hi::Select::make(first_.lane_ % kQuad == 0, added, hi::make_zero(sums.type))));
  }
  const std::vector<Expr> sum_at = second_.sum_subscripts();
  const Expr sum = build::read(second_.sum_, sum_at);
  parts.push_back(
      second_.over_registers(other_axes, [&] { return build::store(second_.sum_, sum_at, sum * correction_here); }));
  const std::string name = names_.fresh("masked");
  const Expr n = build::var(name);
  const Expr column = hi::is_const_zero(hi::simplify(head)) ? n + done : hi::Select::make(n < head, n, n + done);
  NodePtr add = second_.over_registers(other_axes, [&] {
    NodePtr store = build::store(second_.sum_, sum_at, sum + masked_term(at_extreme(mask.operand), column));
    for (size_t axis : other_axes) {
      if (second_.is_partial(axis)) store = build::if_then(within(axis), store);
    }
    return store;
  });
  parts.push_back(build::for_loop(name, 0, left, add));
  return second_.over_registers(correction_.axes, [&] {
    return build::if_then(here, build::if_then(hi::Not::make(is_far), build::sequence(std::move(parts))));
  });
}

}  // namespace tc::gpu
