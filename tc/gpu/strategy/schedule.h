#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/mapping/copies.h"
#include "tc/gpu/strategy/map.h"
#include "tc/gpu/strategy/tile_operation.h"
#include "tc/gpu/verbs/split_reduction.h"

namespace tc::gpu {

/// What a buffer is made of.
enum class Buffer { kShared, kRegisters };

/// Launches that are written loop by loop: a value, whose verbs take loops by name and give a new one. Each is legal,
/// or refused with a pair of instances that it would run in the wrong order or at once. It begins as the scheduler
/// leaves a def: loops that statements share, coincident ones outside, none of them on blocks or threads, all in one
/// launch.
class Schedule {
 public:
  /// `scop` is that of from_ir(). `device` is what tile operations are planned for. Errors: the context's budget.
  static Result<Schedule> create(const poly::Scop& scop, const options::SchedulerOptions& options = {},
                                 const Device& device = {});

  std::vector<std::string> loops() const;
  const poly::Scop& scop() const { return scop_; }
  /// The loop nest, with what is bound and with buffers.
  std::string to_text() const;

  /// The verbs of poly/loop_tree.h. A loop that is bound or that a buffer stands below is refused.
  Result<Schedule> split(const std::string& loop, int64_t size, const std::string& outer,
                         const std::string& inner) const;
  Result<Schedule> fuse(const std::string& outer, const std::string& inner, const std::string& fused) const;
  Result<Schedule> reorder(const std::vector<std::string>& loops) const;
  Result<Schedule> distribute(const std::string& loop) const;
  /// `rest` becomes the name of the second loop.
  Result<Schedule> partition(const std::string& loop, int64_t at, std::string& rest) const;

  /// The verbs of poly/loop_fusion.h. Loops on blocks or threads stay legal there, or refuse.
  Result<Schedule> merge(const std::string& first, const std::string& second) const;
  Result<Schedule> sink(const std::string& name, const std::string& loop) const;

  /// Starts another launch with a loop, or a statement, that stands below no loop. It is then neither merged nor sunk.
  Result<Schedule> launch(const std::string& name) const;
  /// Gives parts of a reduction results of their own (verbs/split_reduction.h).
  Result<Schedule> split_reduction(const std::string& loop, int64_t count, bool cyclic, ReductionLoops& loops) const;

  /// Deals a loop's iterations out. Loops on threads stand right below each other, but for those of a tile operation,
  /// which alone has loops on warps, warpgroups and clusters. There a loop over a reduction may be bound, too.
  Result<Schedule> bind(const std::string& loop, LoopPlace place) const;
  /// Makes the loop, and all below it, one tile operation of each block. The loops above it are for blocks, and for
  /// steps of a product's reduction. All further verbs of its launch say more of the operation; each is held against
  /// what a strategy can plan (tile_operation.h). No loop of the launch is cut or moved any more.
  Result<Schedule> tensorize(const std::string& loop, TileOperation operation) const;
  /// Lets the blocks of a tile operation stay, and go through all tiles: there are as many as run at once. `loop` is
  /// the innermost one on blocks. With two teams (1 or 2) of warpgroups, one finishes a tile while the other
  /// multiplies.
  Result<Schedule> persist(const std::string& loop, int64_t teams) const;
  /// Lets the first warp share the iterations of a reduction to one element, which shuffles combine. The loop is not
  /// unrolled.
  Result<Schedule> reduce_by_warp(const std::string& loop) const;
  /// Lays all iterations of a loop out.
  Result<Schedule> unroll(const std::string& loop) const;
  /// The same, with vectors where neighbours in memory are read or written.
  Result<Schedule> vectorize(const std::string& loop) const;
  /// Holds what is used of the tensor in an iteration of the loop in a buffer: one of the block's, or of each thread.
  /// `boxes`: by the copy engine, for a tile operation.
  Result<Schedule> promote(const std::string& tensor, const std::string& loop, Buffer buffer,
                           const CopyOptions& options = {}, bool boxes = false) const;

  /// Lets the copies of a promotion to shared memory run ahead of the loop that they stand below: asynchronous, into
  /// `stages` slots (2 to 8) that its iterations take in turn.
  Result<Schedule> stage(const std::string& tensor, const std::string& loop, int64_t stages) const;

  /// The launches, with barriers where they are needed, verified. Errors: limits of the device; dependences between
  /// blocks; what verifier or certificate do not accept, as a sentence of theirs. Of the options only those of all
  /// kernels count: use_readonly_cache and strict.
  Result<Mapping> lower(const Device& device, const options::MappingOptions& options = {}) const;

 private:
  struct Hold {
    std::string tensor, loop;
    Buffer buffer;
    CopyOptions options;
    bool boxes = false;
  };
  Schedule(poly::Scop scop, const Device& device) : scop_(std::move(scop)), device_(device) {}
  Result<Kernel> bound(const poly::Scop& launch, const Device& device) const;
  Result<Kernel> decided(const poly::Scop& launch, const Device& device) const;
  Result<void> check_decided() const;
  Result<void> check_unbound(const std::string& loop) const;
  Result<void> check_free(const std::string& loop) const;
  std::string tile_of(const poly::Scop& launch) const;
  poly::Scop launch_with(const std::string& loop) const;
  std::vector<poly::Scop> launches() const;
  TiledLaunch tiled(const poly::Scop& launch, bool complete) const;
  Result<void> check_places() const;
  Result<Schedule> settled(poly::Scop scop) const;
  Schedule with(poly::Scop scop) const;

  poly::Scop scop_;
  Device device_;
  std::map<std::string, LoopPlace> bound_;
  std::set<std::string> by_warp_;
  std::set<std::string> unrolled_;
  std::set<std::string> vectors_;  ///< of the unrolled ones
  std::vector<Hold> holds_;
  std::map<std::string, TileOperation> tiles_;  ///< by the first loop of the tile
  std::map<std::string, int64_t> persistent_;   ///< teams of a block, by the innermost loop on blocks
  std::map<std::string, int64_t> sizes_;        ///< iterations of loops that split() has made
};

}  // namespace tc::gpu
