#include <algorithm>

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/round.h"

/// Products of warpgroups whose operand `a` stays for all steps of another product. Threads hold it in registers, where
/// its tensor is [slice, value], as tile::FragmentTile says, or lies as the sums of another product do. Or boxes bring
/// it to shared memory once.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

constexpr int kRowsOfPair = 2, kColumnsApart = 8;  ///< values of a slice: pairs of neighbours along k, of two rows each

tile::WarpgroupAtom atom_of(const Contraction& c, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  return {ir::from_halide(c.operands[cores.a].type), ir::from_halide(c.operands[cores.b].type),
          static_cast<int>(tile_of(cores.columns, plan))};
}

/// Whether two values of k that follow each other, of which the first is even, are an aligned pair of the tensor.
bool has_pairs(const Contraction& c, const Operand& operand, const ContractionPlan& plan) {
  const Subscript& last = operand.subscripts.back();
  const Axis& main = c.reduction[plan.main];
  const auto is_even = [](int64_t by) { return by % 2 == 0; };
  if (last.reduction[plan.main] != 1 || !is_even(operand.row_divisor())) return false;
  int64_t others = 0;
  for (size_t r = 0; r < last.reduction.size(); ++r) {
    if (r != plan.main) others += last.reduction[r] * c.reduction[r].begin;
  }
  const bool alone = std::count_if(operand.subscripts.begin(), operand.subscripts.end(),
                                   [&](const Subscript& s) { return s.reduction[plan.main] != 0; }) == 1;
  return alone && is_even(main.extent) && is_even(last.constant + main.begin + others) &&
         std::all_of(last.parallel.begin(), last.parallel.end(), is_even);
}

/// The element of a register tensor at an offset.
std::vector<Expr> subscripts_at(const tile::Layout& layout, int64_t offset) {
  int64_t number = tile::right_inverse(layout)(offset);
  std::vector<Expr> result;
  for (int d = 0; d < layout.rank(); ++d) {
    const int64_t extent = layout[d].size();
    result.emplace_back(static_cast<int>(number % extent));
    number /= extent;
  }
  return result;
}

}  // namespace

Tensor ContractionBuilder::held_tensor(size_t operand) {
  const tile::WarpgroupAtom atom = atom_of(c_, plan_);
  const int64_t slices = ceil_div(c_.reduction[plan_.main].extent, int64_t{atom.k()});
  const Operand& o = c_.operands[operand];
  Tensor tensor = build::registers(names_.fresh(o.tensor + "_held"), o.type, row_major({slices, atom.values_of_a()}));
  tensor.written = true;
  return tensor;
}

/// Loads all that a thread holds of an operand whose reduction is one step. Zeros lie behind the reduction and the
/// rows.
NodePtr ContractionBuilder::load_held(size_t operand) {
  constexpr int kQuad = 4, kPair = 2;
  const Operand& o = c_.operands[operand];
  const Tensor& to = shared_[operand];
  const Axis& main = c_.reduction[plan_.main];
  const std::vector<size_t>& rows = plan_.tensor_cores->rows;
  const tile::WarpgroupAtom atom = atom_of(c_, plan_);
  const std::string slice = names_.fresh("slice"), half = names_.fresh("half"), value = names_.fresh("value");
  const bool in_pairs = has_pairs(c_, o, plan_);
  Expr row = 0, inside;  // which of the thread's two rows
  const auto demand = [&](const Expr& e) { inside = inside.defined() ? inside && e : e; };
  for (size_t axis : rows) {
    row = row + register_at(axis);
    if (is_partial(axis)) {
      demand(first_[axis] + local(axis) < static_cast<int>(c_.parallel[axis].begin + c_.parallel[axis].extent));
    }
  }
  Expr k = build::var(slice) * atom.k() + build::var(half) * kColumnsApart + lane_ % kQuad * kPair;
  if (!in_pairs) k = k + build::var(value);
  if (main.extent % atom.k() != 0) demand(k < static_cast<int>(main.extent));
  std::vector<Expr> from;
  for (const Subscript& s : o.subscripts) {
    Expr at = static_cast<int>(s.constant);
    for (size_t i = 0; i < s.parallel.size(); ++i) {
      if (s.parallel[i] != 0) at = at + (first_[i] + local(i)) * static_cast<int>(s.parallel[i]);
    }
    for (size_t r = 0; r < s.reduction.size(); ++r) {
      const Expr begin = static_cast<int>(c_.reduction[r].begin);
      if (s.reduction[r] != 0) at = at + (r == plan_.main ? begin + k : begin) * static_cast<int>(s.reduction[r]);
    }
    from.push_back(hi::simplify(at));
  }
  Expr place = (build::var(half) * kRowsOfPair + row) * kPair;
  if (!in_pairs) place = place + build::var(value);
  const std::vector<Expr> at = {build::var(slice), hi::simplify(place)};
  const Tensor source = build::global(o.tensor, o.type, layout_in_memory(operand));
  NodePtr load = build::move(to, at, source, from, in_pairs ? kPair : 1);
  if (inside.defined()) {
    std::vector<NodePtr> zeros;
    for (int i = 0; i < (in_pairs ? kPair : 1); ++i) {
      zeros.push_back(build::store(to, {at[0], hi::simplify(at[1] + i)}, hi::make_zero(o.type)));
    }
    load = build::if_then(hi::simplify(inside), load, build::sequence(std::move(zeros)));
  }
  if (!in_pairs) load = build::unrolled(value, 0, kPair, load);
  load = over_registers(rows, [&] { return load; });
  const auto slices = static_cast<int>(ceil_div(main.extent, int64_t{atom.k()}));
  return build::unrolled(slice, 0, slices, build::unrolled(half, 0, 2, load));
}

int64_t ContractionBuilder::bytes_of_step_boxes(size_t operand) const {
  return plan_.operands[operand].stage * c_.operands[operand].type.bytes();
}

/// Copies all boxes of an operand for a step.
NodePtr ContractionBuilder::copy_step_boxes(size_t operand, const ReductionStep& step, const Expr& stage,
                                            const Expr& turn) {
  return copy_operand(operand, coordinates(operand, step), stage, turn);
}

/// The products of a step, one for each of its boxes along the reduction.
std::vector<NodePtr> ContractionBuilder::multiply_kept(const ReductionStep& step, const Expr& stage,
                                                       bool starts) const {
  constexpr int kGroupWarps = 4;
  const TensorCores& cores = *plan_.tensor_cores;
  const tile::WarpgroupAtom atom = atom_of(c_, plan_);
  const int64_t values = values_of_step(c_, plan_);
  const bool held = plan_.operands[cores.a].kept;
  const int64_t boxes = std::max(boxes_along(c_, cores.b, plan_), held ? 1 : boxes_along(c_, cores.a, plan_));
  const int64_t of_box = plan_.chunk[plan_.main] / boxes;
  const Expr row = hi::simplify(row_warp_ / kGroupWarps * tile::WarpgroupAtom::kM);
  std::vector<NodePtr> result;
  for (int64_t from = 0; from < values; from += of_box) {
    const int64_t length = std::min(of_box, values - from);
    const auto slices = static_cast<int>(length / atom.k());
    const tile::MatrixTile b = boxed_tile(cores.b, stage, 0, from);
    const bool first = starts && from == 0;
    const auto fragment = [&] {
      const int64_t value = from / atom.k() * atom.values_of_a();
      return tile::FragmentTile{shared_[cores.a].name, subscripts_at(shared_[cores.a].layout, value)};
    };
    const NodePtr product =
        held ? build::warpgroup_matmul(atom, slices, sum_, fragment(), b, first)
             : build::warpgroup_matmul(atom, slices, sum_, boxed_tile(cores.a, 0, row, from), b, first);
    result.push_back(tile::carrying(step_instances(step, from, length), product));
  }
  return result;
}

}  // namespace tc::gpu
