#include "tc/gpu/strategy/contraction/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/layout.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/requested_tile.h"
#include "tc/gpu/strategy/contraction/shapes.h"
#include "tc/gpu/strategy/contraction/tensor_cores.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/gpu/strategy/contraction/windows.h"
#include "tc/support/round.h"
#include "tc/tile/matrix_descriptor.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kLanes = 32;
constexpr int64_t kBlockThreads = 512;  ///< of a transposition, where its tile is large
constexpr int64_t kAcross = 8;          ///< of these, those beside each other along a row of results in vectors

/// Whether the last subscript counts along the axis.
bool is_last(const Operand& operand, size_t axis) { return operand.subscripts.back().parallel[axis] == 1; }

class Planner {
 public:
  Planner(const Contraction& contraction, const options::MappingOptions& options, const Device& device)
      : c_(contraction), options_(options), device_(device), request_(requested_tile(contraction, options)) {
    classify();
    choose_main();
  }
  std::vector<ContractionPlan> best(size_t count) const;
  std::vector<ContractionPlan> laid_out(std::vector<ContractionPlan> plans, size_t count) const;
  std::vector<ContractionPlan> transpositions() const;
  Result<void> fault() const;
  const std::string& why_not() const { return why_not_; }

 private:
  void classify();
  void choose_main();
  std::optional<ContractionPlan> plan(const Shape& shape) const;
  std::optional<ContractionPlan> plan(const AtomShape& shape, const TensorCores& cores) const;
  std::optional<ContractionPlan> plan(const WarpgroupShape& shape, const TensorCores& cores) const;
  bool finish_boxes(ContractionPlan& plan) const;
  bool finish_atoms(ContractionPlan& plan) const;
  std::vector<ContractionPlan> by_elements(size_t count) const;
  std::vector<ContractionPlan> by_tensor_cores(size_t count) const;
  void add_warpgroups(const TensorCores& cores, size_t count, std::vector<ContractionPlan>& found) const;
  std::optional<ContractionPlan> transposed(int64_t tile) const;
  std::optional<ContractionPlan> transposed_by_vectors(int64_t tile, int64_t threads) const;
  bool prefers_vectors() const;
  void order_transposed(ContractionPlan& plan) const;
  bool finish(ContractionPlan& plan) const;
  bool wants_another_stage(ContractionPlan plan) const;
  void lay_out_all(ContractionPlan& plan, Rows rows) const;
  void lay_out_within(ContractionPlan& plan) const;
  void distribute(const std::vector<size_t>& axes, int64_t points, int64_t registers, ContractionPlan& plan) const;
  bool follow(ContractionPlan& plan) const;
  bool has_threads(const ContractionPlan& plan) const;
  bool has_steps(const ContractionPlan& plan) const;
  bool has_blocks(const ContractionPlan& plan) const;
  bool has_room(const ContractionPlan& plan) const;
  bool fits(const ContractionPlan& plan) const;
  /// False, for the reason that is given.
  bool no(std::string reason) const {
    if (why_not_.empty()) why_not_ = std::move(reason);
    return false;
  }

  const Contraction& c_;
  const options::MappingOptions& options_;
  const Device& device_;
  RequestedTile request_;
  mutable std::string why_not_;  ///< why the first plan that was tried is none
  mutable bool sparing_ = true;  ///< few enough registers that nothing is spilled, several blocks on a processor
  Classes classes_;
  size_t main_ = 0;
  std::vector<int64_t> chunk_;  ///< of the other reduction axes
  bool outer_steps_ = false;    ///< some of them run around the main one
};

void Planner::classify() {
  if (c_.update.assign == ir::Assign::kSet) {
    size_t other = c_.parallel.size() - 1;
    classes_.columns = {other};
    for (size_t axis = 0; axis + 1 < c_.parallel.size(); ++axis) {
      if (is_last(c_.operands[0], axis)) other = axis;
    }
    classes_.rows = {other};
    return;
  }
  std::map<std::vector<bool>, std::vector<size_t>> by_reuse;
  std::map<std::vector<bool>, double> points;
  const size_t last = c_.parallel.size() - 1;
  std::vector<bool> of_last;
  bool contiguous_unshared = false;
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    std::vector<bool> reused;
    for (const Operand& operand : c_.operands) reused.push_back(!depends(operand, axis));
    const bool shared = std::any_of(reused.begin(), reused.end(), [](bool r) { return r; });
    if (!shared) {
      contiguous_unshared = contiguous_unshared || axis == last;
      continue;
    }
    by_reuse[reused].push_back(axis);
    points.emplace(reused, 1).first->second *= static_cast<double>(c_.parallel[axis].extent);
    if (axis == last) of_last = reused;
  }
  const auto take_largest = [&] {
    std::vector<size_t> axes;
    const auto largest = std::max_element(points.begin(), points.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    if (largest == points.end()) return axes;
    axes = by_reuse[largest->first];
    points.erase(largest);
    return axes;
  };
  if (!of_last.empty()) {
    classes_.columns = by_reuse[of_last];
    points.erase(of_last);
  } else {
    classes_.columns = take_largest();
  }
  classes_.rows = take_largest();
  if (contiguous_unshared) {
    classes_.columns.insert(classes_.columns.begin(), last);
    classes_.unshared = static_cast<int>(last);
  }
}

/// Steps go along the longest axis, or one that is contiguous in an operand and long enough.
void Planner::choose_main() {
  constexpr int64_t kLong = 8, kWhole = 64;
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    if (c_.reduction[r].extent > c_.reduction[main_].extent) main_ = r;
  }
  for (const Operand& operand : c_.operands) {
    for (size_t r = 0; r < c_.reduction.size(); ++r) {
      if (operand.subscripts.back().reduction[r] == 1 && c_.reduction[r].extent >= kLong) main_ = r;
    }
  }
  int64_t inner = 1;
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    const bool whole = r != main_ && inner * c_.reduction[r].extent <= kWhole;
    if (whole) inner *= c_.reduction[r].extent;
    chunk_.push_back(whole ? c_.reduction[r].extent : 1);
    outer_steps_ = outer_steps_ || (r != main_ && !whole && c_.reduction[r].extent > 1);
  }
}

void Planner::distribute(const std::vector<size_t>& axes, int64_t points, int64_t registers,
                         ContractionPlan& plan) const {
  // Where all axes share what they read, a tile of registers in two of them reads least.
  const int64_t most = classes_.rows.empty() ? 4 : 8;
  for (size_t axis : axes) {
    const int64_t extent = c_.parallel[axis].extent;
    AxisPlan& a = plan.parallel[axis];
    const bool unshared = static_cast<int>(axis) == classes_.unshared;
    const int64_t wanted = std::min({extent, points, unshared ? kLanes : points});
    if (!unshared) {
      a.registers = std::min(registers, most);
      while (a.registers > wanted) a.registers /= 2;
      registers /= a.registers;
    }
    a.tile = round_up(wanted, a.registers);
    points = std::max<int64_t>(points / a.tile, 1);
  }
}

/// Puts what the options say in the place of what was chosen.
bool Planner::follow(ContractionPlan& plan) const {
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    AxisPlan& a = plan.parallel[axis];
    if (request_.registers[axis] > 0) a.registers = request_.registers[axis];
    a.tile = request_.tile[axis] > 0 ? request_.tile[axis] : round_up(a.tile, a.registers);
    const bool only_column = classes_.columns == std::vector<size_t>{axis};
    const bool only_other = c_.parallel.size() == 2 && !only_column && classes_.columns.size() == 1;
    const int64_t threads = only_column ? request_.columns : only_other ? request_.others : 0;
    if (threads > 0 && request_.registers[axis] == 0 && a.tile % threads == 0) a.registers = a.tile / threads;
    if (a.tile % a.registers != 0) {
      return no(fmt::format("{} results of a thread along '{}' do not divide a block's {}", a.registers,
                            c_.parallel[axis].name, a.tile));
    }
  }
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    if (request_.chunk[r] > 0) plan.chunk[r] = request_.chunk[r];
  }
  if (request_.groups > 0) plan.groups = request_.groups;
  for (size_t axis : classes_.columns) plan.columns_threads *= plan.parallel[axis].threads();
  return has_threads(plan) && has_steps(plan);
}

bool Planner::has_threads(const ContractionPlan& plan) const {
  if (!request_.says_threads()) return true;
  const int64_t columns = plan.columns_threads, others = plan.points_threads() / columns;
  return (columns == request_.columns && others == request_.others) ||
         no(fmt::format("a block's results and a thread's make {} by {} threads, not {} by {}", columns, others,
                        request_.columns, request_.others));
}

/// Whether a step's parts are whole, and what is left of the reduction comes once.
bool Planner::has_steps(const ContractionPlan& plan) const {
  bool around = false;
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    const int64_t extent = c_.reduction[r].extent;
    if (r == main_ || plan.chunk[r] == extent) continue;
    around = around || extent > 1;
    if (plan.chunk[r] != 1) {
      return no(
          fmt::format("a step has one value of '{}' or all {}, not {}", c_.reduction[r].name, extent, plan.chunk[r]));
    }
  }
  const Axis& main = c_.reduction[main_];
  if (around && main.extent % plan.chunk[main_] != 0) {
    return no(fmt::format("steps of {} do not divide the {} values of '{}', around which others run", plan.chunk[main_],
                          main.extent, main.name));
  }
  // A group's part of a step is long enough for vectors, and for what a barrier costs.
  const int64_t shortest = request_.groups > 0 ? 1 : plan.groups > 8 ? 4 : 8;
  const int64_t part = plan.chunk[main_] / plan.groups;
  if (part * plan.groups == plan.chunk[main_] && (plan.groups == 1 || part >= shortest)) return true;
  return no(fmt::format("{} groups of threads do not share a step of {}", plan.groups, plan.chunk[main_]));
}

std::optional<ContractionPlan> Planner::plan(const Shape& shape) const {
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.main = main_;
  plan.chunk = chunk_;
  plan.chunk[main_] = shape.chunk;
  plan.groups = shape.groups;
  if (shape.tiles.block.empty()) {
    distribute(classes_.columns, shape.columns, shape.column_registers, plan);
    distribute(classes_.rows, shape.rows, shape.row_registers, plan);
  }
  for (size_t axis = 0; axis < shape.tiles.block.size(); ++axis) {
    plan.parallel[axis].tile = shape.tiles.block[axis];
    plan.parallel[axis].registers = shape.tiles.thread[axis];
  }
  if (!follow(plan) || !has_room(plan)) return std::nullopt;
  const Turned turns = turned(c_, plan);
  for (size_t axis : classes_.columns) plan.order.push_back(axis);
  for (size_t axis : classes_.rows) plan.order.push_back(axis);
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    AxisPlan& a = plan.parallel[axis];
    a.blocks = ceil_div(c_.parallel[axis].extent, a.tile);
    for (size_t i = 0; i < c_.operands.size(); ++i) {
      const Operand& operand = c_.operands[i];
      const std::optional<size_t> turn = turns.of(i);
      if (!is_last(operand, axis) && !(turn && operand.subscripts[*turn].parallel[axis] == 1)) continue;
      int64_t group = kVectorBytes / operand.type.bytes();
      while (a.registers % group != 0) group /= 2;
      a.group = std::max(a.group, group);
    }
    // Neighbours of a window stand next to each other, but for results that are stored as vectors.
    const bool stores_vectors = axis + 1 == c_.parallel.size() && a.group > 1 && a.registers % 4 == 0;
    if (slides(c_, axis) && !stores_vectors) a.group = a.registers;
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  if (!finish(plan)) return std::nullopt;
  plan.cycles = estimated_cycles(c_, plan, device_);
  return plan;
}

/// The same by products of tiles.
std::optional<ContractionPlan> Planner::plan(const AtomShape& shape, const TensorCores& cores) const {
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.main = main_;
  plan.chunk = shape.one_of_others ? std::vector<int64_t>(chunk_.size(), 1) : chunk_;
  plan.chunk[main_] = shape.chunk;
  plan.groups = shape.groups;
  plan.tensor_cores = cores;
  if (!deal_out(c_, cores.columns, shape.column_threads, shape.column_registers, 2, plan) ||
      !deal_out(c_, cores.rows, shape.row_threads, shape.row_registers, 1, plan)) {
    no("the rows and columns of warps do not divide among the axes");
    return std::nullopt;
  }
  if (!follow(plan)) return std::nullopt;
  if (std::string fault = atom_fault(c_, plan); !fault.empty()) {
    no(std::move(fault));
    return std::nullopt;
  }
  plan.order = cores.columns;
  plan.order.insert(plan.order.end(), cores.rows.begin(), cores.rows.end());
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    plan.parallel[axis].blocks = ceil_div(c_.parallel[axis].extent, plan.parallel[axis].tile);
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  if (!finish_atoms(plan)) return std::nullopt;
  plan.cycles = estimated_cycles(c_, plan, device_);
  return plan;
}

/// The same by products of warpgroups.
std::optional<ContractionPlan> Planner::plan(const WarpgroupShape& shape, const TensorCores& cores) const {
  constexpr int64_t kQuad = 4;
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.main = main_;
  plan.chunk.assign(c_.reduction.size(), 1);
  plan.chunk[main_] = tile::kRowElements;
  plan.tensor_cores = cores;
  plan.tensor_cores->warpgroups = shape.warpgroups;
  const size_t row = cores.rows[0], column = cores.columns[0];
  plan.parallel[row] = {.tile = tile::WarpgroupAtom::kM * shape.warpgroups, .registers = 2};
  plan.parallel[column] = {.tile = shape.columns, .registers = shape.columns / kQuad, .group = shape.group};
  if (plan.parallel[column].registers % shape.group != 0) return std::nullopt;
  const ContractionPlan wished = plan;
  if (!follow(plan)) return std::nullopt;
  // What is asked for otherwise is no tile of a warpgroup.
  for (size_t axis = 0; axis < plan.parallel.size(); ++axis) {
    const AxisPlan &a = plan.parallel[axis], &b = wished.parallel[axis];
    if (a.tile != b.tile || a.registers != b.registers) return std::nullopt;
  }
  if (plan.chunk != wished.chunk || plan.groups != 1) return std::nullopt;
  plan.order = cores.columns;
  plan.order.insert(plan.order.end(), cores.rows.begin(), cores.rows.end());
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    plan.parallel[axis].blocks = ceil_div(c_.parallel[axis].extent, plan.parallel[axis].tile);
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  plan.row_blocks = row_blocks(plan, device_);
  if (!finish_boxes(plan)) return std::nullopt;
  plan.cycles = warpgroup_cycles(c_, plan, device_);
  return plan;
}

bool Planner::finish_boxes(ContractionPlan& plan) const {
  // A buffer is given back when the next one's products have started.
  constexpr int64_t kStages = 6, kFewest = 2;
  plan.asynchronous = true;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (std::string fault = box_fault(c_, i, plan); !fault.empty()) return no(std::move(fault));
    plan.operands.push_back(boxed_operand(c_, i, plan));
  }
  plan.most_unrolled = options_.unroll.value_or(plan.most_unrolled);
  const auto with = [&](int64_t stages) {
    plan.stages = stages;
    return fits(plan);
  };
  if (options_.copy_stages) {
    if (*options_.copy_stages < kFewest) return no(fmt::format("warpgroups need at least {} buffers", kFewest));
    return with(*options_.copy_stages);
  }
  for (int64_t stages = std::clamp(plan.steps(c_), kFewest, kStages); stages >= kFewest; --stages) {
    if (with(stages)) return true;
  }
  return false;
}

bool Planner::finish_atoms(ContractionPlan& plan) const {
  constexpr int64_t kCopied = 4, kStages = 4;  // bytes of the least asynchronous copy
  plan.asynchronous = true;
  const int64_t left = c_.reduction[main_].extent % plan.chunk[main_];
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    plan.operands.push_back(operand_plan(c_, i, {}, plan));
    OperandPlan& o = plan.operands.back();
    // What lies behind the reduction is set to zero by whole copies.
    const bool ends = left > 0 && c_.operands[i].subscripts.back().reduction[main_] != 0;
    if (ends && o.lead == 0) o.vector = std::gcd(o.vector, left);
    o.fragment = fragment_read(c_, i, plan);
    const bool computed = c_.operands[i].computed.has_value();
    plan.asynchronous = plan.asynchronous && (computed || o.vector * c_.operands[i].type.bytes() >= kCopied);
  }
  lay_out_all(plan, Rows::kRough);
  plan.unroll_copies = options_.unroll_copy_shared;
  plan.most_unrolled = options_.unroll.value_or(plan.most_unrolled);
  const auto with = [&](int64_t stages) {
    plan.stages = std::max<int64_t>(plan.asynchronous ? std::min(stages, plan.steps(c_)) : 1, 1);
    plan.all_ahead = plan.stages > 1 && options_.copy_stages.value_or(0) > plan.steps(c_);
    return fits(plan);
  };
  if (options_.copy_stages) return with(*options_.copy_stages);
  for (int64_t stages = kStages; stages > 1; --stages) {
    if (with(stages)) return true;
  }
  return with(1);
}

/// Whether copies that run further ahead are worth their memory: a processor has one block, whose steps are too few for
/// its copies to catch up. On an H200 128x1024x1024 took 11.5 us with four buffers, 12.2 with three.
bool Planner::wants_another_stage(ContractionPlan plan) const {
  constexpr int64_t kFewSteps = 32;
  if (converts_operands(c_)) return false;
  int64_t blocks = 1;
  for (const AxisPlan& axis : plan.parallel) blocks *= axis.blocks;
  if (blocks > device_.processors || plan.steps(c_) > kFewSteps || plan.steps(c_) <= plan.stages) return false;
  ++plan.stages;
  return plan.shared_bytes(c_) <=
         std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
}

/// The operands and the copies, when tiles are chosen; false if the plan does not fit.
bool Planner::finish(ContractionPlan& plan) const {
  plan.asynchronous = true;
  plan.vector = kVectorBytes;
  bool any_along = false;
  const Turned turns = turned(c_, plan);
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    const Operand& operand = c_.operands[i];
    plan.operands.push_back(operand_plan(c_, i, turns, plan));
    OperandPlan& o = plan.operands.back();
    plan.asynchronous = plan.asynchronous && (operand.computed || o.vector * operand.type.bytes() >= 4);
    if (o.along_main) plan.vector = std::min(plan.vector, kVectorBytes / operand.type.bytes());
    any_along = any_along || o.along_main;
  }
  if (!any_along) plan.vector = 1;
  lay_out_all(plan, Rows::kRough);
  plan.stages = plan.asynchronous ? std::min<int64_t>(options_.copy_stages.value_or(3), plan.steps(c_)) : 1;
  plan.stages = std::max<int64_t>(plan.stages, 1);
  if (!options_.copy_stages && plan.stages > 1 && wants_another_stage(plan)) ++plan.stages;
  plan.all_ahead = plan.stages > 1 && options_.copy_stages.value_or(0) > plan.steps(c_);
  constexpr int64_t kManySteps = 32, kManySums = 2048;  // worth the time that the assembler takes for them
  const int64_t sums = plan.registers() * plan.chunk[main_] / plan.groups;
  // Conversions fill the text: a product of 4096^3 bfloat16 took 6.8 ms on an H200 with 2048 sums, 4.0 with 1024.
  if (plan.steps(c_) >= kManySteps && sums <= kManySums && !converts_operands(c_) && !plan.has_windows(c_)) {
    plan.most_unrolled = std::max(plan.most_unrolled, sums);
  }
  plan.most_unrolled = options_.unroll.value_or(plan.most_unrolled);
  plan.unroll_copies = options_.unroll_copy_shared;
  return fits(plan);
}

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
  const int64_t wanted = tile == kTransposed ? kBlockThreads : kBlockThreads / 2;
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
  const bool whole = last.begin % kVector == 0 && last.extent % kVector == 0 && operand.extents.back() % kVector == 0 &&
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
  for (const int64_t threads : {kBlockThreads / 2, kBlockThreads}) {
    add(first_of([&](int64_t tile) { return transposed_by_vectors(tile, threads); }));
  }
  if (prefers_vectors()) add(first_of([&](int64_t tile) { return transposed(tile); }));
  return found;
}

/// Whether the device takes the blocks: all of them along x, and an axis's along y or z, where it may come to stand.
bool Planner::has_blocks(const ContractionPlan& plan) const {
  constexpr int64_t kMostInYZ = 65535;  // with more in any of them all are along x
  int64_t all = 1;
  for (const AxisPlan& axis : plan.parallel) {
    if (axis.blocks > device_.grid[0] / all) return no(fmt::format("blocks are more than {}", device_.grid[0]));
    all *= axis.blocks;
    const int64_t most = std::min(device_.grid[1], device_.grid[2]);
    if (axis.blocks > most && axis.blocks <= kMostInYZ) return no(fmt::format("an axis has more blocks than {}", most));
  }
  return true;
}

/// Whether a block's threads and their sums fit, which is known first.
bool Planner::has_room(const ContractionPlan& plan) const {
  constexpr int64_t kSparingThreads = 256;
  constexpr int64_t kSparingSums = 64;  // with more the assembler runs out of registers for what it reads ahead
  const int64_t threads = std::min(device_.threads_per_block, device_.block[0]);
  if (plan.block_threads() > threads) {
    return no(fmt::format("a block has {} threads, of {}", plan.block_threads(), threads));
  }
  const int64_t sparing = c_.update.assign == ir::Assign::kSet ? kBlockThreads : kSparingThreads;
  return !sparing_ || (plan.threads() <= sparing && plan.registers() <= kSparingSums);
}

bool Planner::fits(const ContractionPlan& plan) const {
  constexpr int64_t kSparingRegisters = 200, kSparingOfAll = 49152;  // a quarter is left to spare
  constexpr int64_t kRegisters = 255, kAllRegisters = 65536;
  const int64_t shared = std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
  const int64_t registers = registers_of_thread(c_, plan);
  const int64_t of_all = registers * round_up(plan.block_threads(), plan.by_warpgroups() ? kLanes : 4 * kLanes);
  if (!has_room(plan)) return false;
  if (plan.shared_bytes(c_) > shared) {
    return no(fmt::format("a block needs {} bytes of shared memory, of {}", plan.shared_bytes(c_), shared));
  }
  if (registers > kRegisters) return no(fmt::format("a thread needs {} registers, of {}", registers, kRegisters));
  if (of_all > kAllRegisters) return no(fmt::format("a block needs {} registers, of {}", of_all, kAllRegisters));
  if (!has_blocks(plan)) return false;
  return !sparing_ || (registers <= kSparingRegisters && of_all <= kSparingOfAll);
}

/// What the options say and no plan does.
Result<void> Planner::fault() const {
  const auto parallel = static_cast<int64_t>(c_.parallel.size());
  const auto all = parallel + static_cast<int64_t>(c_.reduction.size());
  if (options_.shared_depth && *options_.shared_depth != parallel && *options_.shared_depth < all) {
    return fail("copies to shared memory stand below {} or {} axes, not {}", parallel, all, *options_.shared_depth);
  }
  return {};
}

/// Keeps the best of what was found, in order, at most `count` and none twice.
void keep_best(ContractionPlan plan, size_t count, std::vector<ContractionPlan>& found) {
  if (found.size() == count && found.back().cycles <= plan.cycles) return;
  const auto same = [&](const ContractionPlan& other) {
    return other.cycles == plan.cycles && options_of(other) == options_of(plan);
  };
  if (std::any_of(found.begin(), found.end(), same)) return;
  const auto at = std::upper_bound(found.begin(), found.end(), plan,
                                   [](const auto& a, const auto& b) { return a.cycles < b.cycles; });
  found.insert(at, std::move(plan));
  if (found.size() > count) found.pop_back();
}

void Planner::lay_out_all(ContractionPlan& plan, Rows rows) const {
  for (size_t i = 0; i < plan.operands.size(); ++i) lay_out(c_, i, plan, rows);
}

/// Of a plan that fits as it was laid out roughly: where room between rows is too much for shared memory, a buffer
/// goes, unless the options say how many there are; else the room.
void Planner::lay_out_within(ContractionPlan& plan) const {
  const ContractionPlan rough = plan;
  lay_out_all(plan, Rows::kApart);
  if (fits(plan)) return;
  if (!options_.copy_stages && --plan.stages > 1 && fits(plan)) return;
  plan = rough;
  lay_out_all(plan, Rows::kClose);
}

/// Of plans that were laid out roughly, the best when they are laid out.
std::vector<ContractionPlan> Planner::laid_out(std::vector<ContractionPlan> plans, size_t count) const {
  std::vector<ContractionPlan> found;
  for (ContractionPlan& plan : plans) {
    lay_out_within(plan);
    plan.cycles = estimated_cycles(c_, plan, device_);
    keep_best(std::move(plan), count, found);
  }
  return found;
}

std::vector<ContractionPlan> Planner::by_tensor_cores(size_t count) const {
  constexpr size_t kLaidOut = 48;
  const std::optional<TensorCores> cores = tensor_cores_of(c_, classes_, device_);
  if (!cores) {
    no("it is no product of two operands for which the device has tensor cores");
    return {};
  }
  sparing_ = false;
  std::vector<ContractionPlan> found;
  std::vector<AtomShape> shapes = atom_shapes(c_, main_, outer_steps_);
  if (std::any_of(chunk_.begin(), chunk_.end(), [](int64_t values) { return values > 1; })) {
    for (AtomShape shape : atom_shapes(c_, main_, true)) {
      shape.one_of_others = true;
      shapes.push_back(shape);
    }
  }
  if (shapes.empty()) {
    no(fmt::format("no step of {} values or a multiple fits the {} of '{}'", cores->atom->k, c_.reduction[main_].extent,
                   c_.reduction[main_].name));
  }
  for (const AtomShape& shape : shapes) {
    std::optional<ContractionPlan> candidate = plan(shape, *cores);
    if (candidate) keep_best(*std::move(candidate), std::max(count, kLaidOut), found);
  }
  found = laid_out(std::move(found), count);
  add_warpgroups(*cores, count, found);
  return found;
}

void Planner::add_warpgroups(const TensorCores& cores, size_t count, std::vector<ContractionPlan>& found) const {
  if (!device_.accelerated || device_.warpgroup_products == 0) return;
  if (c_.reduction[main_].extent < tile::kRowElements) return;
  std::vector<ContractionPlan> plans;
  for (const WarpgroupShape& shape : warpgroup_shapes(c_, cores)) {
    if (std::optional<ContractionPlan> candidate = plan(shape, cores)) keep_best(*std::move(candidate), count, plans);
  }
  // Tiles, registers and threads that are a warpgroup's ask for warpgroups.
  if (!plans.empty() && request_.says_threads() && request_.says_all_registers()) found.clear();
  for (ContractionPlan& plan : plans) keep_best(std::move(plan), count, found);
}

std::vector<ContractionPlan> Planner::best(size_t count) const {
  const bool names_tiles =
      !options_.tile.empty() || !options_.register_tile.empty() || !options_.map_to_threads.empty();
  const bool may_multiply = options_.tensor_cores.value_or(!names_tiles);
  std::vector<ContractionPlan> found;
  if (may_multiply) found = by_tensor_cores(count);
  if (options_.tensor_cores.value_or(false)) return found;
  for (ContractionPlan& plan : by_elements(count)) keep_best(std::move(plan), count, found);
  return found;
}

std::vector<ContractionPlan> Planner::by_elements(size_t count) const {
  constexpr size_t kLaidOut = 48;
  std::vector<ContractionPlan> found;
  for (const bool sparing : {true, false}) {
    sparing_ = sparing;
    for (const Shape& shape : shapes(c_, classes_, {main_, outer_steps_}, request_)) {
      std::optional<ContractionPlan> candidate = plan(shape);
      if (candidate) keep_best(*std::move(candidate), std::max(count, kLaidOut), found);
    }
    found = laid_out(std::move(found), count);
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace

int64_t ContractionPlan::points_threads() const {
  int64_t result = 1;
  for (const AxisPlan& axis : parallel) result *= axis.threads();
  return result;
}

int64_t ContractionPlan::block_threads() const { return threads() + (by_warpgroups() ? kProducerThreads : 0); }

int64_t ContractionPlan::registers() const {
  int64_t result = 1;
  for (const AxisPlan& axis : parallel) result *= axis.registers;
  return result;
}

bool ContractionPlan::has_windows(const Contraction& contraction) const {
  for (const Operand& operand : contraction.operands) {
    for (const Subscript& s : operand.subscripts) {
      bool slides = false, whole = false;
      for (size_t i = 0; i < parallel.size(); ++i) slides = slides || (s.parallel[i] != 0 && parallel[i].registers > 1);
      for (size_t r = 0; r < chunk.size(); ++r) whole = whole || (r != main && s.reduction[r] != 0 && chunk[r] > 1);
      if (slides && whole) return true;
    }
  }
  return false;
}

int64_t ContractionPlan::steps(const Contraction& contraction) const {
  int64_t result = 1;
  for (size_t r = 0; r < chunk.size(); ++r) {
    const int64_t extent = contraction.reduction[r].extent;
    result *= r == main && fills_last_step() ? ceil_div(extent, chunk[r]) : extent / chunk[r];
  }
  return result;
}

int64_t ContractionPlan::left(const Contraction& contraction) const {
  return fills_last_step() ? 0 : contraction.reduction[main].extent % chunk[main];
}

int64_t ContractionPlan::shared_bytes(const Contraction& contraction) const {
  int64_t end = 0;  // of what is allocated so far, one behind the other
  const int64_t alignment = by_warpgroups() ? tile::kSwizzledAlignment : tile::kSharedAlignment;
  const auto allocate = [&](int64_t bytes) { end = round_up(end, alignment) + bytes; };
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t elements = operands[i].stage * (stages - 1) + operands[i].last_stage;
    allocate(elements * contraction.operands[i].type.bytes());
  }
  if (groups > 1) allocate(registers() * threads() * contraction.update.accumulator.bytes());
  if (by_warpgroups()) end += 2 * tile::RingBarriers::kBytes * stages;
  return end;
}

namespace {

Result<std::vector<ContractionPlan>> planned(const Contraction& contraction, const options::MappingOptions& options,
                                             const Device& device, size_t count) {
  const Planner planner(contraction, options, device);
  TC_TRY_VOID(planner.fault());
  std::vector<ContractionPlan> plans =
      contraction.update.assign == ir::Assign::kSet ? planner.transpositions() : planner.best(count);
  if (plans.empty()) return fail("{}", planner.why_not());
  return plans;
}

}  // namespace

Result<ContractionPlan> plan_contraction(const Contraction& contraction, const options::MappingOptions& options,
                                         const Device& device) {
  TC_TRY(plans, planned(contraction, options, device, 1));
  return std::move(plans[0]);
}

std::vector<ContractionPlan> best_plans(const Contraction& contraction, const options::MappingOptions& options,
                                        const Device& device, size_t count) {
  Result<std::vector<ContractionPlan>> plans = planned(contraction, options, device, count);
  return plans ? *std::move(plans) : std::vector<ContractionPlan>();
}

}  // namespace tc::gpu
