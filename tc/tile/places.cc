#include "tc/tile/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tc/tile/accesses.h"

namespace tc::tile {
namespace {

int64_t end_of(const SharedTensor& place) {
  return place.byte_offset + place.tensor->elements() * element_bytes(place.tensor->type);
}

bool touches(const Leaf& leaf, const std::set<std::string>& tensors) {
  return std::ranges::any_of(leaf.accesses,
                             [&](const ElementAccess& access) { return tensors.count(access.tensor->name) > 0; });
}

/// Reached once, by all threads of the block.
bool is_barrier_of_all(const Leaf& leaf) {
  return order_of(*leaf.node) == Order::kBlock && leaf.path.loops.empty() && leaf.path.conditions.empty();
}

/// Whether a leaf is where a thread learns that boxes have come, or products have ended.
bool waits_for_others(const Leaf& leaf) {
  const RingStep* step = ring_step_of(*leaf.node);
  return matmul_wait_of(*leaf.node) || (step && step->kind == RingStep::Kind::kAwait);
}

/// Whether something goes on behind an access of a leaf that neither a ring nor a wait for products ends.
bool may_go_on(const Leaf& leaf) { return asynchronous_copy(*leaf.node) || box_store_of(*leaf.node); }

}  // namespace

std::vector<std::string> place_faults(const Kernel& kernel) {
  std::vector<std::string> faults;
  const std::vector<SharedTensor> places = kernel.shared_tensors();
  const bool shares = std::ranges::any_of(places, [](const auto& place) { return !place.tensor->place_of.empty(); });
  if (!shares) return faults;
  const Flow flow = flow_of(kernel);
  for (const SharedTensor& place : places) {
    const std::string& name = place.tensor->name;
    if (place.tensor->place_of.empty()) continue;
    std::set<std::string> others;
    for (const SharedTensor& other : places) {
      const bool meets = place.byte_offset < end_of(other) && other.byte_offset < end_of(place);
      if (other.tensor != place.tensor && meets) others.insert(other.tensor->name);
    }
    const auto fault = [&](const std::string& why) { faults.push_back(fmt::format("{}: {}", kernel.name, why)); };
    long last = -1, first = std::ssize(flow.leaves);
    for (long i = 0; i < std::ssize(flow.leaves); ++i) {
      const Leaf& leaf = flow.leaves[static_cast<size_t>(i)];
      if (touches(leaf, others)) {
        last = i;
        if (may_go_on(leaf)) fault(fmt::format("'{}' touches where '{}' lies, and may go on", leaf.text(), name));
      }
      if (!touches(leaf, {name})) continue;
      first = std::min(first, i);
      const bool by_boxes = box_of(*leaf.node) || box_store_of(*leaf.node) || warpgroup_product_of(*leaf.node);
      if (by_boxes) fault(fmt::format("'{}' touches '{}', which lies where others do, as boxes do", leaf.text(), name));
    }
    // The last barrier before it. What boxes and products do has ended there, as each of their waits lies before.
    long barrier = first - 1;
    while (barrier > last && !is_barrier_of_all(flow.leaves[static_cast<size_t>(barrier)])) --barrier;
    if (barrier <= last) {
      fault(fmt::format("no barrier of the block stands between what touches '{}' and those that it lies over", name));
      continue;
    }
    const auto late = std::find_if(flow.leaves.begin() + barrier, flow.leaves.end(), waits_for_others);
    if (late != flow.leaves.end()) {
      fault(fmt::format("'{}' stands behind the barrier before '{}', which lies where others do", late->text(), name));
    }
  }
  return faults;
}

}  // namespace tc::tile
