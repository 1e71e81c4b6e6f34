#include <algorithm>

#include "tc/gpu/strategy/schedule.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"
#include "tc/poly/restricted.h"

/// Tile operations of a schedule that is written loop by loop.
namespace tc::gpu {

std::vector<poly::Scop> Schedule::launches() const {
  std::vector<poly::Scop> result;
  for (const isl::schedule& part : poly::launches_of(scop_)) {
    result.push_back(poly::part_of(scop_, part));
  }
  return result;
}

/// The launch that a loop belongs to.
poly::Scop Schedule::launch_with(const std::string& loop) const {
  std::vector<poly::Scop> all = launches();
  const auto found = std::find_if(all.begin(), all.end(), [&](const poly::Scop& launch) {
    return poly::find_mark(launch, poly::kLoopMark + loop).has_value();
  });
  return found == all.end() ? scop_ : *found;
}

/// The first loop of a launch's tile operation; empty: it has none.
std::string Schedule::tile_of(const poly::Scop& launch) const {
  for (const auto& [loop, operation] : tiles_) {
    if (poly::find_mark(launch, poly::kLoopMark + loop)) return loop;
  }
  return "";
}

TiledLaunch Schedule::tiled(const poly::Scop& launch, bool complete) const {
  TiledLaunch result;
  result.loop = tile_of(launch);
  result.operation = tiles_.at(result.loop);
  result.sizes = sizes_;
  result.complete = complete;
  for (const std::string& loop : poly::loop_names(launch)) {
    if (const auto place = bound_.find(loop); place != bound_.end()) result.places.insert(*place);
    if (unrolled_.count(loop) > 0) result.unrolled.insert(loop);
    if (vectors_.count(loop) > 0) result.vectors.insert(loop);
    if (const auto teams = persistent_.find(loop); teams != persistent_.end()) {
      result.persistent = loop;
      result.teams = teams->second;
    }
    for (const Hold& hold : holds_) {
      if (hold.loop != loop) continue;
      const Fill by_threads = hold.options.vector_bytes > 1 && !hold.options.by_one ? Fill::kVectors : Fill::kElements;
      result.buffers.push_back({hold.tensor, hold.loop, hold.buffer == Buffer::kShared,
                                hold.boxes ? Fill::kBoxes : by_threads, hold.options.stages});
    }
  }
  return result;
}

/// Holds when iterations may run where they are bound to. Below a tile's first loop they may be those of a reduction,
/// which the operation puts together.
Result<void> Schedule::check_places() const {
  for (const auto& [loop, place] : bound_) {
    bool in_tile = false;
    for (const auto& [tile, operation] : tiles_) {
      TC_TRY(first, poly::find_loop(scop_, tile));
      TC_TRY(ref, poly::find_loop(scop_, loop));
      in_tile =
          in_tile || std::equal(first.path.begin(), first.path.end(), ref.path.begin(),
                                ref.path.begin() + static_cast<long>(std::min(first.path.size(), ref.path.size())));
    }
    TC_TRY_VOID(poly::check_at_once(scop_, loop, in_tile));
  }
  return {};
}

/// Holds when buffers can be where they are, and tile operations are possible.
Result<void> Schedule::check_decided() const {
  if (holds_.empty() && tiles_.empty()) return {};
  for (const poly::Scop& launch : launches()) {
    if (tile_of(launch).empty()) {
      if (!holds_.empty()) TC_TRY_VOID(decided(launch, Device{}));
    } else {
      TC_TRY_VOID(tile_launch(launch, tiled(launch, false), device_, ""));
    }
  }
  return {};
}

Result<Schedule> Schedule::bind(const std::string& loop, LoopPlace place) const {
  TC_TRY_VOID(poly::find_loop(scop_, loop));
  // Buffers of a tile operation need not wait for its loops.
  const bool in_tile = !tiles_.empty() && !tile_of(launch_with(loop)).empty();
  if (!in_tile) TC_TRY_VOID(check_unbound(loop));
  if (bound_.count(loop) > 0) return fail("'{}' is bound; its loop stays as it is", loop);
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    Schedule result = *this;
    result.bound_[loop] = place;
    TC_TRY_VOID(result.check_places());
    if (!tiles_.empty()) TC_TRY_VOID(result.check_decided());
    return result;
  });
}

Result<Schedule> Schedule::tensorize(const std::string& loop, TileOperation operation) const {
  TC_TRY_VOID(check_free(loop));
  const poly::Scop launch = launch_with(loop);
  for (const std::string& other : poly::loop_names(launch)) {
    if (by_warp_.count(other) > 0) return fail("a warp shares '{}'; a tile operation reduces by itself", other);
  }
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    Schedule result = *this;
    result.tiles_[loop] = operation;
    TC_TRY_VOID(result.check_decided());
    return result;
  });
}

Result<Schedule> Schedule::persist(const std::string& loop, int64_t teams) const {
  TC_TRY_VOID(poly::find_loop(scop_, loop));
  const poly::Scop launch = launch_with(loop);
  if (tile_of(launch).empty()) {
    return fail("only blocks of a tile operation persist: tensorize a loop below '{}' first", loop);
  }
  for (const std::string& other : poly::loop_names(launch)) {
    if (persistent_.count(other) > 0) return fail("the blocks of '{}' persist already", other);
  }
  if (teams < 1 || teams > 2) return fail("a block has 1 or 2 teams; it cannot have {}", teams);
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    Schedule result = *this;
    result.persistent_[loop] = teams;
    TC_TRY_VOID(result.check_decided());
    return result;
  });
}

}  // namespace tc::gpu
