#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/fused_group.h"

namespace tc::gpu {

/// Where the values of an index are, for one tile of the results: from `low` before or behind the tile's first value
/// along a member, to `high` behind its last.
struct Reach {
  int member = 0;
  int64_t low = 0, high = 0;
  bool operator==(const Reach&) const = default;
};

/// A statement that runs for all of a tile, and for as much around it as the later stages read.
struct HaloStage {
  GroupStatement statement;
  bool starts = false;          ///< it does its initialisation too
  std::vector<int> indices;     ///< of the statement, per dimension of what it writes
  std::vector<int> reductions;  ///< the others
  std::vector<Reach> reach;     ///< per dimension of what it writes
};

/// A block computes a tile of the results, stage after stage. Tensors between them are in shared memory.
struct HaloPlan {
  std::vector<ir::Range> members;  ///< the results' indices
  std::vector<int64_t> tile;       ///< along each
  int64_t threads = 256;
  std::vector<HaloStage> stages;
  std::map<std::string, std::vector<Reach>> locals;  ///< tensors in shared memory, per dimension

  int64_t extent(const Reach& reach) const { return tile[static_cast<size_t>(reach.member)] + reach.high - reach.low; }
};

/// Plans for the statements of a scop's schedule in one launch, with tiles of several sizes. Empty unless
///  - a temporary, which nobody else reads, is read at several elements near the one that is written;
///  - each statement writes one element for each value of its map indices, and reductions are short;
///  - nothing in memory is both read and written, but for an element that a statement writes itself.
/// An element at a tile's edge is computed by each block that reads it.
std::vector<HaloPlan> plan_halo(const poly::Scop& scop, const std::vector<std::string>& statements,
                                const Device& device);

}  // namespace tc::gpu
