#pragma once

#include <utility>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"

/// How long products of warpgroups take (warpgroups.h), and what is tried by it.
namespace tc::gpu {

/// Clusters that are tried, as (rows, columns) of blocks, with the tiles of a plan without one: none, unless the boxes
/// of a step take half as long as its products or longer.
std::vector<std::pair<int64_t, int64_t>> warpgroup_clusters(const Contraction& contraction,
                                                            const ContractionPlan& alone, const Device& device);

/// Into how many parts the steps of a product may be dealt out that has so many tiles: those that fill the processors.
std::vector<int64_t> cluster_parts(int64_t tiles, int64_t steps, const Device& device);

/// Blocks of a processor that run at once.
int64_t resident_blocks(const Contraction& contraction, const ContractionPlan& plan);

/// Estimated cycles of the whole product.
double warpgroup_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device);

/// Cycles of one step, which do not depend on how many buffers there are: of its products, and of its boxes.
struct WarpgroupStep {
  double multiplied = 0, copied = 0;
};
WarpgroupStep warpgroup_step(const Contraction& contraction, const ContractionPlan& plan, const Device& device);

/// Of two teams that take turns: whether one is done with a tile's results before the other one has multiplied its own.
bool finishes_meanwhile(const Contraction& contraction, const ContractionPlan& plan, const Device& device);

/// The same of a product whose step is known.
double warpgroup_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device,
                        const WarpgroupStep& step);

}  // namespace tc::gpu
