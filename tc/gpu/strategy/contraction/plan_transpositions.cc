#include <algorithm>
#include <functional>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/planner.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kLanes = 32;
constexpr int64_t kAcross = 8;  ///< threads beside each other along a row of results in vectors

/// Tiles and registers of a transposition by runs, and which axes the fastest threads go along.
void give_runs(const Contraction& c, size_t last, const std::vector<size_t>& run, ContractionPlan& plan) {
  constexpr int64_t kMostPoints = 2400, kResults = 24;  // of a block, and of a thread
  AxisPlan& columns = plan.parallel[last];
  columns.tile = c.parallel[last].extent % (2 * kLanes) == 0 ? 2 * kLanes : kLanes;
  columns.registers = columns.tile / kLanes;
  for (const size_t axis : run) plan.parallel[axis].tile = plan.parallel[axis].registers = c.parallel[axis].extent;
  AxisPlan& slowest = plan.parallel[run.back()];
  if (plan.registers() > kResults) slowest.registers = 1;
  int64_t points = plan.registers() * plan.threads();
  plan.order = {last, run.back()};
  for (size_t axis = last; axis-- > 0;) {
    AxisPlan& a = plan.parallel[axis];
    const bool is_free = std::find(run.begin(), run.end(), axis) == run.end();
    while (is_free && 2 * points <= kMostPoints && c.parallel[axis].extent % (2 * a.tile) == 0) {
      a.tile *= 2;
      points *= 2;
    }
  }
}

}  // namespace

/// The order of a transposition's axes and how many blocks they have, when its tile is known.
void Planner::order_transposed(ContractionPlan& plan) const {
  plan.order = {classes_.columns[0], classes_.rows[0]};
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    plan.parallel[axis].blocks = ceil_div(c_.parallel[axis].extent, plan.parallel[axis].tile);
    if (axis != plan.order[0] && axis != plan.order[1]) plan.order.push_back(axis);
  }
}

/// A tile whose rows are read and written by warps; one element at a time, so that rows in shared memory may have an
/// odd pitch, and threads that read a column meet in no bank. Through registers: of 8192 x 8192 floats asynchronous
/// copies took 134.4 us on an H200, these 130.9 (256 threads: 137.0, 133.7), its copy 127.1.
std::optional<ContractionPlan> Planner::transposed(int64_t tile) const {
  const int64_t wanted = tile == kTransposed ? kTransposedThreads : kTransposedThreads / 2;
  const int64_t threads = std::max(kLanes, std::min({wanted, device_.threads_per_block, device_.block[0]}));
  const size_t last = classes_.columns[0], other = classes_.rows[0];
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.chunk = {1};
  AxisPlan& columns = plan.parallel[last];
  columns.tile = std::min(tile, round_up(c_.parallel[last].extent, kLanes));
  columns.registers = columns.tile / kLanes;
  AxisPlan& rows = plan.parallel[other];
  rows.registers = tile * kLanes / threads;
  rows.tile = tile;
  if (!follow(plan)) return std::nullopt;
  order_transposed(plan);
  if (!finish(plan)) return std::nullopt;
  for (size_t i = 0; i < plan.operands.size(); ++i) {
    OperandPlan& o = plan.operands[i];
    o.vector = 1;
    o.box.back() = range(c_.operands[i].subscripts.back(), plan);
    o.merged = o.box.size() - 1;
    o.pitch = o.box.back() | 1;
    lay_out(c_, i, plan, Rows::kApart);
  }
  plan.asynchronous = false;
  if (!fits(plan)) return std::nullopt;
  plan.cycles = estimated_cycles(c_, plan, device_);
  return plan;
}

/// A tile that is read by vectors along the operands' rows and written by vectors along the results': eight threads
/// beside each other write a line of 128 bytes.
std::optional<ContractionPlan> Planner::transposed_by_vectors(int64_t tile, int64_t threads) const {
  const size_t last = classes_.columns[0], other = classes_.rows[0];
  const Halide::Type type = c_.update.accumulator;
  if (type.is_bool() || threads > std::min(device_.threads_per_block, device_.block[0])) return std::nullopt;
  if (request_.columns > 0 && request_.columns != kAcross) return std::nullopt;
  int64_t vector = kVectorBytes / type.bytes();
  while (vector > 1 && c_.parallel[last].extent % vector != 0) vector /= 2;
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.chunk = {1};
  AxisPlan& columns = plan.parallel[last];
  columns.tile = std::min(std::max(tile, kAcross * vector), round_up(c_.parallel[last].extent, kTransposed));
  columns.registers = columns.tile / kAcross;
  AxisPlan& rows = plan.parallel[other];
  rows.tile = std::max(tile, threads / kAcross);
  rows.registers = rows.tile * kAcross / threads;
  if (!follow(plan)) return std::nullopt;
  while (vector > 1 && columns.registers % vector != 0) vector /= 2;
  if (vector == 1 || columns.threads() != kAcross) return std::nullopt;
  columns.group = vector;
  order_transposed(plan);
  if (!finish(plan)) return std::nullopt;
  for (size_t i = 0; i < plan.operands.size(); ++i) lay_out_by_vectors(c_, i, last, vector, plan);
  plan.asynchronous = false;
  if (!fits(plan)) return std::nullopt;
  plan.cycles = estimated_cycles(c_, plan, device_);
  return plan;
}

/// Of an operand whose rows are short: a block has all of several short dimensions, as the taps of 3 x 3 weights, and
/// 32 or 64 values of the results' last axis. What it reads is runs of memory, and a warp writes neighbours.
std::optional<ContractionPlan> Planner::transposed_by_runs() const {
  const size_t last = classes_.columns[0];
  const std::vector<size_t> run = c_.operands.size() == 1 ? run_across(c_, c_.operands[0]) : std::vector<size_t>();
  const bool alone = c_.before.empty() && c_.after.empty();
  if (run.empty() || !alone || reads_tensor(c_.update.value, c_.operands[0].tensor)) return std::nullopt;
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.chunk = {1};
  give_runs(c_, last, run, plan);
  if (!follow(plan)) return std::nullopt;
  AxisPlan& columns = plan.parallel[last];
  bool is_run = columns.tile == columns.registers * kLanes && c_.parallel[last].extent % columns.tile == 0;
  for (const size_t axis : run) is_run = is_run && plan.parallel[axis].tile == c_.parallel[axis].extent;
  if (!is_run || columns.registers > 2) {
    no("a block does not read {} or {} whole rows for '{}'", kLanes, 2 * kLanes, c_.parallel[last].name);
    return std::nullopt;
  }
  columns.group = columns.registers;
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    plan.parallel[axis].blocks = ceil_div(c_.parallel[axis].extent, plan.parallel[axis].tile);
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  if (!finish(plan)) return std::nullopt;
  OperandPlan& o = plan.operands[0];
  const Operand& operand = c_.operands[0];
  o.merged = o.box.size() - 1 - run.size();
  o.box.back() = o.pitch = range(operand.subscripts.back(), plan);
  o.lead = 0;
  o.vector = merged_vector(c_, operand, o.merged, plan);
  lay_out(c_, 0, plan, Rows::kClose);
  if (!fits(plan)) return std::nullopt;
  plan.cycles = estimated_cycles(c_, plan, device_);
  return plan;
}

/// Elements of 16 bits that no cache holds, in rows of whole vectors, transposed and nothing else: what was measured,
/// on an H200 (docs/lab/measurements.md).
bool Planner::prefers_vectors() const {
  if (request_.columns > 0) return request_.columns == kAcross;
  constexpr int64_t kVector = 8, kBytes = 2;
  const bool alone = c_.operands.size() == 1 && c_.after.empty() && c_.update.value.as<Halide::Internal::Variable>();
  if (!alone || c_.update.accumulator.bytes() != kBytes || c_.operands[0].type.bytes() != kBytes) return false;
  int64_t elements = 1;
  for (const Axis& axis : c_.parallel) elements *= axis.extent;  // of a tensor
  const int64_t bytes = 2 * elements * c_.operands[0].type.bytes();
  const Operand& operand = c_.operands[0];
  const Axis &last = c_.parallel[classes_.columns[0]], &other = c_.parallel[classes_.rows[0]];
  const bool whole = last.begin % kVector == 0 && last.extent % kVector == 0 && operand.row_divisor() % kVector == 0 &&
                     (operand.subscripts.back().constant + other.begin) % kVector == 0;
  return whole && bytes > device_.cache_bytes;
}

/// Square tiles, large ones where there are enough. The first of them is the compiler's choice.
std::vector<ContractionPlan> Planner::transpositions() const {
  constexpr int64_t kSmall = 32;
  double points = 1;
  for (const Axis& axis : c_.parallel) points *= static_cast<double>(axis.extent);
  const bool enough =
      points / static_cast<double>(kTransposed * kTransposed) >= 4.0 * static_cast<double>(device_.processors);
  const auto first_of = [&](const std::function<std::optional<ContractionPlan>(int64_t)>& planned) {
    for (const bool sparing : {true, false}) {
      sparing_ = sparing;
      for (const int64_t tile : {kTransposed, kSmall}) {
        std::optional<ContractionPlan> plan = enough || tile == kSmall ? planned(tile) : std::nullopt;
        if (plan) return plan;
      }
    }
    return std::optional<ContractionPlan>();
  };
  std::vector<ContractionPlan> found;
  const auto add = [&](std::optional<ContractionPlan> plan) {
    if (plan) found.push_back(*std::move(plan));
  };
  if (!prefers_vectors()) add(first_of([&](int64_t tile) { return transposed(tile); }));
  for (const int64_t threads : {kTransposedThreads / 2, kTransposedThreads}) {
    add(first_of([&](int64_t tile) { return transposed_by_vectors(tile, threads); }));
  }
  if (prefers_vectors()) add(first_of([&](int64_t tile) { return transposed(tile); }));
  // Rows that are too short for a warp, or for tiles at all.
  constexpr int64_t kShort = 8;
  const int64_t row = c_.parallel[classes_.rows[0]].extent;
  if (row >= kLanes) return found;
  if (row < kShort) found.clear();
  sparing_ = false;
  std::optional<ContractionPlan> runs = transposed_by_runs();
  const bool gains = runs && (found.empty() || request_.says_all_tiles() || runs->cycles < found[0].cycles);
  if (runs) found.insert(gains ? found.begin() : found.end(), *std::move(runs));
  return found;
}

}  // namespace tc::gpu
