#include "tc/tile/cluster_order.h"

#include <fmt/format.h>

#include "tc/tile/accesses.h"

namespace tc::tile {
namespace {

/// The steps of the cluster's barrier that lie before a leaf. All threads of the cluster do all steps, in the order of
/// the text, so these numbers are the same for all instances of the leaf.
struct Place {
  int arrivals = 0, waits = 0;
};

/// Whether the one comes before the other in time, whichever threads of the cluster do them: each thread of the cluster
/// has done the first when it arrives for some wait that lies before the second.
bool is_ordered(const Place& first, const Place& second) { return first.arrivals < second.waits; }

}  // namespace

std::vector<std::string> unproved_cluster(const Kernel& kernel) {
  const Flow flow = flow_of(kernel);
  std::vector<Place> places;
  Place now;
  for (const Leaf& leaf : flow.leaves) {
    places.push_back(now);
    if (const ClusterStep* step = cluster_step_of(*leaf.node)) {
      ++(step->kind == ClusterStep::Kind::kArrive ? now.arrivals : now.waits);
    }
  }
  std::vector<std::string> result;
  const auto fault = [&](const Leaf& leaf, const std::string& what) {
    result.push_back(fmt::format("{}: '{}' {}", kernel.name, leaf.text(), what));
  };
  for (size_t r = 0; r < places.size(); ++r) {
    for (const ElementAccess& read : flow.leaves[r].accesses) {
      if (!read.in_cluster) continue;
      if (places[r].waits == 0) fault(flow.leaves[r], "may read a block that has not begun");
      if (!is_ordered(places[r], now)) fault(flow.leaves[r], "may read a block that has ended");
      for (size_t w = 0; w < places.size(); ++w) {
        for (const ElementAccess& write : flow.leaves[w].accesses) {
          if (write.tensor != read.tensor || !write.is_write) continue;
          const bool arrives_later = write.asynchronous || write.region;
          if (!arrives_later && (is_ordered(places[w], places[r]) || is_ordered(places[r], places[w]))) continue;
          fault(flow.leaves[r], fmt::format("reads what '{}' writes, with no barrier of the cluster in between",
                                            flow.leaves[w].text()));
        }
      }
    }
  }
  return result;
}

}  // namespace tc::tile
