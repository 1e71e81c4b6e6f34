#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/lower/launch.h"
#include "tc/gpu/strategy/loop_cuts.h"
#include "tc/poly/scop.h"
#include "tc/support/result.h"

/// Tile operations of a schedule that is written loop by loop. What the verbs say of a launch becomes the plan of a
/// strategy (contraction/, elements/, rows/). The strategy's tests decide whether there is such a plan, and its builder
/// makes the kernel. So the same choices give the same text, whoever made them.
namespace tc::gpu {

/// What a block does with a tile.
enum class TileOperation {
  kFma,        ///< a product, by multiplications and additions of elements
  kMma,        ///< a product, by mma.sync of warps
  kWgmma,      ///< a product, by wgmma of warpgroups
  kPointwise,  ///< threads have elements of their own
  kReduce,     ///< threads share rows, and reduce each together
};

/// "fma", "mma.sync", "wgmma", "pointwise", "reduce".
const char* text_of(TileOperation operation);

/// What the iterations of a loop are dealt out to.
enum class Level { kBlock, kCluster, kWarpgroup, kWarp, kThread };

struct LoopPlace {
  Level level = Level::kThread;
  int axis = 0;  ///< 0 is x, the only one of clusters and warpgroups
};

/// "block.x"; "cluster".
std::string text_of(const LoopPlace& place);

/// How a buffer in shared memory is filled: by threads, element by element or in vectors, or by the copy engine in
/// boxes.
enum class Fill { kElements, kVectors, kBoxes };

struct TileBuffer {
  std::string tensor, loop;
  bool shared = true;  ///< else in registers
  Fill fill = Fill::kVectors;
  int64_t stages = 1;
};

/// What the verbs say of a launch whose blocks each do one tile operation.
struct TiledLaunch {
  std::string loop;  ///< the first one of a tile
  TileOperation operation = TileOperation::kFma;
  std::map<std::string, LoopPlace> places;  ///< of loops that are bound
  std::set<std::string> unrolled;           ///< loops
  std::set<std::string> vectors;            ///< loops, of the unrolled ones
  std::map<std::string, int64_t> sizes;     ///< iterations of loops that a split has made
  std::vector<TileBuffer> buffers;
  std::string persistent;  ///< the loop whose blocks go on with further tiles; empty: each has one tile
  int64_t teams = 1;       ///< of warpgroups, which have a persistent block's tiles by turns
  bool complete = true;    ///< nothing more will be said: the loops must say all that the plan decides

  std::optional<LoopPlace> place(const std::string& loop) const;
  /// The loops of an index.
  std::vector<LoopCut> of_index(const std::vector<LoopCut>& cuts, const std::string& index) const;
  /// The loop of an index that is bound to a level; none: there is no such loop.
  std::optional<LoopCut> bound(const std::vector<LoopCut>& cuts, const std::string& index, Level level) const;
  /// Holds when the only loop of the index on that level is on the axis, has `count` iterations, and goes in steps of
  /// `step`. With a count of 1 there need be none.
  Result<void> check_bound(const std::vector<LoopCut>& cuts, const std::string& index, LoopPlace place, int64_t count,
                           int64_t step) const;
  /// Holds when the launch's blocks go over the index by one loop of `count` iterations, which is on that axis.
  Result<void> check_blocks(const LoopCuts& cuts, const std::string& index, int axis, int64_t count) const;
};

/// Values of the index that a block has.
int64_t tile_of(const LoopCuts& cuts, const std::string& index, int64_t extent);

/// Holds when all loops on blocks that stand above the tile of one statement stand above all statements of the launch.
Result<void> check_all_in_blocks(const poly::Scop& launch, const TiledLaunch& tiled, const LoopCuts& cuts);

/// The launch's kernel. `launch` has the statements of the def, and the loops of the launch. Errors: no plan of the
/// strategy does what the loops say, with the strategy's reason; something that the loops have to say, and do not.
Result<Launch> tile_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                           const std::string& name);

/// The same of products; of pointwise work; of rows: for tile_launch().
Result<Launch> product_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                              const std::string& name);
Result<Launch> pointwise_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                                const std::string& name);
Result<Launch> rows_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                           const std::string& name);

}  // namespace tc::gpu
