#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/check.h"
#include "tc/tile/tensor_map.h"

/// Results of products by warpgroups that boxes store. Each warpgroup goes through its columns slab by slab: its
/// threads write what they have of a slab to a staging buffer, then one of them stores it while the next slab is
/// computed. Boxes end where the tensor does.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

constexpr int kQuad = 4, kGroupWarps = 4, kRowsOfWarp = 16;
constexpr int64_t kRowsOfThread = 2;  // of an instruction's

/// A loop's variable, unless it has one value.
Expr counted(const std::string& name, int count) { return count > 1 ? build::var(name) : Expr(0); }

Expr is_first_of_group() { return build::thread_x() % tile::WarpgroupAtom::kThreads == 0; }

}  // namespace

/// [warpgroup of the block, buffer, row, column], or behind the buffer [column, row], swizzled as the map's boxes are.
void ContractionBuilder::declare_staging() {
  if (!plan_.store_boxes) return;
  const int64_t columns = staged_columns(c_, plan_);
  for (const StoredTensor& stored : c_.stored) {
    tile::TensorMap map = map_of(stored, c_, plan_, names_.fresh(stored.tensor + "_map"));
    std::vector<int64_t> extents = {plan_.tensor_cores->warpgroups * plan_.teams(), staging_buffers(c_, plan_),
                                    kStagedRows, columns};
    if (lies_across(stored, c_, plan_)) std::swap(extents[2], extents[3]);
    Tensor tensor = build::shared(names_.fresh(stored.tensor + "_staged"), stored.type, row_major(extents));
    tensor.swizzle = tile::swizzle_of(map.swizzle, stored.type.bytes());
    tensor.written = true;
    staged_.push_back(std::move(tensor));
    stored_maps_.push_back(std::move(map));
  }
}

/// The part of an axis's tile at which the slab's rows, or its columns, begin.
Expr ContractionBuilder::staged_first(size_t axis, const Slab& slab) const {
  const TensorCores& cores = *plan_.tensor_cores;
  const auto digit = [&](const std::vector<size_t>& side, const Expr& first) {
    int64_t stride = 1;
    for (size_t other : side) {
      const int64_t tile = plan_.parallel[other].tile;
      if (other == axis) {
        const Expr part = first / static_cast<int>(stride);
        return hi::simplify(stride * tile < tile_of(side, plan_) ? part % static_cast<int>(tile) : part);
      }
      stride *= tile;
    }
    return Expr(0);
  };
  const auto is_of = [&](const std::vector<size_t>& side) {
    return std::find(side.begin(), side.end(), axis) != side.end() && plan_.parallel[axis].tile > 1;
  };
  const Expr first_row = row_of_atom(slab.atom);
  if (is_of(cores.rows)) return digit(cores.rows, first_row);
  if (is_of(cores.columns)) return digit(cores.columns, slab.columns * static_cast<int>(staged_columns(c_, plan_)));
  return 0;
}

/// Writes a thread's neighbours of a result to the staging buffer.
NodePtr ContractionBuilder::stage(size_t result, const Slab& slab, const Expr& buffer, const Expr& column) const {
  const Expr row = hi::simplify(warp_ % kGroupWarps * kRowsOfWarp + lane_ / kQuad + slab.row * tile::kMatrixRow);
  const Tensor& registers = results_.at(c_.stored[result].tensor);
  const auto neighbours = static_cast<int>(plan_.parallel[plan_.tensor_cores->columns[0]].group);
  return build::move(staged_[result], {warp_ / kGroupWarps, buffer, row, column}, registers, {0}, neighbours);
}

/// The same of results that lie across the tile, by a warp together. Its pairs are those of matrices, whose columns a
/// buffer's rows are: of each group of columns from `group` on two matrices, one below the other.
NodePtr ContractionBuilder::stage_matrices(size_t result, const Expr& buffer, const Expr& group) const {
  const Tensor& registers = results_.at(c_.stored[result].tensor);
  tile::Fragment matrices{registers.name, {}};
  const int64_t groups = registers.layout[0].size();
  for (int g = 0; g < groups; ++g) {
    for (int row = 0; row < kRowsOfThread; ++row) {
      for (int lane = 0; lane < 2; ++lane) matrices.values.push_back({g, row, lane});
    }
  }
  const Expr matrix = lane_ / tile::kMatrixRow;
  const Expr row = warp_ % kGroupWarps * kRowsOfWarp + matrix % static_cast<int>(kRowsOfThread) * tile::kMatrixRow;
  const Expr beside = groups > 1 ? matrix / static_cast<int>(kRowsOfThread) : Expr(0);
  const Expr column = (group + beside) * tile::kMatrixRow + lane_ % tile::kMatrixRow;
  return build::matrix_store(staged_[result], {warp_ / kGroupWarps, buffer, hi::simplify(column), hi::simplify(row)},
                             std::move(matrices), true);
}

/// What matrices have where a thread has no results.
NodePtr ContractionBuilder::empty_matrices() const {
  std::vector<NodePtr> parts;
  for (const StoredTensor& stored : c_.stored) {
    const Tensor& registers = results_.at(stored.tensor);
    const Expr zero = hi::Cast::make(registers.type, 0.0F);
    parts.push_back(over_lanes(build::store(registers, result_at(stored.tensor), zero)));
  }
  return build::sequence(std::move(parts));
}

/// Stores a slab of all results, by one thread of the warpgroup.
NodePtr ContractionBuilder::store_slab(const Slab& slab, const Expr& buffer) const {
  std::vector<NodePtr> parts;
  for (size_t i = 0; i < c_.stored.size(); ++i) {
    std::vector<Expr> at;
    for (size_t d = c_.stored[i].axes.size(); d-- > 0;) {
      Expr first = 0;
      for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
        if (c_.parallel[axis].name == c_.stored[i].axes[d]) first = first_[axis] + staged_first(axis, slab);
      }
      at.push_back(hi::simplify(first));
    }
    parts.push_back(build::box_store(stored_maps_[i], at, staged_[i], {warp_ / kGroupWarps, buffer, 0, 0}));
  }
  parts.push_back(build::commit_boxes());
  return build::if_then(is_first_of_group(), build::sequence(std::move(parts)));
}

/// Which of a thread's registers along the axes of the rows, or of the columns, a slab's group has: those that no loop
/// over them counts.
std::vector<std::pair<std::string, Expr>> ContractionBuilder::registers_in_slab(bool of_rows, const Slab& slab,
                                                                                const Expr& group) const {
  const TensorCores& cores = *plan_.tensor_cores;
  std::vector<std::pair<std::string, Expr>> result;
  for (size_t axis : of_rows ? cores.rows : cores.columns) {
    const AxisPlan& a = plan_.parallel[axis];
    if (!of_rows) {
      if (a.registers <= a.group) continue;
      Expr first = staged_first(axis, slab);
      if (axis == cores.columns[0]) first = first / static_cast<int>(kQuad * a.group) + slab.group + group;
      result.emplace_back(high_[axis], hi::simplify(first));
      continue;
    }
    const std::vector<RowDigit> digits = row_digits(axis, plan_);
    if (digits.size() == 2) result.emplace_back(high_[axis], hi::simplify(slab.atom * 2 + slab.row));
    if (digits == std::vector{RowDigit::kAtoms}) result.emplace_back(high_[axis], slab.atom);
  }
  return result;
}

/// The variable for the rows of a thread within an instruction.
std::string ContractionBuilder::row_in_atom() {
  for (size_t axis : plan_.tensor_cores->rows) {
    if (rows_apart(axis, plan_) == 0) continue;
    return row_digits(axis, plan_).size() == 1 ? high_[axis] : names_.fresh(high_[axis]);
  }
  TC_CHECK(false, "a thread has one row of an instruction");
}

/// Copies a piece's sums. `number` counts the pieces of all slabs, as `slab_at` has them.
NodePtr ContractionBuilder::copy_piece_of_slab(const Expr& number, int64_t pieces, const std::string& group,
                                               const std::function<Slab(const Expr& number)>& slab_at) {
  const size_t column = plan_.tensor_cores->columns[0];
  const auto lanes = static_cast<int>(plan_.parallel[column].group), groups = static_cast<int>(plan_.rolled_groups);
  const Expr in_slab = groups > 1 ? build::var(group) : Expr(0), row = slab_at(0).row;
  const Expr in_piece = in_slab * lanes + (lanes > 1 ? build::var(low_[column]) : Expr(0));
  start_piece({kRowsOfThread, groups * lanes}, {row, hi::simplify(in_piece)});
  return choose_piece(number, pieces, [&](int piece) {
    std::map<std::string, Expr> registers;
    for (const bool of_rows : {false, true}) {
      for (const auto& [name, value] : registers_in_slab(of_rows, slab_at(piece), in_slab)) registers[name] = value;
    }
    NodePtr copy = copy_to_piece(registers);
    if (lanes > 1) copy = build::unrolled(low_[column], 0, lanes, copy);
    if (groups > 1) copy = build::unrolled(group, 0, groups, copy);
    return build::unrolled(row.as<hi::Variable>()->name, 0, static_cast<int>(kRowsOfThread), copy);
  });
}

/// The results of a slab, of so many groups of columns, in its staging buffer. `group_name`: the variable of the group.
/// Pairs that are neighbours of a row threads write as fast by themselves: eight products took 0 to 3 % longer by
/// matrices on an H200.
NodePtr ContractionBuilder::stage_slab(const Slab& slab, const Expr& buffer, int groups,
                                       const std::string& group_name) {
  const AxisPlan& a = plan_.parallel[plan_.tensor_cores->columns[0]];
  const bool across = lies_across(c_.stored[0], c_, plan_);  // as all do
  // Groups whose matrices are stored together, and how many times.
  const int together = !across ? groups : groups % 2 == 0 ? 2 : 1, times = groups / together;
  const bool is_nested = times > 1 && together > 1;
  const std::string time_name = is_nested ? names_.fresh("pair") : group_name;
  const std::string own_name = is_nested ? names_.fresh("half") : group_name;
  const Expr time = counted(time_name, times), own = counted(own_name, together), group = counted(group_name, groups);
  std::vector<NodePtr> stores = {nullptr}, points;
  if (across) {
    for (size_t i = 0; i < c_.stored.size(); ++i) {
      results_.at(c_.stored[i].tensor).layout = tile::Layout::row_major({together, kRowsOfThread, a.group});
      stores.push_back(stage_matrices(i, buffer, hi::simplify(slab.group + time * together)));
    }
    matrix_ = {own, slab.row};
    points = over_lanes_each(point(written()));  // which the text rounds in pairs, each step by a loop of its own
  } else {
    points = {over_lanes(point(written()))};
    const Expr column = ((slab.group + group) * kQuad + lane_ % kQuad) * static_cast<int>(a.group);
    for (size_t i = 0; i < c_.stored.size(); ++i) points.push_back(stage(i, slab, buffer, hi::simplify(column)));
  }
  NodePtr body = build::sequence(std::move(points));
  const auto allocate = [&](bool matrices, NodePtr of) {
    for (const auto& [name, tensor] : results_) {
      if ((tensor.rank() > 1) == matrices) of = build::allocate(tensor, of);
    }
    return of;
  };
  body = allocate(false, body);
  if (const Expr inside = is_inside(); inside.defined()) {
    body = build::if_then(inside, body, across ? empty_matrices() : nullptr);
  }
  for (const auto& [name, value] : registers_in_slab(false, slab, group)) body = build::let(name, value, body);
  if (is_nested) body = build::let(group_name, hi::simplify(time * together + own), body);
  if (together > 1) body = build::unrolled(own_name, 0, together, body);
  for (const auto& [name, value] : registers_in_slab(true, slab, group)) body = build::let(name, value, body);
  stores[0] = build::unrolled(slab.row.as<hi::Variable>()->name, 0, static_cast<int>(kRowsOfThread), body);
  body = allocate(true, build::sequence(std::move(stores)));
  return times > 1 ? build::unrolled(time_name, 0, times, body) : body;
}

NodePtr ContractionBuilder::finish_by_boxes() {
  const TensorCores& cores = *plan_.tensor_cores;
  const AxisPlan& a = plan_.parallel[cores.columns[0]];
  const auto slabs = static_cast<int>(slabs_of(c_, plan_)), buffers = static_cast<int>(staging_buffers(c_, plan_));
  const auto atoms = static_cast<int>(cores.row_atoms), along_columns = slabs / atoms;
  const auto each = static_cast<int>(staged_columns(c_, plan_) / (kQuad * a.group));  // of a thread's groups of columns
  const bool rolled = plan_.rolled_groups > 0;
  const int groups = rolled ? static_cast<int>(plan_.rolled_groups) : each, pieces = each / groups;
  const std::string slab_name = names_.fresh("slab"), group_name = names_.fresh("group");
  const std::string atom_name = names_.fresh("atom"), piece_name = names_.fresh("piece");
  const Expr piece = counted(piece_name, pieces);
  const Slab slab = {counted(slab_name, along_columns), counted(atom_name, atoms), build::var(row_in_atom()),
                     hi::simplify(piece * groups)};
  const Expr number = hi::simplify(slab.atom * along_columns + slab.columns), buffer = hi::simplify(number % buffers);
  NodePtr copies;
  if (rolled) {
    copies = copy_piece_of_slab(hi::simplify(number * pieces + piece), slabs * pieces, group_name, [&](const Expr& n) {
      const Expr of_slab = n / pieces;
      return Slab{hi::simplify(of_slab % along_columns), hi::simplify(of_slab / along_columns), slab.row,
                  hi::simplify(n % pieces * groups)};
    });
  }
  const auto loop = [&](const std::string& name, int count, const NodePtr& of) {
    if (count == 1) return of;
    return rolled ? build::rolled(name, 0, count, of) : build::unrolled(name, 0, count, of);
  };
  NodePtr body = stage_slab(slab, buffer, groups, group_name);
  if (rolled) body = loop(piece_name, pieces, with_piece(build::sequence({copies, body})));
  std::vector<NodePtr> steps = {body, build::fence_boxes()};
  // The next slab's buffer is read when all threads have come.
  if (slabs > 1) steps.push_back(build::wait_boxes_read(buffers - 2));
  steps.push_back(build::barrier(tile::Barrier::Scope::kWarpgroup));
  steps.push_back(store_slab(slab, buffer));
  const NodePtr result = loop(atom_name, atoms, loop(slab_name, along_columns, build::sequence(std::move(steps))));
  if (plan_.grid == 0 || (slabs > 1 && slabs % buffers == 0)) return result;
  // The next tile begins with the buffer of the last slab.
  return build::sequence({result, build::wait_boxes_read(0), build::barrier(tile::Barrier::Scope::kWarpgroup)});
}

}  // namespace tc::gpu
