#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
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

/// [warpgroup, buffer, row, column], swizzled as the map's boxes are.
void ContractionBuilder::declare_staging() {
  if (!plan_.store_boxes) return;
  const int64_t columns = staged_columns(c_, plan_);
  for (const StoredTensor& stored : c_.stored) {
    tile::TensorMap map = map_of(stored, c_, plan_, names_.fresh(stored.tensor + "_map"));
    Tensor tensor =
        build::shared(names_.fresh(stored.tensor + "_staged"), stored.type,
                      row_major({plan_.tensor_cores->warpgroups, staging_buffers(c_, plan_), kStagedRows, columns}));
    tensor.swizzle = tile::swizzle_of(map.swizzle, stored.type.bytes());
    tensor.written = true;
    staged_.push_back(std::move(tensor));
    stored_maps_.push_back(std::move(map));
  }
}

/// The part of an axis's tile at which the warpgroup's rows, or the slab's columns, begin.
Expr ContractionBuilder::staged_first(size_t axis, const Expr& slab) const {
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
  if (is_of(cores.rows)) return digit(cores.rows, row_warp_ / kGroupWarps * static_cast<int>(kStagedRows));
  if (is_of(cores.columns)) return digit(cores.columns, slab * static_cast<int>(staged_columns(c_, plan_)));
  return 0;
}

/// Writes a thread's pair of neighbours of a result to the staging buffer.
NodePtr ContractionBuilder::stage(size_t result, const Expr& buffer, const Expr& column) const {
  constexpr int kRowsOfWarp = 16, kRowsApart = 8;
  Expr row = row_warp_ % kGroupWarps * kRowsOfWarp + lane_ / kQuad;
  for (size_t axis : plan_.tensor_cores->rows) {
    if (rows_apart(axis, plan_) > 0) row = row + build::var(high_[axis]) * kRowsApart;
  }
  const Tensor& registers = results_.at(c_.stored[result].tensor);
  const auto pair = static_cast<int>(plan_.parallel[plan_.tensor_cores->columns[0]].group);
  return build::move(staged_[result], {row_warp_ / kGroupWarps, buffer, row, column}, registers, {0}, pair);
}

/// Stores a slab of all results, by one thread of the warpgroup.
NodePtr ContractionBuilder::store_slab(const Expr& slab, const Expr& buffer) const {
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
    parts.push_back(build::box_store(stored_maps_[i], at, staged_[i], {row_warp_ / kGroupWarps, buffer, 0, 0}));
  }
  parts.push_back(build::commit_boxes());
  return build::if_then(is_first_of_group(), build::sequence(std::move(parts)));
}

NodePtr ContractionBuilder::finish_by_boxes() {
  const TensorCores& cores = *plan_.tensor_cores;
  const size_t column = cores.columns[0];
  const AxisPlan& a = plan_.parallel[column];
  const int64_t width = staged_columns(c_, plan_), slabs = tile_of(cores.columns, plan_) / width;
  const int64_t each = width / (kQuad * a.group);  // of a thread's groups of columns
  const int64_t buffers = staging_buffers(c_, plan_);
  const std::string slab_name = names_.fresh("slab"), group_name = names_.fresh("group");
  const Expr slab = slabs > 1 ? build::var(slab_name) : Expr(0), group = each > 1 ? build::var(group_name) : Expr(0);
  const Expr buffer = hi::simplify(slab % static_cast<int>(buffers));
  const std::vector<std::string> names = written();
  std::vector<NodePtr> parts = {over_lanes(point(names))};
  for (size_t i = 0; i < c_.stored.size(); ++i) {
    const Expr at = hi::simplify((group * kQuad + lane_ % kQuad) * static_cast<int>(a.group));
    parts.push_back(stage(i, buffer, at));
  }
  NodePtr body = build::sequence(std::move(parts));
  for (auto& [name, tensor] : results_) body = build::allocate(tensor, body);
  if (const Expr inside = is_inside(); inside.defined()) body = build::if_then(inside, body);
  std::vector<size_t> others;  // axes whose registers are gone through in a slab
  for (size_t axis : all_axes()) {
    if (std::find(cores.columns.begin(), cores.columns.end(), axis) == cores.columns.end()) others.push_back(axis);
  }
  for (size_t axis : cores.columns) {
    if (plan_.parallel[axis].registers <= plan_.parallel[axis].group) continue;
    Expr first = staged_first(axis, slab);
    if (axis == column) first = first / static_cast<int>(kQuad * a.group) + group;
    body = build::let(high_[axis], hi::simplify(first), body);
  }
  if (each > 1) body = build::unrolled(group_name, 0, static_cast<int>(each), body);
  body = over_registers(others, [&] { return body; });
  std::vector<NodePtr> steps = {body, build::fence_boxes()};
  // The next slab's buffer is read when all threads have come.
  if (slabs > 1) steps.push_back(build::wait_boxes_read(static_cast<int>(buffers) - 2));
  steps.push_back(build::barrier(tile::Barrier::Scope::kWarpgroup));
  steps.push_back(store_slab(slab, buffer));
  NodePtr result = build::sequence(std::move(steps));
  if (slabs > 1) result = build::unrolled(slab_name, 0, static_cast<int>(slabs), result);
  if (plan_.grid == 0 || (slabs > 1 && slabs % buffers == 0)) return result;
  // The next tile begins with the buffer of the last slab.
  return build::sequence({result, build::wait_boxes_read(0), build::barrier(tile::Barrier::Scope::kWarpgroup)});
}

}  // namespace tc::gpu
