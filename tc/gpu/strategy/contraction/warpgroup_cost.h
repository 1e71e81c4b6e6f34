#pragma once

#include <utility>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"

/// How long products of warpgroups take (warpgroups.h), and what is tried by it.
namespace tc::gpu {

/// Bytes that a product moves once, whatever its plan is.
struct ProductBytes {
  std::vector<double> in_memory;  ///< of what is read of each operand, as it lies in memory
  double all = 0;                 ///< of operands and results
};
ProductBytes bytes_of_product(const Contraction& contraction);

/// Clusters that are tried, as (rows, columns) of blocks, with the tiles of a plan without one: none, unless the boxes
/// of a step take half as long as its products or longer.
std::vector<std::pair<int64_t, int64_t>> warpgroup_clusters(const Contraction& contraction,
                                                            const ContractionPlan& alone, const Device& device,
                                                            const ProductBytes& bytes);

/// Into how many parts the steps of a product may be dealt out that has so many tiles: those that fill the processors.
std::vector<int64_t> cluster_parts(int64_t tiles, int64_t steps, const Device& device);

/// Blocks of a processor that run at once.
int64_t resident_blocks(const Contraction& contraction, const ContractionPlan& plan);

/// Estimated cycles of the whole product.
double warpgroup_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device);

/// The parts of an estimate that no number of buffers changes, in cycles.
struct WarpgroupWork {
  double multiplied = 0, copied = 0;  ///< of a step of a block: its products, and its boxes
  double from_cache = 0;              ///< in which the L2 cache gives all blocks what a step of each brings
  double steps = 0;                   ///< of a block, of all slices that data select
  double latency = 0;                 ///< from the start of a box to its arrival
  double outside = 0;                 ///< of a step: what boxes take longer that are in the tensor in part
  double memory = 0;                  ///< of the whole product
  struct End {
    double issued = 0;         ///< by threads, for what they do to results
    double row = 0, rows = 0;  ///< of stores by rows: of a warp that nothing hides, and of the processor
    double vectors = 0;        ///< results, in stores of 16 bytes
    double slabs = 0;          ///< staging buffers of results that lie across the tile
    double singles = 0;        ///< of results that are stored one by one
  } end;                       ///< of a tile
};
WarpgroupWork warpgroup_work(const Contraction& contraction, const ContractionPlan& plan, const Device& device,
                             const ProductBytes& bytes);

/// Of two teams that take turns: whether one is done with a tile's results before the other one has multiplied its own.
bool finishes_meanwhile(const Contraction& contraction, const ContractionPlan& plan, const Device& device);

/// The same of a plan whose work is known.
double warpgroup_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device,
                        const WarpgroupWork& work);

/// No more than that of a plan with more buffers, up to `most_stages`.
double least_warpgroup_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device,
                              const WarpgroupWork& work, int64_t most_stages);

/// No more than the estimate of any plan of such tiles without turns: in clusters, and stored in any way.
double least_cycles_of_tiles(const ContractionPlan& plan, const Device& device, const WarpgroupWork& work,
                             const ProductBytes& bytes);

}  // namespace tc::gpu
