#include "tc/gpu/mapping/bind.h"

#include <isl/schedule_node.h>

#include <algorithm>

#include "tc/gpu/verbs/free_members.h"
#include "tc/gpu/verbs/intra_tile.h"
#include "tc/gpu/verbs/steps.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/restricted.h"
#include "tc/support/check.h"

namespace tc::gpu {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kDefaultThreads = 256;

class Binder {
 public:
  Binder(const poly::Scop& scop, const options::MappingOptions& options, const Device& device, bool steps)
      : scop_(scop), options_(options), device_(device), steps_(steps) {}

  Kernel run();

 private:
  isl::schedule_node tile_and_map_blocks(isl::schedule_node node);
  isl::schedule_node with_steps(const isl::schedule_node& points, size_t tile_sizes) const;
  isl::schedule_node by_intra_tile_options(const isl::schedule_node& points,
                                           const isl::multi_union_pw_aff& before) const;
  isl::schedule_node map_to_block(isl::schedule_node node);
  isl::schedule_node region(const isl::schedule_node& node);
  isl::schedule_node with_binding(const isl::schedule_node& node, Binding binding);
  std::vector<int64_t> tile_sizes(const std::vector<int64_t>& extents, const std::vector<Free>& free,
                                  bool inner_threads) const;
  void choose_threads(const std::vector<Free>& free);
  void settle_threads();

  const poly::Scop& scop_;
  const options::MappingOptions& options_;
  const Device& device_;
  bool steps_;
  Kernel kernel_;
  std::array<int64_t, 3> wanted_ = {1, 1, 1};  ///< the largest extents that loops on threads have, per axis
};

isl::schedule_node Binder::with_binding(const isl::schedule_node& node, Binding binding) {
  const std::string name = kBindMark + std::to_string(kernel_.bindings.size());
  kernel_.bindings.push_back(std::move(binding));
  return node.insert_mark(poly::make_id(node.ctx(), name));
}

Kernel Binder::run() {
  kernel_.scop = scop_;
  isl::schedule_node node = first_band(scop_.schedule.root());
  node = has_blocks(scop_) ? tile_and_map_blocks(node) : map_to_block(scop_.schedule.root().child(0));
  kernel_.scop.schedule = node.schedule();
  settle_threads();
  return kernel_;
}

/// Default: enough points in a tile for the threads of a block, most of them along the innermost member; no more tiles
/// than are needed to keep the device busy get large.
std::vector<int64_t> Binder::tile_sizes(const std::vector<int64_t>& extents, const std::vector<Free>& free,
                                        bool inner_threads) const {
  std::vector<int64_t> sizes(extents.size(), 0);
  if (!options_.tile.empty()) {
    for (size_t i = 0; i < sizes.size() && i < options_.tile.size(); ++i) sizes[i] = options_.tile[i];
    return sizes;
  }
  int64_t points = inner_threads ? 1 : std::min(kDefaultThreads, device_.threads_per_block);
  while (points > kWarp && product(free) / points < device_.processors) points /= 2;
  for (auto f = free.rbegin(); f != free.rend(); ++f) {
    int64_t size = std::min(points, f->extent);
    // Two-dimensional tiles reuse what they read; a warp's width is enough for whole memory transactions.
    if (f == free.rbegin() && free.size() > 1 && (f + 1)->extent > 1) size = std::min(size, kWarp);
    sizes[static_cast<size_t>(f->member)] = size;
    points = std::max<int64_t>(points / size, 1);
  }
  return sizes;
}

isl::schedule_node Binder::tile_and_map_blocks(isl::schedule_node node) {
  const std::vector<int64_t> extents = poly::band_extents(node.as<isl::schedule_node_band>());
  const std::vector<Free> free = free_members(node);
  int64_t inner = 1;
  for (unsigned i = 0; i < node.n_children(); ++i) inner = std::max(inner, parallel_below(node.child(i)));
  const bool inner_threads = inner >= kWarp;
  std::vector<int64_t> sizes = tile_sizes(extents, free, inner_threads);
  const bool permutable = node.as<isl::schedule_node_band>().permutable();
  // Where members may not be interchanged, only the leading coincident ones keep their order in tiles.
  size_t tiled = extents.size();
  if (!permutable) {
    tiled = 0;
    while (tiled < extents.size() && node.as<isl::schedule_node_band>().member_get_coincident(static_cast<int>(tiled)))
      ++tiled;
    if (tiled == 0) tiled = 1, sizes[0] = 1;
    if (tiled < extents.size()) node = node.as<isl::schedule_node_band>().split(static_cast<int>(tiled));
    sizes.resize(tiled);
  }
  // A member without a size stays whole, among the points: its one tile.
  for (size_t i = 0; i < tiled; ++i) sizes[i] = sizes[i] == 0 ? extents[i] : std::min(sizes[i], extents[i]);
  for (size_t i = 0; i < tiled; ++i) sizes[i] = std::max<int64_t>(sizes[i], 1);
  const isl::multi_union_pw_aff before = node.as<isl::schedule_node_band>().partial_schedule();
  node = node.as<isl::schedule_node_band>().tile(
      poly::band_sizes(node.as<isl::schedule_node_band>(), std::span<const int64_t>(sizes)));

  Binding binding{Dealt::To::kBlocks, {}};
  binding.members.resize(tiled);
  int axis = 0;
  for (const Free& f : free) {
    const auto member = static_cast<size_t>(f.member);
    if (member >= tiled || axis == 3) continue;
    const int64_t tiles = (f.extent + sizes[member] - 1) / sizes[member];
    if (tiles == 1) continue;
    const auto a = static_cast<size_t>(axis);
    int64_t blocks = std::min(tiles, device_.grid[a]);
    if (a < options_.map_to_blocks.size()) blocks = std::min(blocks, options_.map_to_blocks[a]);
    kernel_.grid[a] = blocks;
    binding.members[member] = Dealt{Dealt::To::kBlocks, axis++, sizes[member]};
  }
  node = with_binding(node, std::move(binding));  // mark, tile band, point band
  node = node.child(0).child(0);
  node = by_intra_tile_options(node, before);
  if (steps_) node = with_steps(node, extents.size());
  return map_to_block(node);
}

isl::schedule_node Binder::by_intra_tile_options(const isl::schedule_node& points,
                                                 const isl::multi_union_pw_aff& before) const {
  if (options_.intra_tile_schedule_options == options::SchedulerOptions()) return points;
  poly::Scop scop = scop_;
  scop.schedule = points.schedule();
  const std::vector<int> path = poly::path_of(points);
  return poly::node_at(schedule_points(scop, {path}, before, options_.intra_tile_schedule_options).schedule, path);
}

isl::schedule_node Binder::with_steps(const isl::schedule_node& points, size_t tile_sizes) const {
  std::span<const int64_t> sizes;
  if (options_.tile.size() > tile_sizes) sizes = std::span(options_.tile).subspan(tile_sizes);
  poly::Scop part = poly::restricted(scop_, poly::statements_at(scop_, points.root()));
  part.schedule = points.schedule();
  const std::vector<int> path = poly::path_of(points);
  const int nests = points.isa<isl::schedule_node_sequence>() ? static_cast<int>(points.n_children()) : 0;
  for (int i = 0; i < nests; ++i) {
    std::vector<int> nest = path;
    nest.insert(nest.end(), {i, 0});
    if (poly::node_at(part.schedule, nest).isa<isl::schedule_node_band>()) part = step_reductions(part, {nest}, sizes);
  }
  if (points.isa<isl::schedule_node_band>()) part = step_reductions(part, {path}, sizes);
  return poly::node_at(part.schedule, path);
}

/// Maps what all threads of a block run together.
isl::schedule_node Binder::map_to_block(isl::schedule_node node) {
  if (node.isa<isl::schedule_node_leaf>()) return region(node);
  if (node.isa<isl::schedule_node_filter>()) return map_to_block(node.child(0)).parent();
  if (node.isa<isl::schedule_node_band>()) {
    // A band of several members that has nothing to deal out at its own level may have loops below that do.
    const bool here = !free_members(node).empty();
    int64_t below = 1;
    for (unsigned i = 0; i < node.n_children(); ++i) below = std::max(below, parallel_below(node.child(i)));
    const int64_t own = here ? product(free_members(node)) : 1;
    if (below == 1 || (here && own >= std::min(below, kWarp))) return region(node);
  } else if (parallel_below(node) == 1) {
    return region(node);
  }
  for (unsigned i = 0; i < node.n_children(); ++i) node = map_to_block(node.child(i)).parent();
  return node;
}

/// Makes a region of what stands at the node, with the free members of a band there on threads. The result stands
/// where the node stood.
isl::schedule_node Binder::region(const isl::schedule_node& node) {
  Binding binding{Dealt::To::kThreads, {}};
  if (node.isa<isl::schedule_node_band>()) {
    const std::vector<Free> free = free_members(node);
    binding.members.resize(node.as<isl::schedule_node_band>().n_member());
    size_t axis = 0;
    for (auto f = free.rbegin(); f != free.rend() && axis < 3; ++f, ++axis) {
      binding.members[static_cast<size_t>(f->member)] = Dealt{Dealt::To::kThreads, static_cast<int>(axis), 1};
      wanted_[axis] = std::max(wanted_[axis], f->extent);
    }
  }
  return with_binding(node, std::move(binding));
}

void Binder::settle_threads() {
  int64_t left = std::min(kDefaultThreads, device_.threads_per_block);
  if (!options_.map_to_threads.empty()) left = device_.threads_per_block;
  for (size_t axis = 0; axis < 3; ++axis) {
    int64_t threads = std::min({wanted_[axis], left, device_.block[axis]});
    if (!options_.map_to_threads.empty()) {
      threads = axis < options_.map_to_threads.size() ? options_.map_to_threads[axis] : 1;
    }
    kernel_.block[axis] = threads;
    left /= std::max<int64_t>(threads, 1);
  }
}

}  // namespace

Kernel bind(const poly::Scop& scop, const options::MappingOptions& options, const Device& device, bool steps) {
  return Binder(scop, options, device, steps).run();
}

}  // namespace tc::gpu
