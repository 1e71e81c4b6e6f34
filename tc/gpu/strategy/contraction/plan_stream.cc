#include <algorithm>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/plan_stream_warpgroups.h"
#include "tc/gpu/strategy/contraction/planner.h"
#include "tc/gpu/strategy/contraction/requested_tile.h"
#include "tc/gpu/strategy/contraction/slab_range.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/stream.h"
#include "tc/gpu/strategy/contraction/tile_reductions.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;

constexpr int64_t kRowThreads = 8, kColumnThreads = 4, kOfAtom = 8;  // of a warp; columns

/// Whether all copies are asynchronous, of elements that lie in memory, from rows as the tensor has them.
bool copies_vectors(const Contraction& c, const ContractionPlan& plan) {
  return plan.asynchronous && plan.left(c) == 0 && !has_computed(c) &&
         std::none_of(plan.operands.begin(), plan.operands.end(),
                      [](const OperandPlan& o) { return o.merged + 1 < o.box.size(); });
}

/// Registers of a thread along the columns.
int64_t columns_of(const ContractionPlan& plan) {
  int64_t result = 1;
  for (size_t axis : plan.tensor_cores->columns) result *= plan.parallel[axis].registers;
  return result;
}

class StreamPlanner {
 public:
  StreamPlanner(const ir::Program& program, const Chain& chain, const StreamOptions& options, const Device& device)
      : chain_(chain),
        link_(chain.links[0]),
        first_(chain.products[0]),
        second_(chain.products[1]),
        options_(options.second),
        of_first_(without_tile_sizes(options.first)),
        device_(device),
        planner_of_first_(first_, of_first_, device),
        planner_of_second_(second_, options_, device),
        slab_axis_(slab_axis_of(link_)),
        instructions_(instructions_of_point(program, first_)),
        shares_(chain) {}

  std::optional<ChosenChain> run() {
    for (const int64_t warps : {1, 2, 4, 8}) {
      for (const int64_t row_registers : {2, 4}) {
        for (const int64_t slab : {16, 32, 64, 128}) add(warps, row_registers, slab);
      }
    }
    add_warpgroups();
    if (found_.empty()) return std::nullopt;
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.cycles < b.cycles; });
    ChosenChain result{.chain = chain_, .plan = std::move(found_[0].plan), .anchor = 1};
    result.anchors.push_back(result.plan.plans[1]);
    for (size_t i = 1; i < found_.size(); ++i) result.anchors.push_back(std::move(found_[i].plan.plans[1]));
    return result;
  }

 private:
  /// Sizes that are a warpgroup's ask for warpgroups: warps have no plan of these sizes then.
  void add_warpgroups() {
    std::vector<StreamPlan> plans = streams_by_warpgroups(chain_, {of_first_, options_}, instructions_, device_);
    std::erase_if(found_, [&](const StreamPlan& by_warps) {
      return std::any_of(plans.begin(), plans.end(), [&](const StreamPlan& other) {
        return has_sizes_of(by_warps.plan.plans[1], other.plan.plans[1]);
      });
    });
    for (StreamPlan& plan : plans) found_.push_back(std::move(plan));
  }

  static bool has_sizes_of(const ContractionPlan& a, const ContractionPlan& b) {
    return a.chunk == b.chunk && std::equal(a.parallel.begin(), a.parallel.end(), b.parallel.begin(), b.parallel.end(),
                                            [](const AxisPlan& x, const AxisPlan& y) {
                                              return x.tile == y.tile && x.registers == y.registers;
                                            });
  }

  /// The plan of so many warps along the rows, each with 16 or 32 of them, and of so many columns in a slab.
  void add(int64_t warps, int64_t row_registers, int64_t slab) {
    const int64_t columns = first_.parallel[slab_axis_].extent;
    int64_t of_second = 1;
    for (size_t axis = 0; axis < second_.parallel.size(); ++axis) {
      const bool is_row = std::any_of(link_.dimensions.begin(), link_.dimensions.end(),
                                      [&](const auto& d) { return d.is_row && d.read_by == axis; });
      if (!is_row) of_second *= second_.parallel[axis].extent;
    }
    constexpr int64_t kMostColumns = 256;  // whose sums registers have room for
    if (columns <= slab || of_second > kMostColumns) return;
    AtomShape shape{.row_threads = warps * kRowThreads, .row_registers = row_registers, .groups = 1};
    shape.column_registers = slab / kColumnThreads;
    constexpr int64_t kSlice = 16;
    shape.chunk = round_up(first_.reduction[planner_of_first_.main()].extent, kSlice);
    std::optional<ContractionPlan> first = planner_of_first_.in_stream(shape, std::nullopt);
    if (!first || first->steps(first_) != 1 || !copies_vectors(first_, *first)) return;
    shape.column_registers = round_up(of_second, kOfAtom) / kColumnThreads;
    shape.chunk = slab;
    std::optional<ContractionPlan> second = planner_of_second_.in_stream(shape, link_.operand);
    if (!second || !copies_vectors(second_, *second) || !fit_together(*first, *second)) return;
    planner_of_first_.lay_out_apart(*first);
    planner_of_second_.lay_out_apart(*second);
    if (std::optional<StreamPlan> plan = finished(*std::move(first), *std::move(second)))
      found_.push_back(*std::move(plan));
  }

  /// Whether warps have the same rows in both products, all columns of a slab, and all of the second one's.
  bool fit_together(const ContractionPlan& first, const ContractionPlan& second) const {
    const TensorCores &a = *first.tensor_cores, &b = *second.tensor_cores;
    if (a.columns != std::vector<size_t>{slab_axis_} || b.a != link_.operand || second.main != 0) return false;
    if (a.atom != b.atom || a.rows.size() != b.rows.size() || first.threads() != second.threads()) return false;
    if (bytes_of(a.atom->operand) != 2) return false;  // a thread's operands of TF32 lie in other columns than its sums
    if (first.parallel[slab_axis_].threads() != kColumnThreads ||
        first.parallel[slab_axis_].tile != second.chunk[second.main]) {
      return false;
    }
    for (size_t i = 0; i < a.rows.size(); ++i) {
      if (row_of_second(link_, a.rows[i]) != b.rows[i]) return false;
    }
    std::vector<bool> is_row(second.parallel.size(), false);
    for (const ChainLink::Dimension& d : link_.dimensions) {
      if (!d.is_row) continue;
      const AxisPlan &x = first.parallel[d.made_by], &y = second.parallel[d.read_by];
      if (x.tile != y.tile || x.registers != y.registers || x.group != y.group || x.blocks != y.blocks) return false;
      is_row[d.read_by] = true;
    }
    int64_t column_threads = 1;
    for (size_t axis = 0; axis < is_row.size(); ++axis) {
      if (is_row[axis]) continue;
      if (second.parallel[axis].blocks != 1) return false;
      column_threads *= second.parallel[axis].threads();
    }
    if (column_threads != kColumnThreads) return false;
    return std::all_of(first_.reductions.begin(), first_.reductions.end(), [&](const TileReduction& reduction) {
      const std::optional<ThreadReduction> threads = thread_reduction(first, reduction);
      return threads && threads->slots == 1;
    });
  }

  /// The sums of the second product are there all the time. To the slab's come fragments of the first one's operands;
  /// later the slab is operands, of which two fill a register, and fragments of the second one's other operand come.
  int64_t registers_of(const ContractionPlan& first, const ContractionPlan& second) const {
    constexpr int64_t kOthers = 36, kOnline = 3;  // of each row: what is reduced, what points read, a correction
    const auto rows = [](const ContractionPlan& plan) { return plan.registers() / columns_of(plan); };
    const int64_t making = first.registers() + 2 * rows(first) + columns_of(first);
    const int64_t reading = first.registers() / 2 + columns_of(second);
    const int64_t online = chain_.online ? kOnline * rows(first) : 0;
    return second.registers() + std::max(making, reading) + online + kOthers;
  }

  int64_t shared_bytes(const ContractionPlan& first, const ContractionPlan& second) const {
    int64_t end = 0;
    const auto allocate = [&](const Contraction& c, const ContractionPlan& plan, size_t i, int64_t stages) {
      const OperandPlan& o = plan.operands[i];
      end =
          round_up(end, tile::kSharedAlignment) + (o.stage * (stages - 1) + o.last_stage) * c.operands[i].type.bytes();
    };
    allocate(first_, first, first.tensor_cores->a, 1);
    allocate(first_, first, first.tensor_cores->b, second.stages);
    allocate(second_, second, second.tensor_cores->b, second.stages);
    return end;
  }

  std::optional<StreamPlan> finished(ContractionPlan first, ContractionPlan second) {
    constexpr int64_t kStages = 2, kRegisters = 255, kAllRegisters = 65536;
    const int64_t registers = registers_of(first, second);
    if (registers > kRegisters || registers * second.threads() > kAllRegisters) return std::nullopt;
    second.stages = first.stages =
        std::max(std::min(options_.copy_stages.value_or(kStages), second.steps(second_)), kStages);
    first.all_ahead = second.all_ahead = false;
    // Fragments are registers: no loop goes through them.
    first.most_unrolled = std::max(first.most_unrolled, first.registers() * first.chunk[first.main]);
    second.most_unrolled = std::max(second.most_unrolled, second.registers() * second.chunk[second.main]);
    const int64_t bytes = shared_bytes(first, second);
    const int64_t most = std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
    if (bytes > most) return std::nullopt;
    StreamCost cost =
        streamed_cycles(first_, first, second_, second, instructions_of_slab(chain_, first, second, instructions_),
                        device_, registers, bytes);
    const double share = shares_.of(first);
    cost.first *= share;
    cost.second *= share;
    first.cycles = cost.first;
    second.cycles = cost.second;
    StreamPlan result{.cycles = cost.first + cost.second};
    result.plan.plans = {std::move(first), std::move(second)};
    result.plan.in_ring = true;
    result.plan.buffers.bytes = bytes;
    return result;
  }

  const Chain& chain_;
  const ChainLink& link_;
  const Contraction &first_, &second_;
  const options::MappingOptions& options_;
  const options::MappingOptions of_first_;
  const Device& device_;
  Planner planner_of_first_, planner_of_second_;
  const size_t slab_axis_;
  const double instructions_;
  SlabShares shares_;
  std::vector<StreamPlan> found_;
};

}  // namespace

double instructions_of_slab(const Chain& chain, const ContractionPlan& first, const ContractionPlan& second,
                            double instructions) {
  constexpr double kOfRow = 32;
  if (!chain.online) return instructions;
  const auto results = static_cast<double>(first.registers());
  const double rows = results / static_cast<double>(columns_of(first));
  const double sums = chain.online->rescales_product ? static_cast<double>(second.registers()) : 0;
  return instructions + (kOfRow * rows + sums) / results;
}

std::optional<ChosenChain> plan_stream(const ir::Program& program, const Chain& chain, const StreamOptions& options,
                                       const Device& device) {
  return StreamPlanner(program, chain, options, device).run();
}

}  // namespace tc::gpu
