#include "tc/gpu/strategy/tile_operation.h"

#include <algorithm>

#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"

namespace tc::gpu {
namespace {

const char* text_of(Level level) {
  switch (level) {
    case Level::kBlock:
      return "block";
    case Level::kCluster:
      return "cluster";
    case Level::kWarpgroup:
      return "warpgroup";
    case Level::kWarp:
      return "warp";
    case Level::kThread:
      break;
  }
  return "thread";
}

}  // namespace

const char* text_of(TileOperation operation) {
  switch (operation) {
    case TileOperation::kFma:
      return "fma";
    case TileOperation::kMma:
      return "mma.sync";
    case TileOperation::kWgmma:
      return "wgmma";
    case TileOperation::kPointwise:
      return "pointwise";
    case TileOperation::kReduce:
      break;
  }
  return "reduce";
}

std::string text_of(const LoopPlace& place) {
  std::string text = text_of(place.level);
  if (place.level == Level::kCluster || place.level == Level::kWarpgroup) return text;
  return fmt::format("{}.{}", text, static_cast<char>('x' + place.axis));
}

std::optional<LoopPlace> TiledLaunch::place(const std::string& loop) const {
  const auto found = places.find(loop);
  return found == places.end() ? std::nullopt : std::optional(found->second);
}

std::vector<LoopCut> TiledLaunch::of_index(const std::vector<LoopCut>& cuts, const std::string& index) const {
  std::vector<LoopCut> result;
  std::copy_if(cuts.begin(), cuts.end(), std::back_inserter(result),
               [&](const LoopCut& cut) { return cut.index == index; });
  return result;
}

std::optional<LoopCut> TiledLaunch::bound(const std::vector<LoopCut>& cuts, const std::string& index,
                                          Level level) const {
  for (const LoopCut& cut : cuts) {
    if (cut.index == index && place(cut.loop) && place(cut.loop)->level == level) return cut;
  }
  return std::nullopt;
}

Result<void> TiledLaunch::check_bound(const std::vector<LoopCut>& cuts, const std::string& index, LoopPlace wanted,
                                      int64_t count, int64_t step) const {
  bool any = false;
  for (const LoopCut& cut : cuts) {
    const std::optional<LoopPlace> here = place(cut.loop);
    if (cut.index != index || !here || here->level != wanted.level) continue;
    if (any) return fail("two loops over '{}' are on {}s", index, text_of(wanted.level));
    any = true;
    if (here->axis != wanted.axis && count > 1) {
      return fail("'{}' is on {}; {}s along '{}' are on {}", cut.loop, text_of(*here), text_of(wanted.level), index,
                  text_of(wanted));
    }
    if (cut.count == count && (cut.step == step || count == 1)) continue;
    return fail("'{}' has {} iterations in steps of {}; along '{}' there are {} {}s in steps of {}", cut.loop,
                cut.count, cut.step, index, count, text_of(wanted.level), step);
  }
  if (any || count == 1 || !complete) return {};
  return fail("no loop over '{}' is bound to {}: there are {} in steps of {}", index, text_of(wanted), count, step);
}

Result<void> TiledLaunch::check_blocks(const LoopCuts& cuts, const std::string& index, int axis, int64_t count) const {
  for (const LoopCut& cut : of_index(cuts.outside, index)) {
    const std::optional<LoopPlace> here = place(cut.loop);
    if (!here && complete && cut.count > 1)
      return fail("'{}' stands above the tile '{}' and is not bound to blocks", cut.loop, loop);
    if (here && here->level != Level::kBlock) {
      return fail("'{}' stands above the tile '{}'; it is for blocks, not {}", cut.loop, loop, text_of(*here));
    }
  }
  return check_bound(cuts.outside, index, {Level::kBlock, axis}, count, tile_of(cuts, index, count));
}

int64_t tile_of(const LoopCuts& cuts, const std::string& index, int64_t extent) {
  int64_t result = extent;
  for (const LoopCut& cut : cuts.outside) {
    if (cut.index == index) result = cut.step;
  }
  const bool is_cut =
      std::any_of(cuts.outside.begin(), cuts.outside.end(), [&](const LoopCut& cut) { return cut.index == index; });
  if (is_cut) return result;
  int64_t all = 1;
  for (const LoopCut& cut : cuts.inside) all *= cut.index == index ? cut.count : 1;
  return std::max(all, extent);
}

Result<void> check_all_in_blocks(const poly::Scop& launch, const TiledLaunch& tiled, const LoopCuts& cuts) {
  const std::vector<std::string> all = poly::statements_at(launch, launch.schedule.root());
  for (const LoopCut& cut : cuts.outside) {
    const std::optional<LoopPlace> place = tiled.place(cut.loop);
    if (!place || (place->level != Level::kBlock && place->level != Level::kCluster)) continue;
    TC_TRY(ref, poly::find_loop(launch, cut.loop));
    const std::vector<std::string> below = poly::statements_at(launch, poly::node_at(launch, ref));
    for (const std::string& statement : all) {
      if (std::count(below.begin(), below.end(), statement) > 0) continue;
      return fail("all blocks would run {}: '{}' does not stand above it", statement, cut.loop);
    }
  }
  return {};
}

Result<Launch> tile_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                           const std::string& name) {
  switch (tiled.operation) {
    case TileOperation::kFma:
    case TileOperation::kMma:
    case TileOperation::kWgmma:
      return product_launch(launch, tiled, device, name);
    case TileOperation::kPointwise:
      return pointwise_launch(launch, tiled, device, name);
    case TileOperation::kReduce:
      break;
  }
  return rows_launch(launch, tiled, device, name);
}

}  // namespace tc::gpu
