#pragma once

#include <algorithm>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

inline constexpr int64_t kTransposed = 64;          ///< values along an axis of a transposition's largest tile
inline constexpr int64_t kTransposedThreads = 512;  ///< of a block that has one

/// What the options say of a contraction's axes (plan_contraction()), cut to their extents; 0: nothing.
struct RequestedTile {
  std::vector<int64_t> tile, registers;         ///< per parallel axis
  std::vector<int64_t> chunk;                   ///< per reduction axis
  std::vector<int64_t> said_chunk;              ///< the same, not cut
  std::vector<int64_t> cluster;                 ///< blocks, per parallel axis
  int64_t cluster_parts = 0;                    ///< blocks that deal out the steps of a tile
  int64_t columns = 0, others = 0, groups = 0;  ///< threads

  bool says_threads() const { return columns > 0; }
  bool says_clusters() const {
    return cluster_parts > 1 || std::any_of(cluster.begin(), cluster.end(), [](int64_t blocks) { return blocks > 1; });
  }
  bool says_all_tiles() const { return std::count(tile.begin(), tile.end(), 0) == 0; }
  bool says_all_registers() const { return std::count(registers.begin(), registers.end(), 0) == 0; }
};

RequestedTile requested_tile(const Contraction& contraction, const options::MappingOptions& options);

/// Whether options say sizes, threads or stages of a product's tiles; and what else they say.
bool says_tile_sizes(const options::MappingOptions& options);
options::MappingOptions without_tile_sizes(options::MappingOptions options);

}  // namespace tc::gpu
