#include <algorithm>
#include <memory>

#include "tc/gpu/mapping/fused_group.h"
#include "tc/gpu/strategy/choose_rows.h"
#include "tc/gpu/strategy/elements/pointwise.h"
#include "tc/gpu/strategy/tile_operation.h"
#include "tc/gpu/verbs/partition_launches.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/restricted.h"
#include "tc/poly/schedule.h"
#include "tc/support/round.h"

/// Pointwise work and rows as tile operations: the loops as an ElementsPlan or a RowsPlan.
namespace tc::gpu {
namespace {

/// The statements of a launch that share parallel loops, and how the verbs' loops cut their indices.
struct Group {
  std::unique_ptr<const poly::Scop> scop;  ///< as the strategies see it; `part` refers to it
  FusedGroup part;
  std::vector<LoopCuts> cuts;  ///< per statement of the part

  const std::string& index(size_t statement, size_t member) const {
    const GroupStatement& s = part.statements[statement];
    return s.statement->indices[static_cast<size_t>(s.shared[member])];
  }
};

Result<Group> group_of(const poly::Scop& launch, const TiledLaunch& tiled) {
  const std::vector<std::string> here = poly::statements_at(launch, launch.schedule.root());
  TC_TRY(scheduled, poly::schedule(poly::restricted(launch, here), {}));
  poly::Scop whole = launch;
  whole.schedule = scheduled.schedule;
  const std::vector<poly::Scop> launches = partition_launches(whole);
  if (launches.size() != 1) return fail("{} share no parallel loop", fmt::join(here, ", "));
  Group group;
  group.scop = std::make_unique<const poly::Scop>(launches[0]);
  const std::optional<FusedGroup> part = fused_group_of(*group.scop);
  if (!part)
    return fail("the loops of {} are not over whole boxes, or data choose what is written", fmt::join(here, ", "));
  group.part = *part;
  const bool any_threads = std::any_of(tiled.places.begin(), tiled.places.end(),
                                       [](const auto& bound) { return bound.second.level == Level::kThread; });
  if (tiled.complete && !any_threads) return fail("no loop of the tile '{}' is bound to threads", tiled.loop);
  for (const GroupStatement& s : group.part.statements) {
    TC_TRY(cuts, cuts_of(launch, s.statement->id, tiled.loop, tiled.sizes));
    TC_TRY_VOID(check_all_in_blocks(launch, tiled, cuts));
    group.cuts.push_back(std::move(cuts));
  }
  return group;
}

/// Threads on an axis: the most iterations of a loop that is bound to it.
int64_t threads_on(const Group& group, const TiledLaunch& tiled, int axis) {
  int64_t result = 1;
  for (const LoopCuts& cuts : group.cuts) {
    for (const LoopCut& cut : cuts.inside) {
      const std::optional<LoopPlace> place = tiled.place(cut.loop);
      if (place && place->level == Level::kThread && place->axis == axis) result = std::max(result, cut.count);
    }
  }
  return result;
}

/// What options can say of a group's loops.
options::MappingOptions asked(const Group& group, const TiledLaunch& tiled) {
  options::MappingOptions options;
  if (!tiled.complete) return options;
  options.map_to_threads = {threads_on(group, tiled, 0), threads_on(group, tiled, 1)};
  if (const int64_t layers = threads_on(group, tiled, 2); layers > 1) options.map_to_threads.push_back(layers);
  for (size_t m = 0; m < group.part.members.size(); ++m) {
    options.tile.push_back(tile_of(group.cuts[0], group.index(0, m), group.part.members[m].extent));
  }
  // What no verb lays out stays a loop.
  options.unroll = 1;
  for (size_t s = 0; s < group.cuts.size(); ++s) {
    for (const LoopCut& cut : group.cuts[s].inside) {
      if (tiled.unrolled.count(cut.loop) == 0 || tiled.vectors.count(cut.loop) > 0) continue;
      for (const int i : group.part.statements[s].inner) {
        const bool is_inner = group.part.statements[s].statement->indices[static_cast<size_t>(i)] == cut.index;
        if (is_inner) options.unroll = std::max(*options.unroll, cut.count);
      }
    }
  }
  return options;
}

/// Neighbours along the index move together by a loop of so many iterations, which is vectorized.
Result<void> check_vector(const TiledLaunch& tiled, const LoopCuts& cuts, const std::string& index, int64_t vector) {
  bool any = false;
  for (const LoopCut& cut : tiled.of_index(cuts.inside, index)) {
    if (tiled.vectors.count(cut.loop) == 0) continue;
    any = true;
    if (cut.step == 1 && cut.count == vector) continue;
    return fail("'{}' is a vector of {} values in steps of {}; along '{}' vectors have {} neighbours", cut.loop,
                cut.count, cut.step, index, vector);
  }
  if (any || vector == 1 || !tiled.complete) return {};
  return fail("along '{}' threads move vectors of {} neighbours: vectorize such a loop", index, vector);
}

/// Blocks of the members in this order along x, y and z; where there are too many, all along x.
Result<void> check_grid(const Group& group, const TiledLaunch& tiled, const Device& device,
                        const std::vector<std::pair<size_t, int64_t>>& members) {
  std::vector<std::pair<size_t, int64_t>> several;
  std::copy_if(members.begin(), members.end(), std::back_inserter(several),
               [](const auto& member) { return member.second > 1; });
  bool fits = several.size() <= 3;
  for (size_t axis = 0; axis < several.size() && fits; ++axis) fits = several[axis].second <= device.grid[axis];
  for (size_t i = 0; i < several.size(); ++i) {
    for (size_t s = 0; s < group.cuts.size(); ++s) {
      TC_TRY_VOID(tiled.check_blocks(group.cuts[s], group.index(s, several[i].first), fits ? static_cast<int>(i) : 0,
                                     several[i].second));
    }
  }
  return {};
}

Result<void> reason_of(const Reasons& reasons, const char* otherwise) {
  if (!reasons.options.empty()) return fail("{}", reasons.options.back());
  return fail("{}", reasons.part.empty() ? otherwise : reasons.part.back());
}

// --- pointwise ----------------------------------------------------------------------------------------------------

Result<void> check_elements(const Group& group, const TiledLaunch& tiled, const ElementsPlan& plan,
                            const Device& device) {
  const auto along = static_cast<size_t>(plan.along);
  std::vector<std::pair<size_t, int64_t>> blocks = {
      {along, ceil_div(group.part.members[along].extent, plan.covered())}};
  for (size_t m = group.part.members.size(); m-- > 0;) {
    if (m == along) continue;
    blocks.emplace_back(m, ceil_div(group.part.members[m].extent, plan.threads_at(static_cast<int>(m))));
  }
  TC_TRY_VOID(check_grid(group, tiled, device, blocks));
  for (size_t s = 0; s < group.cuts.size(); ++s) {
    const std::vector<LoopCut>& inside = group.cuts[s].inside;
    TC_TRY_VOID(tiled.check_bound(inside, group.index(s, along), {Level::kThread, 0}, plan.threads, plan.vector));
    TC_TRY_VOID(check_vector(tiled, group.cuts[s], group.index(s, along), plan.vector));
    if (plan.beside < 0) continue;
    const std::string& row = group.index(s, static_cast<size_t>(plan.beside));
    TC_TRY_VOID(tiled.check_bound(inside, row, {Level::kThread, 1}, plan.rows, 1));
    if (plan.above < 0) continue;
    const std::string& layer = group.index(s, static_cast<size_t>(plan.above));
    TC_TRY_VOID(tiled.check_bound(inside, layer, {Level::kThread, 2}, plan.layers, 1));
  }
  return {};
}

// --- rows ---------------------------------------------------------------------------------------------------------

/// A row's elements that are used again stay where the verbs hold them.
Result<void> check_places(const TiledLaunch& tiled, const RowsPlan& plan) {
  for (const auto& [name, row] : plan.tensors) {
    const auto held = std::find_if(tiled.buffers.begin(), tiled.buffers.end(),
                                   [&, tensor = name](const TileBuffer& b) { return b.tensor == tensor; });
    const bool said = held != tiled.buffers.end();
    if (!row.of_elements) continue;
    const bool in_registers = plan.holds_elements, in_shared = !in_registers && row.buffer >= 0 && plan.kept > 0;
    if (said && (held->shared ? !in_shared : !in_registers)) {
      return fail("rows of '{}' do not stay in {}", name, held->shared ? "shared memory" : "registers");
    }
    if (said || !row.is_used_again() || !(in_registers || in_shared)) continue;
    return fail("rows of '{}' stay in {}: promote it there at '{}'", name, in_shared ? "shared memory" : "registers",
                tiled.loop);
  }
  return {};
}

Result<void> check_lanes(const Group& group, const TiledLaunch& tiled, const RowsPlan& plan) {
  for (size_t s = 0; s < group.cuts.size(); ++s) {
    const GroupStatement& statement = group.part.statements[s];
    std::vector<std::string> loops;
    for (const int i : loops_of(statement)) loops.push_back(statement.statement->indices[static_cast<size_t>(i)]);
    if (loops.empty()) continue;
    if (loops.size() > 1) {
      return fail("rows of {} go over several indices: {}; threads share rows of one", statement.statement->id,
                  fmt::join(loops, ", "));
    }
    TC_TRY_VOID(tiled.check_bound(group.cuts[s].inside, loops[0], {Level::kThread, 0}, plan.lanes, plan.vector));
    TC_TRY_VOID(check_vector(tiled, group.cuts[s], loops[0], plan.vector));
  }
  return {};
}

Result<void> check_rows(const Group& group, const TiledLaunch& tiled, const RowsPlan& plan, const Device& device) {
  std::vector<std::pair<size_t, int64_t>> blocks;
  for (size_t m = group.part.members.size(); m-- > 0;) {
    blocks.emplace_back(m, ceil_div(group.part.members[m].extent, static_cast<int>(m) == plan.beside ? plan.rows : 1));
  }
  TC_TRY_VOID(check_grid(group, tiled, device, blocks));
  for (size_t s = 0; s < group.cuts.size() && plan.beside >= 0; ++s) {
    const std::string& row = group.index(s, static_cast<size_t>(plan.beside));
    TC_TRY_VOID(tiled.check_bound(group.cuts[s].inside, row, {Level::kThread, 1}, plan.rows, 1));
  }
  TC_TRY_VOID(check_lanes(group, tiled, plan));
  return check_places(tiled, plan);
}

}  // namespace

Result<Launch> pointwise_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                                const std::string& name) {
  TC_TRY(group, group_of(launch, tiled));
  if (!tiled.buffers.empty()) {
    return fail("threads hold their own elements in registers by themselves; '{}' needs no buffer",
                tiled.buffers[0].tensor);
  }
  Reasons reasons;
  options::MappingOptions options = asked(group, tiled);
  for (size_t m = 0; m < options.tile.size(); ++m) {
    const std::optional<LoopCut> threads = tiled.bound(group.cuts[0].inside, group.index(0, m), Level::kThread);
    const bool along = threads && tiled.place(threads->loop)->axis == 0;
    options.register_tile.push_back(along ? std::max<int64_t>(options.tile[m] / threads->count, 1) : 1);
  }
  const std::optional<ElementsPlan> plan = plan_elements(group.part, options, device, reasons);
  if (!plan) TC_TRY_VOID(reason_of(reasons, "threads have no elements of their own"));
  if (tiled.complete) TC_TRY_VOID(check_elements(group, tiled, *plan, device));
  Launch result;
  result.code = pointwise(group.part, *plan, device, name);
  result.kernel.recipe = Recipe::kElements;
  result.kernel.chosen = options_of(*plan, group.part);
  result.kernel.scop = launch;
  result.kernel.grid = result.code.grid;
  result.kernel.block = result.code.block;
  return result;
}

Result<Launch> rows_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                           const std::string& name) {
  TC_TRY(group, group_of(launch, tiled));
  for (const TileBuffer& buffer : tiled.buffers) {
    if (buffer.loop == tiled.loop) continue;
    return fail("rows are those of a tile: promote '{}' at '{}', not at '{}'", buffer.tensor, tiled.loop, buffer.loop);
  }
  options::MappingOptions options = asked(group, tiled);
  options.register_tile.assign(options.tile.size(), 1);
  if (tiled.complete) {
    options.use_shared_memory =
        std::any_of(tiled.buffers.begin(), tiled.buffers.end(), [](const TileBuffer& b) { return b.shared; });
  }
  Reasons reasons;
  std::optional<RowsLaunch> rows = choose_rows(*group.scop, group.part, options, device, name, reasons);
  if (!rows) TC_TRY_VOID(reason_of(reasons, "threads share no rows"));
  if (tiled.complete) TC_TRY_VOID(check_rows(group, tiled, rows->plan, device));
  rows->launch.kernel.scop = launch;
  return std::move(rows->launch);
}

}  // namespace tc::gpu
