#include <algorithm>

#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/tensor_cores.h"
#include "tc/ir/tf32_values.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

/// The reduction of a contraction's kernel by tensor cores: fragments, products of tiles.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;

/// Adds a step's products to the sums; each group of threads has a part of its slices of the main axis.
NodePtr ContractionBuilder::add_products(const Expr& stage, const ReductionStep& step, const Copies& copies) {
  const int64_t slice = plan_.tensor_cores->atom->k, slices = ceil_div(step.length, slice);
  const int64_t each = ceil_div(slices, plan_.groups);
  std::vector<Expr> at(c_.reduction.size(), 0);
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    if (r != plan_.main && plan_.chunk[r] > 1) at[r] = build::var(inner_[r]);
  }
  const std::string& inner = inner_[plan_.main];
  const Expr number = part_ * static_cast<int>(each) + (each > 1 ? build::var(inner) : Expr(0));
  at[plan_.main] = hi::simplify(number * static_cast<int>(slice));
  std::vector<NodePtr> parts = {load_slice(stage, step, at), multiply_slice(step, at)};
  if (copies) {
    Expr piece = each > 1 ? build::var(inner) : Expr(0);
    int64_t pieces = each;
    for (size_t r = c_.reduction.size(); r-- > 0;) {
      if (r == plan_.main || plan_.chunk[r] == 1) continue;
      piece = piece + build::var(inner_[r]) * static_cast<int>(pieces);
      pieces *= plan_.chunk[r];
    }
    parts.insert(parts.begin() + 1, copies(piece, pieces));
  }
  NodePtr result = build::sequence(std::move(parts));
  if (each * plan_.groups != slices) {
    TC_CHECK(!copies, "a group without a slice would leave out its copies");
    result = build::if_then(number < static_cast<int>(slices), result);
  }
  int64_t laid_out = plan_.registers();  // sums, as for elements
  const auto loop = [&](const std::string& name, int64_t count) {
    if (count == 1) return;
    laid_out *= count;
    const auto end = static_cast<int>(count);
    result =
        laid_out <= plan_.most_unrolled ? build::unrolled(name, 0, end, result) : build::for_loop(name, 0, end, result);
  };
  loop(inner, each);
  for (size_t r = c_.reduction.size(); r-- > 0;) {
    if (r != plan_.main) loop(inner_[r], plan_.chunk[r]);
  }
  return result;
}

/// Atoms of a warp along the rows and along the columns.
std::pair<int64_t, int64_t> ContractionBuilder::atoms_of_warp() const {
  const TensorCores& cores = *plan_.tensor_cores;
  int64_t rows = 1, columns = 1;
  for (size_t axis : cores.rows) rows *= plan_.parallel[axis].registers;
  for (size_t axis : cores.columns) columns *= plan_.parallel[axis].registers;
  return {rows / 2, columns / 2};
}

/// Values of a thread in a fragment of an operand.
int64_t ContractionBuilder::fragment_values(size_t operand) const {
  const TensorCores& cores = *plan_.tensor_cores;
  return (operand == cores.a ? cores.atom->a : cores.atom->b)[1].size();
}

/// All fragments of both operands for one slice.
NodePtr ContractionBuilder::load_slice(const Expr& stage, const ReductionStep& step, const std::vector<Expr>& at) {
  const TensorCores& cores = *plan_.tensor_cores;
  const auto [row_atoms, column_atoms] = atoms_of_warp();
  std::vector<NodePtr> parts;
  for (int64_t i = 0; i < row_atoms && !is_in_registers(cores.a); ++i) {
    parts.push_back(load_fragment(cores.a, i, true, stage, step, at));
  }
  for (int64_t j = 0; j < column_atoms; j += 2) {
    parts.push_back(load_fragment(cores.b, j, j + 1 < column_atoms, stage, step, at));
  }
  return build::sequence(std::move(parts));
}

/// What the threads of a warp add to their sums in the registers `points` of each: a slice of the main axis, for each
/// of the values that the atom gives a thread.
std::shared_ptr<const tile::Instances> ContractionBuilder::slice_instances(
    const std::vector<std::map<size_t, int64_t>>& points, const ReductionStep& step,
    const std::vector<Expr>& at) const {
  tile::Instances result{.statement = c_.update.id};
  for (const std::map<size_t, int64_t>& point : points) {
    std::map<std::string, Expr> values;
    for (size_t i = 0; i < c_.parallel.size(); ++i) {
      const AxisPlan& a = plan_.parallel[i];
      const auto found = point.find(i);
      const int64_t r = found == point.end() ? 0 : found->second;
      const int64_t offset = r / a.group * a.threads() * a.group + r % a.group;
      values[c_.parallel[i].name] = first_[i] + thread_[i] * static_cast<int>(a.group) + static_cast<int>(offset);
    }
    for (size_t r = 0; r < c_.reduction.size(); ++r) values[c_.reduction[r].name] = step.first[r] + at[r];
    std::vector<Expr>& first = result.first.emplace_back();
    for (const std::string& index : c_.update.indices) {
      const auto value = values.find(index);
      if (value == values.end()) return nullptr;
      first.push_back(value->second);
    }
  }
  const Axis& main = c_.reduction[plan_.main];
  const int64_t slice = plan_.tensor_cores->atom->k;
  // What a step has behind the axis is zero.
  const int64_t whole = round_up(main.extent, plan_.fills_last_step() ? plan_.chunk[plan_.main] : slice);
  for (const std::string& index : c_.update.indices) {
    result.lengths.push_back(index == main.name ? slice : 1);
    result.zero_below.push_back(index == main.name ? main.begin + whole : INT64_MIN);
  }
  return std::make_shared<const tile::Instances>(std::move(result));
}

/// The products of all pairs of fragments.
NodePtr ContractionBuilder::multiply_slice(const ReductionStep& step, const std::vector<Expr>& at) const {
  const TensorCores& cores = *plan_.tensor_cores;
  const auto [row_atoms, column_atoms] = atoms_of_warp();
  std::vector<NodePtr> parts;
  const auto values = [&](size_t operand, int64_t number) {
    if (is_in_registers(operand)) return fragment_of_link(number, at);
    tile::Fragment fragment{fragments_[operand].name, {}};
    for (int v = 0; v < fragment_values(operand); ++v) fragment.values.push_back({static_cast<int>(number), v});
    return fragment;
  };
  for (int64_t i = 0; i < row_atoms; ++i) {
    for (int64_t j = 0; j < column_atoms; ++j) {
      tile::Fragment sums{sum_.name, {}};
      std::vector<std::map<size_t, int64_t>> points;
      for (int v = 0; v < 4; ++v) {
        std::map<size_t, int64_t>& of_axis = points.emplace_back();
        const std::vector<int64_t> row = registers_of_point(cores.rows, 2 * i + v / 2, plan_);
        const std::vector<int64_t> column = registers_of_point(cores.columns, 2 * j + v % 2, plan_);
        for (size_t d = 0; d < row.size(); ++d) of_axis[cores.rows[d]] = row[d];
        for (size_t d = 0; d < column.size(); ++d) of_axis[cores.columns[d]] = column[d];
        std::vector<Expr> subscripts;
        for (size_t axis : all_axes()) subscripts.push_back(static_cast<int>(of_axis[axis]));
        sums.values.push_back(std::move(subscripts));
      }
      parts.push_back(tile::carrying(slice_instances(points, step, at),
                                     build::matmul(*cores.atom, sums, values(cores.a, i), values(cores.b, j))));
    }
  }
  return build::sequence(std::move(parts));
}

/// Loads the fragment of rows `first`, or those of columns `first` and, of a pair, the next ones.
NodePtr ContractionBuilder::load_fragment(size_t operand, int64_t first, bool pair, const Expr& stage,
                                          const ReductionStep& step, const std::vector<Expr>& at) {
  const TensorCores& cores = *plan_.tensor_cores;
  const bool is_a = operand == cores.a;
  const std::vector<size_t>& axes = is_a ? cores.rows : cores.columns;
  const Expr& warp = is_a ? row_warp_ : column_warp_;
  const FragmentRead read = plan_.operands[operand].fragment;
  // Of two points that are read at once, the registers lie a constant apart along each axis.
  const auto source = [&](const SidePlace<Expr>& place, int64_t low_point, int64_t high_point) {
    std::vector<Expr> local(c_.parallel.size(), 0), where = at;
    const std::vector<int64_t> low = registers_of_point(axes, low_point, plan_);
    const std::vector<int64_t> high = registers_of_point(axes, high_point, plan_);
    Expr rest = place.thread + warp * (is_a ? 8 : 4);
    for (size_t i = 0; i < axes.size(); ++i) {
      const AxisPlan& a = plan_.parallel[axes[i]];
      const auto offset = [&](int64_t r) {
        return static_cast<int>(r / a.group * a.threads() * a.group + r % a.group);
      };
      const Expr thread = i + 1 < axes.size() ? rest % static_cast<int>(a.threads()) : rest;
      Expr value = thread * static_cast<int>(a.group) + offset(low[i]);
      if (high[i] != low[i]) value = value + place.point * (offset(high[i]) - offset(low[i]));
      if (i == 0) value = value + place.low;
      local[axes[i]] = value;
      rest = rest / static_cast<int>(a.threads());
    }
    where[plan_.main] = where[plan_.main] + place.k;
    return shared_position(operand, stage, step, local, where);
  };
  const auto count = static_cast<int>(fragment_values(operand));
  const tile::Tensor& fragment = fragments_[operand];
  const int64_t point = 2 * first, next = is_a ? point + 1 : pair ? point + 2 : point;
  if (read != FragmentRead::kElements) {
    tile::Fragment to{fragment.name, {}};
    for (int v = 0; v < (pair && !is_a ? 2 * count : count); ++v) {
      to.values.push_back({static_cast<int>(first + v / count), v % count});
    }
    return build::matrix_load(to, shared_[operand],
                              source(matrix_place(lane_, is_a, read == FragmentRead::kAlong), point, next),
                              read == FragmentRead::kAcross);
  }
  std::vector<NodePtr> parts;
  for (int64_t f = first; f <= first + (pair && !is_a ? 1 : 0); ++f) {
    for (int v = 0; v < count; ++v) {
      const auto from = source(value_place(*cores.atom, lane_, v, is_a), 2 * f, is_a ? 2 * f + 1 : 2 * f);
      const std::vector<Expr> to = {static_cast<int>(f), v};
      parts.push_back(cores.rounds[operand]
                          ? build::store(fragment, to, ir::tf32_of(build::read(shared_[operand], from)))
                          : build::move(fragment, to, shared_[operand], from, 1));
    }
  }
  return build::sequence(std::move(parts));
}

}  // namespace tc::gpu
