#include "tc/gpu/strategy/contraction/requested_tile.h"

#include "tc/support/round.h"

namespace tc::gpu {

RequestedTile requested_tile(const Contraction& c, const options::MappingOptions& options) {
  const size_t parallel = c.parallel.size();
  const auto at = [](const std::vector<int64_t>& values, size_t i) { return i < values.size() ? values[i] : 0; };
  RequestedTile request;
  for (size_t i = 0; i < parallel; ++i) {
    request.cluster.push_back(at(options.cluster, i));
    // Warps of tensor cores have all of their rows and columns, within the results or not. So have blocks of a chain.
    if (options.tensor_cores.value_or(false) || options.chain.value_or(false)) {
      request.registers.push_back(at(options.register_tile, i));
      request.tile.push_back(at(options.tile, i));
      continue;
    }
    // Transpositions have whole warps beside each other, and need not divide anything.
    const bool sets = c.update.assign == ir::Assign::kSet;
    const int64_t extent = c.parallel[i].extent;
    const int64_t registers = std::min(at(options.register_tile, i), sets ? kTransposed : extent);
    request.registers.push_back(registers);
    const int64_t whole = sets ? kTransposed : std::max<int64_t>(registers, 1);
    request.tile.push_back(std::min(at(options.tile, i), round_up(extent, whole)));
  }
  request.cluster_parts = at(options.cluster, parallel);
  for (size_t r = 0; r < c.reduction.size(); ++r) {
    request.said_chunk.push_back(at(options.tile, parallel + r));
    request.chunk.push_back(std::min(request.said_chunk[r], c.reduction[r].extent));
    if (options.shared_depth == static_cast<int64_t>(parallel)) request.chunk.back() = c.reduction[r].extent;
  }
  if (!options.map_to_threads.empty()) {
    const auto threads = [&](size_t i) { return std::max<int64_t>(at(options.map_to_threads, i), 1); };
    request.columns = threads(0);
    request.others = threads(1);
    request.groups = threads(2);
  }
  return request;
}

options::MappingOptions options_of(const ContractionPlan& plan) {
  options::MappingOptions options;
  for (const AxisPlan& axis : plan.parallel) options.tile.push_back(axis.tile);
  for (int64_t chunk : plan.chunk) options.tile.push_back(chunk);
  for (const AxisPlan& axis : plan.parallel) options.register_tile.push_back(axis.registers);
  options.map_to_threads = {plan.columns_threads, plan.points_threads() / plan.columns_threads, plan.groups};
  options.copy_stages = plan.stages + (plan.all_ahead ? 1 : 0);
  options.unroll = plan.most_unrolled;
  if (plan.tensor_cores) options.tensor_cores = true;
  for (const AxisPlan& axis : plan.parallel) options.cluster.push_back(axis.cluster);
  if (plan.cluster_parts > 1) {
    options.cluster.push_back(plan.cluster_parts);
  } else if (plan.cluster_blocks() == 1) {
    options.cluster.clear();
  }
  if (plan.store_boxes) options.store_boxes = true;
  if (plan.grid > 0) options.persistent = true;
  if (plan.ping_pong) options.ping_pong = true;
  // Without an atom they are of 8-bit floats.
  if (plan.tensor_cores && !plan.tensor_cores->atom) options.fast_accumulation = !plan.tensor_cores->in_parts;
  if (plan.tensor_cores) options.tf32 = plan.tensor_cores->cuts;
  return options;
}

bool says_tile_sizes(const options::MappingOptions& o) {
  return !o.tile.empty() || !o.register_tile.empty() || !o.map_to_threads.empty() || !o.cluster.empty() ||
         o.copy_stages || o.shared_depth;
}

options::MappingOptions without_tile_sizes(options::MappingOptions o) {
  o.tile = o.register_tile = o.map_to_threads = o.cluster = {};
  o.copy_stages = o.shared_depth = std::nullopt;
  return o;
}

}  // namespace tc::gpu
