#include "tc/gpu/strategy/contraction/plan_stream_warpgroups.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tc/gpu/strategy/contraction/planner.h"
#include "tc/gpu/strategy/contraction/slab_range.h"
#include "tc/gpu/strategy/contraction/tile_reductions.h"
#include "tc/support/round.h"
#include "tc/tile/matrix_descriptor.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

/// Values of a reduction that products of warpgroups multiply, zeros behind it among them.
int64_t filled(const Contraction& c, const ContractionPlan& plan) {
  return round_up(c.reduction[plan.main].extent, values_of_slice(c.operands[0]));
}

class WarpgroupStreams {
 public:
  WarpgroupStreams(const Chain& chain, const StreamOptions& options, double instructions, const Device& device)
      : chain_(chain),
        link_(chain.links[0]),
        first_(chain.products[0]),
        second_(chain.products[1]),
        options_(options.second),
        device_(device),
        instructions_(instructions),
        planner_of_first_(first_, options.first, device),
        planner_of_second_(second_, options_, device),
        slab_axis_(slab_axis_of(link_)),
        shares_(chain) {}

  std::vector<StreamPlan> run() {
    std::optional<TensorCores> first = planner_of_first_.warpgroup_cores();
    std::optional<TensorCores> second = planner_of_second_.warpgroup_cores();
    if (!first || !second || !may_stay(*first) || !fit_together(*first, *second)) return {};
    *first = in_order_of_boxes(first_, planner_of_first_.main(), std::move(*first));
    second->rows.clear();
    for (size_t axis : first->rows) second->rows.push_back(*row_of_second(link_, axis));
    for (const int64_t slab : {64, 96, 128, 192, 256}) add(slab, *first, *second);
    return std::move(found_);
  }

 private:
  /// Whether the first product's operand without columns may stay in a block.
  bool may_stay(const TensorCores& cores) const {
    constexpr int64_t kLeast = 16, kMost = 256;  // values of the reduction: there is room for no more
    const Operand& held = first_.operands[cores.a];
    const int64_t values = first_.reduction[planner_of_first_.main()].extent;
    const auto is_one = [&](const Axis& axis) {
      return &axis == &first_.reduction[planner_of_first_.main()] || axis.extent == 1;
    };
    return values >= kLeast && values <= kMost &&
           std::all_of(first_.reduction.begin(), first_.reduction.end(), is_one) && !held.chosen_row &&
           !held.computed && held.inside.empty() && !first_.selection && !second_.selection && first_.further.empty() &&
           second_.further.empty();
  }

  /// Whether what threads have of the first product is what they hold of the second one's operand.
  bool fit_together(const TensorCores& a, const TensorCores& b) const {
    if (a.columns != std::vector<size_t>{slab_axis_} || b.a != link_.operand || b.columns.size() != 1) return false;
    if (a.rows.size() != b.rows.size() || second_.operands[link_.operand].type.bytes() != 2) return false;
    return std::all_of(a.rows.begin(), a.rows.end(), [&](size_t axis) {
      const std::optional<size_t> row = row_of_second(link_, axis);
      return row && std::find(b.rows.begin(), b.rows.end(), *row) != b.rows.end();
    });
  }

  /// The plans with so many columns in a slab.
  void add(int64_t slab, const TensorCores& first, const TensorCores& second) {
    constexpr int64_t kGroup = 2, kMostColumns = 256, kWarpgroups = 3;
    const Axis& columns = second_.parallel[second.columns[0]];
    const int64_t of_second = round_up(columns.extent, int64_t{tile::WarpgroupAtom::kStepN});
    if (first_.parallel[slab_axis_].extent <= slab || of_second > kMostColumns) return;
    std::vector<int64_t> wanted(first_.parallel.size(), 0);
    for (size_t axis : first.rows) wanted[axis] = planner_of_second_.request().tile[*row_of_second(link_, axis)];
    wanted[slab_axis_] = slab;
    for (const WarpgroupShape& shape : warpgroup_shapes(first_, planner_of_first_.main(), first, wanted)) {
      if (shape.group != kGroup || shape.columns != std::vector<int64_t>{slab}) continue;
      const int64_t reduced = first_.reduction[planner_of_first_.main()].extent;
      const int64_t step = round_up(reduced, row_of(first_.operands[0]));
      WarpgroupShape of_second_shape = shape;
      of_second_shape.columns = {of_second};
      of_second_shape.group = group_of(of_second);
      const std::optional<ContractionPlan> plan = planner_of_second_.in_stream(of_second_shape, second, slab, true);
      if (!plan) continue;
      for (const bool holds : {true, false}) {
        if (holds ? options_.use_shared_memory.value_or(false) : options_.use_private_memory.value_or(false)) continue;
        const std::optional<ContractionPlan> of_first = planner_of_first_.in_stream(shape, first, step, holds);
        if (!of_first || of_first->tensor_cores->warpgroups > kWarpgroups || !same_rows(*of_first, *plan)) continue;
        for (const int64_t stages : {4, 3, 2}) add(*of_first, *plan, stages);
      }
    }
  }

  static bool is_held(const ContractionPlan& first) { return first.operands[first.tensor_cores->a].kept; }

  /// Columns of a thread beside each other: vectors of 16 bytes of 16-bit results.
  int64_t group_of(int64_t columns) const {
    constexpr int64_t kWide = 8, kPair = 2, kThreads = 4;
    const Halide::Type stored = second_.after.empty() ? second_.update.accumulator : second_.after.back().value.type();
    return stored.bytes() <= 2 && columns % (kWide * kThreads) == 0 ? kWide : kPair;
  }

  bool same_rows(const ContractionPlan& first, const ContractionPlan& second) const {
    const bool same = std::all_of(link_.dimensions.begin(), link_.dimensions.end(), [&](const auto& d) {
      const AxisPlan &x = first.parallel[d.made_by], &y = second.parallel[d.read_by];
      return !d.is_row || (x.tile == y.tile && x.registers == y.registers && x.blocks == y.blocks);
    });
    return same && first.threads() == second.threads() &&
           std::all_of(first_.reductions.begin(), first_.reductions.end(), [&](const TileReduction& reduction) {
             const std::optional<ThreadReduction> threads = thread_reduction(first, reduction);
             return threads && threads->slots == 1;
           });
  }

  /// The second product's sums are there all the time, and so is the first one's operand if threads hold it. Sums of a
  /// slab become operands one after the other.
  int64_t registers_of(const ContractionPlan& first, const ContractionPlan& second) const {
    constexpr int64_t kOthers = 26, kOfHeld = 6, kHeld = 4;  // values of the reduction that take a register of a thread
    constexpr int64_t kOnline = 6;  // of two rows: what is reduced, what points read, a correction
    const int64_t held = is_held(first) ? filled(first_, first) / kHeld + kOfHeld : 0;
    return (chain_.online ? kOnline : 0) + first.registers() + second.registers() + held + kOthers;
  }

  int64_t shared_bytes(const ContractionPlan& first, const ContractionPlan& second) const {
    int64_t end = 0;
    const auto allocate = [&](const Contraction& c, const ContractionPlan& plan) {
      end = round_up(end, tile::kSwizzledAlignment) + second.stages * step_bytes(c, plan);
    };
    allocate(first_, first);
    allocate(second_, second);
    int64_t barriers = 2 * second.stages;
    if (!is_held(first)) {
      const size_t a = first.tensor_cores->a;
      end = round_up(end, tile::kSwizzledAlignment) + first.operands[a].stage * first_.operands[a].type.bytes();
      barriers += 2;
    }
    return end + barriers * tile::RingBarriers::kBytes;
  }

  static int64_t step_bytes(const Contraction& c, const ContractionPlan& plan) {
    const size_t b = plan.tensor_cores->b;
    return plan.operands[b].stage * c.operands[b].type.bytes();
  }

  /// Of a step's boxes, what comes from memory: rows that a tensor does not fill end in zeros. Rows come in pieces of
  /// 64 bytes, in which they begin anywhere.
  static double fetched_bytes(const Contraction& c, const ContractionPlan& plan) {
    constexpr int64_t kPiece = 64;
    const Operand& o = c.operands[plan.tensor_cores->b];
    const int64_t row = o.extents.back() * o.type.bytes();
    const int64_t filled = round_up(o.extents.back(), row_of(o)) * o.type.bytes();
    const int64_t touched = std::min(filled, row + kPiece - std::gcd(row, kPiece));
    return static_cast<double>(step_bytes(c, plan)) * static_cast<double>(touched) / static_cast<double>(filled);
  }

  void add(ContractionPlan first, ContractionPlan second, int64_t stages) {
    if (stages > std::max<int64_t>(second.steps(second_), 2)) return;
    if (options_.copy_stages && *options_.copy_stages != stages) return;
    first.stages = second.stages = stages;
    // A warpgroup alone has registers enough.
    first.gives_registers = second.gives_registers = second.tensor_cores->warpgroups > 1;
    int64_t registers = registers_of(first, second);
    if (registers > most_registers(second)) return;
    // The operand that is multiplied, and the one that is made. A slab is released when the next one is half done.
    constexpr int64_t kLeastStages = 3;
    const int64_t with_two_operands = registers + first.registers() / 2;
    const bool overlaps = stages >= kLeastStages && with_two_operands <= most_registers(second);
    if (overlaps) registers = with_two_operands;
    const int64_t bytes = shared_bytes(first, second);
    if (bytes > std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes)) return;
    for (const bool persistent : {false, true}) {
      if (persistent != options_.persistent.value_or(persistent) || (persistent && !may_persist(first))) continue;
      ContractionPlan of_first = first, of_second = second;
      const int64_t resident = resident_blocks(second, registers, bytes);
      if (persistent) of_first.grid = of_second.grid = resident * device_.processors;
      if (persistent && of_first.grid >= tiles_of(first)) continue;
      estimate(of_first, of_second, resident, overlaps);
      StreamPlan plan{.cycles = of_first.cycles + of_second.cycles};
      plan.plan.plans = {std::move(of_first), std::move(of_second)};
      plan.plan.in_ring = true;
      plan.plan.overlaps = overlaps;
      plan.plan.buffers.bytes = bytes;
      found_.push_back(std::move(plan));
    }
  }

  /// Whether blocks may go through several tiles of rows: turns of the rings are counted in whole tiles, and boxes
  /// bring all that is multiplied.
  bool may_persist(const ContractionPlan& first) { return !is_held(first) && shares_.of(first) == 1; }

  int64_t tiles_of(const ContractionPlan& first) const {
    int64_t result = 1;
    for (size_t axis = 0; axis < first.parallel.size(); ++axis) {
      if (axis != slab_axis_) result *= first.parallel[axis].blocks;
    }
    return result;
  }

  /// Blocks that a processor has room for.
  static int64_t resident_blocks(const ContractionPlan& second, int64_t registers, int64_t bytes) {
    constexpr int64_t kProcessorShared = 228 * 1024, kOfBlock = 1024, kThreads = 2048;
    const int64_t threads = second.block_threads();
    const int64_t by_registers = second.gives_registers ? 1 : blocks_by_registers(registers, threads);
    return std::max<int64_t>(1, std::min({by_registers, kProcessorShared / (bytes + kOfBlock), kThreads / threads}));
  }

  /// Blocks of a processor: warps are dealt out to its parts, each of which has registers of its own.
  static int64_t blocks_by_registers(int64_t registers, int64_t threads) {
    constexpr int64_t kLanes = 32, kParts = 4, kOfPart = 16384, kUnit = 8;
    const int64_t warps = kOfPart / (round_up(registers, kUnit) * kLanes) * kParts;
    return warps / ceil_div(threads, kLanes);
  }

  /// A warpgroup waits for its products, then for its points. Others of the processor multiply in the meantime: the
  /// more there are, the less it shows. The constants are fitted to 179 plans of attention on an H200, of 197 x 64 to
  /// 4096 x 128; they leave an error of 9 %. Of the plans of ten shapes the best by estimate took 1.03 times the least.
  void estimate(ContractionPlan& first, ContractionPlan& second, int64_t resident, bool overlaps) {
    constexpr double kStart = 1700, kStartAlone = 4900, kNextTile = 1100, kSlab = 450, kAlone = 225;  // cycles
    constexpr double kMultiply = 1.04, kIssue = 0.79, kResultInstructions = 24;
    constexpr double kBranch = 27;                     // of a point in a slab with columns beyond the end
    constexpr double kNarrow = 64, kCrowded = 1.06;    // columns of a slab
    constexpr double kShared = 1.05, kOverlaps = 0.2;  // how well products and points hide each other
    constexpr double kLineBytes = 62, kCrookedBytes = 31, kOneAhead = 1.25;  // bytes of a cycle
    const double each = std::ceil(static_cast<double>(tiles_of(first)) / static_cast<double>(device_.processors));
    const double together = std::min(static_cast<double>(resident), each), waves = std::ceil(each / together);
    const double warpgroups = together * static_cast<double>(second.tensor_cores->warpgroups);
    const auto slab = static_cast<double>(second.chunk[second.main]);
    const double slabs = static_cast<double>(second.steps(second_)) * shares_.of(first);
    const auto multiplied = [&](double columns, double reduced) {
      return kMultiply * warpgroups * tile::WarpgroupAtom::kM * columns * reduced / device_.warpgroup_products;
    };
    const double made = multiplied(slab, static_cast<double>(filled(first_, first)));
    const double read = multiplied(static_cast<double>(tile_of(second.tensor_cores->columns, second)), slab);
    const bool is_partial = first_.parallel[slab_axis_].extent % second.chunk[second.main] != 0;
    const double instructions =
        instructions_of_slab(chain_, first, second, instructions_) + (is_partial ? kBranch / slabs : 0);
    // Threads of a warpgroup alone have few registers to spare beside 64 sums, if several blocks are to run.
    const double issue = kIssue * (second.tensor_cores->warpgroups == 1 && slab > kNarrow ? kCrowded : 1);
    const double points = issue * warpgroups * static_cast<double>(first.registers()) * instructions;
    const double all = made + read;
    const double power = 1 + kShared * std::log(warpgroups) + (overlaps ? kOverlaps : 0);
    const double alone = (overlaps ? made + std::max(read, points) : all + points) + kAlone;
    const double work = warpgroups > 1 ? together_by(power, all, points) : alone;
    double copied = 0;
    for (const auto& [c, plan] : {std::pair{&first_, &first}, std::pair{&second_, &second}}) {
      const Operand& o = c->operands[plan->tensor_cores->b];
      copied += together * fetched_bytes(*c, *plan) / (lies_in_lines(o) ? kLineBytes : kCrookedBytes);
    }
    const bool one_ahead = second.stages - (overlaps ? 2 : 1) == 1;
    const double step = together_by(3, work, copied * (one_ahead ? kOneAhead : 1)) + kSlab;
    const double results = warpgroups * static_cast<double>(second.registers()) * kResultInstructions;
    first.cycles = waves * slabs * step * (made + points) / (all + points);
    // Other blocks of the processor multiply while one starts.
    const double start = together > 1 ? kStart : kStartAlone;
    // The boxes of a persistent block's next tile come while it finishes the one before.
    const double starts = second.grid > 0 ? start + (waves - 1) * kNextTile : waves * start;
    second.cycles = waves * (slabs * step * read / (all + points) + results) + starts;
  }

  static double together_by(double power, double a, double b) {
    return std::pow(std::pow(a, power) + std::pow(b, power), 1 / power);
  }

  const Chain& chain_;
  const ChainLink& link_;
  const Contraction &first_, &second_;
  const options::MappingOptions& options_;
  const Device& device_;
  const double instructions_;
  Planner planner_of_first_, planner_of_second_;
  const size_t slab_axis_;
  SlabShares shares_;
  std::vector<StreamPlan> found_;
};

}  // namespace

std::optional<bool> stays_in_shared_memory(const ChainPlan& plan) {
  const ContractionPlan& first = plan.plans[0];
  if (!first.by_warpgroups()) return std::nullopt;
  return !first.operands[first.tensor_cores->a].kept;
}

std::vector<StreamPlan> streams_by_warpgroups(const Chain& chain, const StreamOptions& options, double instructions,
                                              const Device& device) {
  return WarpgroupStreams(chain, options, instructions, device).run();
}

}  // namespace tc::gpu
