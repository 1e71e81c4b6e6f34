#include <algorithm>
#include <numeric>

#include "tc/gpu/strategy/contraction/kernel.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/gpu/strategy/tile_operation.h"
#include "tc/poly/band_ref.h"

/// Products as tile operations: the loops as a ContractionPlan.
namespace tc::gpu {
namespace {

constexpr int64_t kLanesOfSide = 8;  ///< rows (columns) of an atom that a warp's threads have, without registers

const char* text_of(Fill fill) {
  switch (fill) {
    case Fill::kBoxes:
      return "boxes";
    case Fill::kVectors:
      return "vectors";
    case Fill::kElements:
      break;
  }
  return "elements";
}

class Product {
 public:
  Product(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device)
      : launch_(launch), tiled_(tiled), device_(device) {
    // Else a plan of warpgroups might be meant by the same options.
    if (tiled_.operation == TileOperation::kMma) device_.warpgroup_products = 0;
  }

  Result<Launch> run(const std::string& name) {
    TC_TRY_VOID(find());
    TC_TRY_VOID(check_loops());
    TC_TRY_VOID(check_all_in_blocks(launch_, tiled_, cuts_));
    for (const TileBuffer& buffer : tiled_.buffers) TC_TRY_VOID(check_buffer(buffer));
    TC_TRY_VOID(check_persistent());
    Launch launch;
    launch.kernel.scop = launch_;
    // Loops that have not been bound yet may be any thread's.
    if (tiled_.operation == TileOperation::kFma && !tiled_.complete) return launch;
    if (tiled_.complete) TC_TRY_VOID(check_buffers());
    TC_TRY(plan, planned());
    if (tiled_.complete) TC_TRY_VOID(check_stages(plan));
    launch.code = contraction_kernel(launch_, c_, {plan}, name);
    launch.kernel.grid = launch.code.grid;
    launch.kernel.block = launch.code.block;
    launch.kernel.recipe = Recipe::kContraction;
    launch.kernel.anchor = c_.update.id;
    launch.kernel.chosen = options_of(plan);
    launch.kernel.planned_us = plan.cycles / (1e3 * device_.gigahertz);
    return launch;
  }

 private:
  bool by_warpgroups() const { return tiled_.operation == TileOperation::kWgmma; }

  /// The contraction that the launch is.
  Result<void> find() {
    const std::vector<std::string> here = poly::statements_at(launch_, launch_.schedule.root());
    const auto is_here = [&](const poly::Statement& s) { return std::count(here.begin(), here.end(), s.id) > 0; };
    const auto first = std::find_if(launch_.statements.begin(), launch_.statements.end(), is_here);
    const auto at = static_cast<size_t>(first - launch_.statements.begin());
    std::optional<Contraction> found = contraction_at(launch_, at);
    if (!found) return fail("{} begins no product that reads its operands often enough", here.at(0));
    if (found->selection)
      return fail("{} multiplies slices that data select, which no tile operation does", here.at(0));
    const auto count =
        static_cast<size_t>(std::count_if(launch_.statements.begin(), launch_.statements.end(), is_here));
    bool same = found->first == at && found->last - found->first == count;
    for (size_t s = found->first; s < found->last && same; ++s) same = is_here(launch_.statements[s]);
    if (!same) {
      std::vector<std::string> tile;
      for (size_t s = found->first; s < found->last; ++s) tile.push_back(launch_.statements[s].id);
      return fail("one tile has {}, but the launch runs {}", fmt::join(tile, ", "), fmt::join(here, ", "));
    }
    c_ = *std::move(found);
    TC_TRY(cuts, cuts_of(launch_, c_.update.id, tiled_.loop, tiled_.sizes));
    cuts_ = std::move(cuts);
    return {};
  }

  /// What no product has.
  Result<void> check_loops() const {
    int64_t blocks = 1;
    for (const LoopCut& cut : cuts_.outside) {
      const std::optional<LoopPlace> place = tiled_.place(cut.loop);
      if (!place || place->level != Level::kCluster) continue;
      if (!by_warpgroups()) return fail("'{}' is on a cluster; only products by wgmma have any", cut.loop);
      blocks *= cut.count;
    }
    if (blocks > options::kMaxCluster) {
      return fail("a cluster has {} blocks; it may have {}", blocks, options::kMaxCluster);
    }
    for (const LoopCut& cut : cuts_.inside) {
      if (tiled_.unrolled.count(cut.loop) == 0) continue;
      return fail("'{}' is unrolled; a product lays its tile's loops out by itself", cut.loop);
    }
    for (const Axis& axis : c_.reduction) {
      for (const LoopCut& cut : tiled_.of_index(cuts_.outside, axis.name)) {
        if (!tiled_.place(cut.loop)) continue;
        return fail("'{}' goes over the reduction above the tile '{}'; a block has all of its steps", cut.loop,
                    tiled_.loop);
      }
    }
    return {};
  }

  int64_t iterations(const std::vector<LoopCut>& cuts, Level level, int axis) const {
    int64_t result = 1;
    for (const LoopCut& cut : cuts) {
      const std::optional<LoopPlace> place = tiled_.place(cut.loop);
      if (place && place->level == level && place->axis == axis) result *= cut.count;
    }
    return result;
  }

  /// What the options of a contraction can say of the loops.
  options::MappingOptions asked() const {
    options::MappingOptions options;
    const bool by_elements = tiled_.operation == TileOperation::kFma;
    const bool knows_threads = by_elements && tiled_.complete;
    for (const Axis& axis : c_.parallel) {
      options.tile.push_back(tile_of(cuts_, axis.name, axis.extent));
      const std::optional<LoopCut> threads = tiled_.bound(cuts_.inside, axis.name, Level::kThread);
      const std::optional<LoopCut> blocks = tiled_.bound(cuts_.outside, axis.name, Level::kCluster);
      if (knows_threads) {
        options.register_tile.push_back(std::max<int64_t>(options.tile.back() / (threads ? threads->count : 1), 1));
      }
      options.cluster.push_back(blocks ? blocks->count : 1);
    }
    if (knows_threads) {
      for (int axis = 0; axis < 3; ++axis) {
        options.map_to_threads.push_back(iterations(cuts_.inside, Level::kThread, axis));
      }
    }
    if (std::all_of(options.cluster.begin(), options.cluster.end(), [](int64_t blocks) { return blocks == 1; })) {
      options.cluster.clear();
    }
    for (const Axis& axis : c_.reduction) options.tile.push_back(tile_of(cuts_, axis.name, axis.extent));
    options.tensor_cores = !by_elements;
    options.copy_stages = stages();
    if (!tiled_.persistent.empty()) {
      options.persistent = true;
      options.ping_pong = tiled_.teams > 1;
    }
    if (by_warpgroups() && tiled_.complete) {
      options.store_boxes = std::any_of(tiled_.buffers.begin(), tiled_.buffers.end(),
                                        [&](const TileBuffer& buffer) { return is_staged_result(buffer); });
    }
    return options;
  }

  /// Whether results are staged there, from where boxes store them.
  bool is_staged_result(const TileBuffer& buffer) const {
    const auto is = [&](const StoredTensor& stored) { return stored.tensor == buffer.tensor; };
    return buffer.shared && std::any_of(c_.stored.begin(), c_.stored.end(), is);
  }

  /// As the verbs say; where they have not yet said it, nothing.
  std::optional<int64_t> stages() const {
    int64_t most = 0;
    for (const TileBuffer& buffer : tiled_.buffers) {
      if (buffer.shared && !is_staged_result(buffer)) most = std::max(most, buffer.stages);
    }
    const bool known = tiled_.complete || most > 1;
    return known ? std::optional(std::max<int64_t>(most, 1)) : std::nullopt;
  }

  Result<ContractionPlan> planned() {
    constexpr size_t kAsked = 64;  // plans of one tile
    const options::MappingOptions options = asked();
    std::optional<Error> first;
    for (ContractionPlan& plan : best_plans(c_, options, device_, kAsked)) {
      if (by_warpgroups() != plan.by_warpgroups()) continue;
      if (by_warpgroups()) take_group(plan);
      const Result<void> checked = check(plan);
      if (checked) return std::move(plan);
      if (!first) first = checked.error();
    }
    if (first) return tl::unexpected(*first);
    // There is none, or none is known to be among the best: this one says why.
    Result<ContractionPlan> plan =
        by_warpgroups() ? plan_warpgroups(c_, options, device_) : plan_contraction(c_, options, device_);
    if (!plan) return no_plan(options, plan.error());
    if (by_warpgroups()) {
      take_group(*plan);
      TC_TRY_VOID(check(*plan));
    }
    return plan;
  }

  Result<ContractionPlan> no_plan(const options::MappingOptions& options, const Error& why) const {
    return fail("no tile of {} by {}: {}", fmt::join(options.tile, " x "), text_of(tiled_.operation),
                why.diagnostics().at(0).message);
  }

  Result<void> check(const ContractionPlan& plan) const {
    if (by_warpgroups()) {
      TC_TRY_VOID(check_warpgroups(plan));
      TC_TRY_VOID(check_groups_of_blocks(plan));
      return {};
    }
    if (plan.tensor_cores) {
      TC_TRY_VOID(check_warps(plan));
    } else {
      TC_TRY_VOID(check_threads(plan));
    }
    return check_blocks(plan);
  }

  const std::string& name_of(size_t axis) const { return c_.parallel[axis].name; }

  /// Groups of threads (warps) that share a step have runs of its values.
  Result<void> check_groups(const ContractionPlan& plan, Level level) const {
    return tiled_.check_bound(cuts_.inside, c_.reduction[plan.main].name, {level, 2}, plan.groups,
                              plan.chunk[plan.main] / plan.groups);
  }

  /// A thread has groups of neighbours, as far apart as there are threads.
  Result<void> check_threads(const ContractionPlan& plan) const {
    for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
      const AxisPlan& a = plan.parallel[axis];
      const std::optional<LoopCut> here = tiled_.bound(cuts_.inside, name_of(axis), Level::kThread);
      const int along = here ? tiled_.place(here->loop)->axis : 0;
      TC_TRY_VOID(tiled_.check_bound(cuts_.inside, name_of(axis), {Level::kThread, along}, a.threads(), a.group));
    }
    return check_groups(plan, Level::kThread);
  }

  /// Warps are beside each other within a register's rows and columns (tensor_cores.h).
  Result<void> check_warps(const ContractionPlan& plan) const {
    constexpr int64_t kRowThreads = 8, kColumnThreads = 4;
    const TensorCores& cores = *plan.tensor_cores;
    const auto check_side = [&](const std::vector<size_t>& axes, int64_t threads, int along) -> Result<void> {
      for (size_t axis : axes) {
        const int64_t here = plan.parallel[axis].threads();
        if (here == 1) continue;
        if (here % threads != 0) return fail("warps share '{}' with another index", name_of(axis));
        TC_TRY_VOID(
            tiled_.check_bound(cuts_.inside, name_of(axis), {Level::kWarp, along}, here / threads, kLanesOfSide));
      }
      return {};
    };
    TC_TRY_VOID(check_side(cores.columns, kColumnThreads, 0));
    TC_TRY_VOID(check_side(cores.rows, kRowThreads, 1));
    return check_groups(plan, Level::kWarp);
  }

  Result<void> check_warpgroups(const ContractionPlan& plan) const {
    const TensorCores& cores = *plan.tensor_cores;
    constexpr int64_t kRows = tile::WarpgroupAtom::kM;
    int64_t faster = 1;  // rows of a block along the axes before
    for (size_t axis : cores.rows) {
      const int64_t slower = faster * plan.parallel[axis].tile, first = std::max(faster, kRows);
      // Instructions beside each other are as far apart as all warpgroups have rows.
      const int64_t count = std::max<int64_t>(std::min(slower, kRows * cores.warpgroups) / first, 1);
      TC_TRY_VOID(tiled_.check_bound(cuts_.inside, name_of(axis), {Level::kWarpgroup, 0}, count, first / faster));
      faster = slower;
    }
    for (size_t axis : cores.columns) {
      const std::optional<LoopCut> here = tiled_.bound(cuts_.inside, name_of(axis), Level::kWarpgroup);
      if (here) return fail("'{}' is on warpgroups, each of which has all columns of a tile", here->loop);
    }
    return {};
  }

  /// Blocks along x, y and z, the fastest axis first; where there are too many, all along x.
  Result<void> check_blocks(const ContractionPlan& plan) const {
    constexpr int64_t kMostInYZ = 65535;
    std::vector<size_t> axes;
    bool fits = true;
    for (size_t axis : plan.order) {
      if (plan.parallel[axis].blocks == 1) continue;
      fits = fits && (axes.empty() || plan.parallel[axis].blocks <= kMostInYZ);
      axes.push_back(axis);
    }
    fits = fits && axes.size() <= 3;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int along = fits ? static_cast<int>(i) : 0;
      TC_TRY_VOID(tiled_.check_blocks(cuts_, name_of(axes[i]), along, plan.parallel[axes[i]].blocks));
    }
    return {};
  }

  size_t axis_of(const std::string& index) const {
    const auto found =
        std::find_if(c_.parallel.begin(), c_.parallel.end(), [&](const Axis& axis) { return axis.name == index; });
    return static_cast<size_t>(found - c_.parallel.begin());
  }

  /// The loops on blocks as digits of a block's number, the fastest first.
  std::vector<BlockDigit> digits(const ContractionPlan& plan) const {
    std::vector<BlockDigit> result;
    for (auto cut = cuts_.outside.rbegin(); cut != cuts_.outside.rend(); ++cut) {
      const size_t axis = axis_of(cut->index);
      if (axis == c_.parallel.size() || cut->count == 1) continue;
      result.push_back({axis, cut->count, cut->step / plan.parallel[axis].tile});
    }
    return result;
  }

  /// How many rows of blocks go before the next column is for the loops to say, if it divides all.
  void take_group(ContractionPlan& plan) const {
    const TensorCores& cores = *plan.tensor_cores;
    const auto is_row = [&](size_t axis) { return std::count(cores.rows.begin(), cores.rows.end(), axis) > 0; };
    const int64_t clusters = plan.parallel[cores.columns[0]].cluster;
    int64_t rows = 1;
    for (const BlockDigit& digit : digits(plan)) {
      if (!is_row(digit.axis) && !(digit.scale == 1 && digit.count == clusters && clusters > 1)) break;
      if (is_row(digit.axis)) rows *= digit.count;
    }
    if (tiled_.complete && blocks_of(cores.rows, plan) % rows == 0) plan.row_blocks = rows;
  }

  Result<void> check_groups_of_blocks(const ContractionPlan& plan) const {
    for (const LoopCut& cut : cuts_.outside) {
      if (axis_of(cut.index) == c_.parallel.size()) continue;
      const std::optional<LoopPlace> place = tiled_.place(cut.loop);
      if (!place && tiled_.complete && cut.count > 1) {
        return fail("'{}' stands above the tile '{}' and is not bound to blocks", cut.loop, tiled_.loop);
      }
      if (!place || place->level == Level::kCluster) continue;
      if (place->level == Level::kBlock && place->axis == 0) continue;
      return fail("'{}' is on {}; blocks of warpgroups are on block.x", cut.loop, text_of(*place));
    }
    if (!tiled_.complete) return {};
    const std::vector<BlockDigit> said = digits(plan), planned = block_digits(plan);
    if (said == planned) return {};
    const auto text = [&](const std::vector<BlockDigit>& of) {
      std::vector<std::string> loops;
      for (auto digit = of.rbegin(); digit != of.rend(); ++digit) {
        loops.push_back(fmt::format("{} by {} tiles of '{}'", digit->count, digit->scale, name_of(digit->axis)));
      }
      return fmt::format("{}", fmt::join(loops, ", "));
    };
    return fail("the loops on blocks are {}; in the order of a cluster, rows, columns and rows again they are {}",
                text(said), text(planned));
  }

  /// The innermost loop on blocks, where a block's sums begin and end; empty: there is one block.
  std::string loop_of_sums() const {
    std::string result;
    for (const LoopCut& cut : cuts_.outside) {
      if (axis_of(cut.index) < c_.parallel.size()) result = cut.loop;
    }
    return result;
  }

  /// Blocks go on from the innermost loop that they have.
  Result<void> check_persistent() const {
    if (tiled_.persistent.empty()) return {};
    if (!by_warpgroups()) return fail("'{}' cannot persist; only products by wgmma can", tiled_.persistent);
    for (const LoopCut& cut : cuts_.outside) {
      const std::optional<LoopPlace> place = tiled_.place(cut.loop);
      if (!place || place->level != Level::kCluster) continue;
      return fail("'{}' is on a cluster, whose blocks have one tile each: none persist", cut.loop);
    }
    const std::string wanted = loop_of_sums();
    if (wanted == tiled_.persistent) return {};
    if (wanted.empty()) return fail("'{}' cannot persist: there is one block", tiled_.persistent);
    return fail("blocks persist at the innermost loop on them, which is '{}' and not '{}'", wanted, tiled_.persistent);
  }

  /// Operands come to shared memory for each step; sums are in registers.
  Result<void> check_buffers() const {
    const auto has = [&](const std::string& tensor, bool shared) {
      return std::any_of(tiled_.buffers.begin(), tiled_.buffers.end(),
                         [&](const TileBuffer& buffer) { return buffer.tensor == tensor && buffer.shared == shared; });
    };
    for (const Operand& operand : c_.operands) {
      if (has(operand.tensor, true)) continue;
      return fail("operands are in shared memory: promote '{}' there at '{}'", operand.tensor, cuts_.above);
    }
    if (!loop_of_sums().empty() && !has(c_.update.tensor, false)) {
      return fail("sums are in registers: promote '{}' there at '{}'", c_.update.tensor, loop_of_sums());
    }
    return {};
  }

  Result<void> check_stages(const ContractionPlan& plan) const {
    for (const TileBuffer& buffer : tiled_.buffers) {
      if (!buffer.shared || is_staged_result(buffer) || plan.all_ahead || buffer.stages == plan.stages) continue;
      return fail("all operands have {} stages; '{}' has {}", plan.stages, buffer.tensor, buffer.stages);
    }
    return {};
  }

  Result<void> check_buffer(const TileBuffer& buffer) const {
    const bool is_operand = std::any_of(c_.operands.begin(), c_.operands.end(),
                                        [&](const Operand& operand) { return operand.tensor == buffer.tensor; });
    if (!buffer.shared) {
      if (buffer.tensor != c_.update.tensor) return fail("a product has no sums in '{}'", buffer.tensor);
      const std::string wanted = loop_of_sums();
      if (wanted.empty() || buffer.loop == wanted) return {};
      return fail("sums are those of a block: promote '{}' at '{}', not at '{}'", buffer.tensor, wanted, buffer.loop);
    }
    if (is_staged_result(buffer)) {
      const std::string wanted = loop_of_sums();
      if (!by_warpgroups() || buffer.fill != Fill::kBoxes) return fail("boxes of wgmma store '{}'", buffer.tensor);
      if (wanted.empty() || buffer.loop == wanted) return {};
      return fail("results are those of a block: promote '{}' at '{}', not at '{}'", buffer.tensor, wanted,
                  buffer.loop);
    }
    if (!is_operand) return fail("'{}' is no operand of the product", buffer.tensor);
    if (buffer.loop != cuts_.above) {
      return fail("operands come for each tile: promote '{}' at '{}', not at '{}'", buffer.tensor, cuts_.above,
                  buffer.loop);
    }
    const Fill wanted = by_warpgroups() ? Fill::kBoxes : Fill::kVectors;
    if (buffer.fill == wanted) return {};
    return fail("{} takes operands that come in {}; '{}' comes in {}", text_of(tiled_.operation), text_of(wanted),
                buffer.tensor, text_of(buffer.fill));
  }

  const poly::Scop& launch_;
  const TiledLaunch& tiled_;
  Device device_;
  Contraction c_;
  LoopCuts cuts_;
};

}  // namespace

Result<Launch> product_launch(const poly::Scop& launch, const TiledLaunch& tiled, const Device& device,
                              const std::string& name) {
  return Product(launch, tiled, device).run(name);
}

}  // namespace tc::gpu
