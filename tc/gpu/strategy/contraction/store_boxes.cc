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

constexpr int kQuad = 4, kGroupWarps = 4;

Expr is_first_of_group() { return build::thread_x() % tile::WarpgroupAtom::kThreads == 0; }

}  // namespace

/// [warpgroup of the block, buffer, row, column], swizzled as the map's boxes are.
void ContractionBuilder::declare_staging() {
  if (!plan_.store_boxes) return;
  const int64_t columns = staged_columns(c_, plan_);
  for (const StoredTensor& stored : c_.stored) {
    tile::TensorMap map = map_of(stored, c_, plan_, names_.fresh(stored.tensor + "_map"));
    Tensor tensor = build::shared(
        names_.fresh(stored.tensor + "_staged"), stored.type,
        row_major({plan_.tensor_cores->warpgroups * plan_.teams(), staging_buffers(c_, plan_), kStagedRows, columns}));
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

/// Writes a thread's pair of neighbours of a result to the staging buffer.
NodePtr ContractionBuilder::stage(size_t result, const Slab& slab, const Expr& buffer, const Expr& column) const {
  constexpr int kRowsOfWarp = 16, kRowsApart = 8;
  const Expr row = hi::simplify(warp_ % kGroupWarps * kRowsOfWarp + lane_ / kQuad + slab.row * kRowsApart);
  const Tensor& registers = results_.at(c_.stored[result].tensor);
  const auto pair = static_cast<int>(plan_.parallel[plan_.tensor_cores->columns[0]].group);
  return build::move(staged_[result], {warp_ / kGroupWarps, buffer, row, column}, registers, {0}, pair);
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

/// What is done for the rows of a thread along an axis that lie in a slab.
NodePtr ContractionBuilder::over_rows_of_slab(size_t axis, const Slab& slab, const NodePtr& body) const {
  const std::vector<RowDigit> digits = row_digits(axis, plan_);
  if (digits.empty()) return body;
  const std::string& row = slab.row.as<hi::Variable>()->name;
  if (digits.size() == 2) {
    return build::unrolled(row, 0, 2, build::let(high_[axis], hi::simplify(slab.atom * 2 + slab.row), body));
  }
  if (digits[0] == RowDigit::kAtoms) return build::let(high_[axis], slab.atom, body);
  return build::unrolled(row, 0, 2, body);
}

/// The variable for the rows of a thread within an instruction.
std::string ContractionBuilder::row_in_atom() {
  for (size_t axis : plan_.tensor_cores->rows) {
    if (rows_apart(axis, plan_) == 0) continue;
    return row_digits(axis, plan_).size() == 1 ? high_[axis] : names_.fresh(high_[axis]);
  }
  TC_CHECK(false, "a thread has one row of an instruction");
}

NodePtr ContractionBuilder::finish_by_boxes() {
  const TensorCores& cores = *plan_.tensor_cores;
  const size_t column = cores.columns[0];
  const AxisPlan& a = plan_.parallel[column];
  const int64_t width = staged_columns(c_, plan_), slabs = slabs_of(c_, plan_);
  const int64_t each = width / (kQuad * a.group);  // of a thread's groups of columns
  const int64_t buffers = staging_buffers(c_, plan_);
  const auto atoms = static_cast<int>(cores.row_atoms), along_columns = static_cast<int>(slabs) / atoms;
  const std::string slab_name = names_.fresh("slab"), group_name = names_.fresh("group");
  const std::string atom_name = names_.fresh("atom");
  const auto counted = [](const std::string& name, int64_t count) { return count > 1 ? build::var(name) : Expr(0); };
  const Slab slab = {counted(slab_name, along_columns), counted(atom_name, atoms), build::var(row_in_atom())};
  const Expr group = counted(group_name, each);
  const Expr buffer = hi::simplify((slab.atom * along_columns + slab.columns) % static_cast<int>(buffers));
  const std::vector<std::string> names = written();
  std::vector<NodePtr> parts = {over_lanes(point(names))};
  for (size_t i = 0; i < c_.stored.size(); ++i) {
    const Expr at = hi::simplify((group * kQuad + lane_ % kQuad) * static_cast<int>(a.group));
    parts.push_back(stage(i, slab, buffer, at));
  }
  NodePtr body = build::sequence(std::move(parts));
  for (auto& [name, tensor] : results_) body = build::allocate(tensor, body);
  if (const Expr inside = is_inside(); inside.defined()) body = build::if_then(inside, body);
  for (size_t axis : cores.columns) {
    if (plan_.parallel[axis].registers <= plan_.parallel[axis].group) continue;
    Expr first = staged_first(axis, slab);
    if (axis == column) first = first / static_cast<int>(kQuad * a.group) + group;
    body = build::let(high_[axis], hi::simplify(first), body);
  }
  if (each > 1) body = build::unrolled(group_name, 0, static_cast<int>(each), body);
  for (size_t axis : cores.rows) body = over_rows_of_slab(axis, slab, body);
  std::vector<NodePtr> steps = {body, build::fence_boxes()};
  // The next slab's buffer is read when all threads have come.
  if (slabs > 1) steps.push_back(build::wait_boxes_read(static_cast<int>(buffers) - 2));
  steps.push_back(build::barrier(tile::Barrier::Scope::kWarpgroup));
  steps.push_back(store_slab(slab, buffer));
  NodePtr result = build::sequence(std::move(steps));
  if (along_columns > 1) result = build::unrolled(slab_name, 0, along_columns, result);
  if (atoms > 1) result = build::unrolled(atom_name, 0, atoms, result);
  if (plan_.grid == 0 || (slabs > 1 && slabs % buffers == 0)) return result;
  // The next tile begins with the buffer of the last slab.
  return build::sequence({result, build::wait_boxes_read(0), build::barrier(tile::Barrier::Scope::kWarpgroup)});
}

}  // namespace tc::gpu
