#include "tc/gpu/verbs/steps.h"

#include <algorithm>
#include <numeric>

#include "tc/poly/isl_ext.h"
#include "tc/poly/transform.h"

namespace tc::gpu {
namespace {

constexpr int64_t kStep = 32;

bool is_band(const isl::schedule_node& node) { return node.isa<isl::schedule_node_band>(); }

/// Whether there is a node at the end of a path, and it is a band: what has been distributed may have fewer nodes.
bool is_band_at(const poly::Scop& scop, const std::vector<int>& path) {
  isl::schedule_node node = scop.schedule.root();
  for (const int child : path) {
    if (child >= static_cast<int>(node.n_children())) return false;
    node = node.child(child);
  }
  return is_band(node);
}

/// The sizes of a step: innermost members whole as long as they fit.
std::vector<int64_t> step_sizes(const std::vector<int64_t>& extents, std::span<const int64_t> given) {
  std::vector<int64_t> sizes(extents.size());
  int64_t left = kStep;
  for (size_t m = extents.size(); m-- > 0;) {
    sizes[m] = std::min(extents[m], left);
    left = std::max<int64_t>(left / extents[m], 1);
  }
  for (size_t m = 0; m < sizes.size() && m < given.size(); ++m) {
    sizes[m] = given[m] == 0 ? extents[m] : std::min(given[m], extents[m]);
  }
  return sizes;
}

/// Steps of the band right below the points, in front of them.
std::optional<poly::Scop> stepped(const poly::Scop& scop, const poly::BandRef& points, std::span<const int64_t> given) {
  const poly::BandInfo reduction = poly::band_info(scop, points.below());
  const std::vector<int64_t> sizes = step_sizes(reduction.extents, given);
  if (sizes == reduction.extents) return std::nullopt;
  const Result<poly::Scop> tiled = poly::tile(scop, points.below(), sizes);
  if (!tiled) return std::nullopt;
  const int outer = poly::band_info(scop, points).members(), steps = reduction.members();
  std::vector<int> order(static_cast<size_t>(outer + steps));
  for (int m = 0; m < outer + steps; ++m) order[static_cast<size_t>(m)] = m < steps ? outer + m : m - steps;
  const Result<poly::Scop> turned = poly::reorder(poly::fuse(*tiled, points), points, order);
  if (!turned) return std::nullopt;
  return poly::split(*turned, points, steps);
}

}  // namespace

poly::Scop step_reductions(const poly::Scop& scop, const poly::BandRef& points, std::span<const int64_t> sizes) {
  const poly::BandInfo band = poly::band_info(scop, points);
  for (size_t m = 0; m < band.extents.size(); ++m) {
    if (!band.coincident[m] && band.extents[m] > 1) return scop;
  }
  const isl::schedule_node below = poly::node_at(scop, points.below());
  if (is_band(below)) return stepped(scop, points, sizes).value_or(scop);
  if (!below.isa<isl::schedule_node_sequence>()) return scop;
  const Result<poly::Scop> apart = poly::distribute(scop, points);
  if (!apart) return scop;
  poly::Scop result = *apart;
  bool any = false;
  for (int i = 0; i < static_cast<int>(below.n_children()); ++i) {
    poly::BandRef child = points;
    child.path.insert(child.path.end(), {i, 0});
    if (!is_band_at(result, child.path) || !is_band_at(result, child.below().path)) continue;
    if (std::optional<poly::Scop> one = stepped(result, child, sizes)) {
      result = *std::move(one);
      any = true;
    }
  }
  return any ? result : scop;
}

}  // namespace tc::gpu
