#include "tc/gpu/verbs/free_members.h"

#include <isl/schedule_node.h>

#include <algorithm>

#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {

std::vector<Free> free_members(const isl::schedule_node& node) {
  const auto band = node.as<isl::schedule_node_band>();
  const std::vector<int64_t> extents = poly::band_extents(band);
  std::vector<Free> result;
  for (int i = 0; i < static_cast<int>(extents.size()); ++i) {
    if (band.member_get_coincident(i) && extents[static_cast<size_t>(i)] > 1) {
      result.push_back({i, extents[static_cast<size_t>(i)]});
    }
  }
  return result;
}

int64_t product(const std::vector<Free>& members) {
  int64_t result = 1;
  for (const Free& f : members) result *= std::min<int64_t>(f.extent, INT32_MAX / result + 1);
  return result;
}

int64_t parallel_below(const isl::schedule_node& node) {
  if (node.isa<isl::schedule_node_band>()) {
    const std::vector<Free> members = free_members(node);
    if (!members.empty()) return product(members);
  }
  int64_t most = 1;
  for (unsigned i = 0; i < node.n_children(); ++i) most = std::max(most, parallel_below(node.child(i)));
  return most;
}

isl::schedule_node first_band(isl::schedule_node node) {
  while (!node.isa<isl::schedule_node_band>() && node.n_children() == 1) node = node.child(0);
  return node;
}

bool has_blocks(const poly::Scop& scop) {
  const isl::schedule_node node = first_band(scop.schedule.root());
  return node.isa<isl::schedule_node_band>() && !free_members(node).empty();
}

}  // namespace tc::gpu
