#include "tc/gpu/strategy/contraction/planner.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/plan_search.h"
#include "tc/gpu/strategy/contraction/windows.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kLanes = 32;

/// Whether the last subscript counts along the axis.
bool is_last(const Operand& operand, size_t axis) { return operand.subscripts.back().parallel[axis] == 1; }

}  // namespace

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

/// Whether some subscript counts along a reduction axis and a parallel one.
static bool slides_along(const Contraction& c, size_t reduction) {
  return std::any_of(c.operands.begin(), c.operands.end(), [&](const Operand& o) {
    return std::any_of(o.subscripts.begin(), o.subscripts.end(), [&](const Subscript& s) {
      return s.reduction[reduction] != 0 &&
             std::any_of(s.parallel.begin(), s.parallel.end(), [](int64_t by) { return by != 0; });
    });
  });
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
  // Boxes fill the last step along an axis with zeros if it has a dimension of its own in both operands.
  const auto is_alone = [&](size_t r) {
    return std::all_of(c_.operands.begin(), c_.operands.end(), [&](const Operand& o) { return has_axis_alone(o, r); });
  };
  const bool is_product =
      std::all_of(c_.operands.begin(), c_.operands.end(), [](const Operand& o) { return o.type.bytes() == 2; });
  if (is_product && c_.reduction[main_].extent % kWhole != 0 && !is_alone(main_)) {
    for (size_t r = 0; r < c_.reduction.size(); ++r) {
      if (c_.reduction[r].extent < kLong || !is_alone(r)) continue;
      if (!is_alone(main_) || c_.reduction[r].extent > c_.reduction[main_].extent) main_ = r;
    }
  }
  // A step has all of a window, whose values share what they read. Other axes would only shorten its runs along the
  // main one.
  const bool is_short = c_.reduction[main_].extent < 2 * kLong;
  int64_t inner = 1;
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    const bool whole = r != main_ && (slides_along(c_, r) || is_short) && inner * c_.reduction[r].extent <= kWhole;
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
      return no("{} results of a thread along '{}' do not divide a block's {}", a.registers, c_.parallel[axis].name,
                a.tile);
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
         no("a block's results and a thread's make {} by {} threads, not {} by {}", columns, others, request_.columns,
            request_.others);
}

/// Whether a step's parts are whole, and what is left of the reduction comes once.
bool Planner::has_steps(const ContractionPlan& plan) const {
  bool around = false;
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    const int64_t extent = c_.reduction[r].extent;
    if (r == main_ || plan.chunk[r] == extent) continue;
    around = around || extent > 1;
    if (plan.chunk[r] != 1 && !(plan.by_warpgroups() && extent % plan.chunk[r] == 0)) {
      return no("a step has one value of '{}' or all {}, not {}", c_.reduction[r].name, extent, plan.chunk[r]);
    }
  }
  const Axis& main = c_.reduction[main_];
  // Boxes fill the last step of each of the others with zeros.
  if (around && !plan.by_warpgroups() && main.extent % plan.chunk[main_] != 0) {
    return no("steps of {} do not divide the {} values of '{}', around which others run", plan.chunk[main_],
              main.extent, main.name);
  }
  // A group's part of a step is long enough for vectors, and for what a barrier costs.
  const int64_t shortest = request_.groups > 0 ? 1 : plan.groups > 8 ? 4 : 8;
  const int64_t part = plan.chunk[main_] / plan.groups;
  if (part * plan.groups == plan.chunk[main_] && (plan.groups == 1 || part >= shortest)) return true;
  return no("{} groups of threads do not share a step of {}", plan.groups, plan.chunk[main_]);
}

/// The tiles and steps of a plan by elements.
std::optional<ContractionPlan> Planner::tiled(const Shape& shape) const {
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
  return plan;
}

std::optional<ContractionPlan> Planner::plan(const Shape& shape) const {
  std::optional<ContractionPlan> plan = tiled(shape);
  if (!plan || !finish(*plan)) return std::nullopt;
  plan->cycles = estimated_cycles(c_, *plan, device_);
  return plan;
}

/// Sums of the longest loop of a plan by elements that is laid out in the text.
int64_t Planner::most_unrolled(const ContractionPlan& plan) const {
  constexpr int64_t kManySteps = 32, kManySums = 2048;  // worth the time that the assembler takes for them
  if (options_.unroll) return *options_.unroll;
  const int64_t sums = plan.registers() * plan.chunk[main_] / plan.groups;
  // Conversions fill the text: a product of 4096^3 bfloat16 took 6.8 ms on an H200 with 2048 sums, 4.0 with 1024.
  const bool may_have_many = plan.steps(c_) >= kManySteps && !converts_operands(c_) && !plan.has_windows(c_);
  return may_have_many && sums <= kManySums ? std::max(plan.most_unrolled, sums) : plan.most_unrolled;
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
    plan.operands.push_back(kept_ == i ? kept_operand(c_, i, plan) : operand_plan(c_, i, turns, plan));
    OperandPlan& o = plan.operands.back();
    plan.asynchronous =
        o.kept ? plan.asynchronous : plan.asynchronous && (operand.computed || o.vector * operand.type.bytes() >= 4);
    if (o.along_main) plan.vector = std::min(plan.vector, kVectorBytes / operand.type.bytes());
    any_along = any_along || o.along_main;
  }
  if (!any_along) plan.vector = 1;
  lay_out_all(plan, Rows::kRough);
  plan.stages = plan.asynchronous ? std::min<int64_t>(options_.copy_stages.value_or(3), plan.steps(c_)) : 1;
  plan.stages = std::max<int64_t>(plan.stages, 1);
  if (!options_.copy_stages && plan.stages > 1 && wants_another_stage(plan)) ++plan.stages;
  plan.all_ahead = plan.stages > 1 && options_.copy_stages.value_or(0) > plan.steps(c_);
  plan.most_unrolled = most_unrolled(plan);
  plan.unroll_copies = options_.unroll_copy_shared;
  return fits(plan);
}

/// Whether the device takes the blocks: all of them along x, and an axis's along y or z, where it may come to stand.
bool Planner::has_blocks(const ContractionPlan& plan) const {
  constexpr int64_t kMostInYZ = 65535;  // with more in any of them all are along x
  int64_t all = 1;
  for (const AxisPlan& axis : plan.parallel) {
    if (axis.blocks > device_.grid[0] / all) return no("blocks are more than {}", device_.grid[0]);
    all *= axis.blocks;
    const int64_t most = std::min(device_.grid[1], device_.grid[2]);
    if (axis.blocks > most && axis.blocks <= kMostInYZ) return no("an axis has more blocks than {}", most);
  }
  return true;
}

/// Whether a block's threads and their sums fit, which is known first.
bool Planner::has_room(const ContractionPlan& plan) const {
  constexpr int64_t kSparingThreads = 256;
  constexpr int64_t kSparingSums = 64;  // with more the assembler runs out of registers for what it reads ahead
  const int64_t threads = std::min(device_.threads_per_block, device_.block[0]);
  if (plan.block_threads() > threads) {
    return no("a block has {} threads, of {}", plan.block_threads(), threads);
  }
  const int64_t sparing = c_.update.assign == ir::Assign::kSet ? kTransposedThreads : kSparingThreads;
  return !sparing_ || (plan.threads() <= sparing && plan.registers() <= kSparingSums);
}

bool Planner::fits(const ContractionPlan& plan) const {
  constexpr int64_t kSparingRegisters = 200, kSparingOfAll = 49152;  // a quarter is left to spare
  constexpr int64_t kRegisters = 255, kAllRegisters = 65536;
  const int64_t shared = std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
  const int64_t registers = registers_of_thread(c_, plan);
  // More than the assembler takes. Where threads compute, it serialises products that lack registers.
  const bool is_rough = plan.by_warpgroups() && !plan.tensor_cores->in_parts && !plan.tensor_cores->computes_a;
  const int64_t of_all = registers * round_up(plan.block_threads(), is_rough ? kLanes : 4 * kLanes);
  if (!has_room(plan)) return false;
  if (plan.shared_bytes(c_) > shared) {
    return no("a block needs {} bytes of shared memory, of {}", plan.shared_bytes(c_), shared);
  }
  if (registers > kRegisters) return no("a thread needs {} registers, of {}", registers, kRegisters);
  if (plan.gives_registers && registers > most_registers(plan)) {
    return no("a thread needs {} registers, of {}", registers, most_registers(plan));
  }
  if (plan.joined > 0 && !leaves_registers(plan, (1 + plan.joined) * plan.registers())) {
    return no("a thread has {} registers, too few for the sums of {} products", most_registers(plan), 1 + plan.joined);
  }
  if (!plan.gives_registers && of_all > kAllRegisters) {
    return no("a block needs {} registers, of {}", of_all, kAllRegisters);
  }
  // What the assembler takes at least: three warpgroups and a warp that copies have 128 each, and with 108 sums it took
  // 134.
  constexpr int64_t kBesideSums = 26;
  const int64_t least = (1 + plan.joined) * plan.registers() + kBesideSums;
  if (is_rough && !plan.gives_registers && least > most_registers(plan)) {
    return no("a thread needs {} registers, of {}", least, most_registers(plan));
  }
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

void Planner::lay_out_all(ContractionPlan& plan, Rows rows) const {
  for (size_t i = 0; i < plan.operands.size(); ++i) {
    if (!plan.operands[i].kept) lay_out(c_, i, plan, rows);
  }
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
  const auto least_cycles = [&](size_t at) { return least_laid_out_cycles(plans[at]); };
  const auto laid_out = [&](size_t at) -> std::optional<ContractionPlan> {
    ContractionPlan& plan = plans[at];
    lay_out_within(plan);
    plan.cycles = estimated_cycles(c_, plan, device_);
    return std::move(plan);
  };
  return best_of_shapes({plans.size(), least_cycles, laid_out}, count);
}

bool Planner::may_multiply() const {
  const bool names_tiles =
      !options_.tile.empty() || !options_.register_tile.empty() || !options_.map_to_threads.empty();
  return options_.tensor_cores.value_or(!names_tiles);
}

std::vector<ContractionPlan> Planner::best(size_t count) const {
  std::vector<ContractionPlan> found = by_tensor_cores(count);
  if (options_.tensor_cores.value_or(false) || c_.selection) return found;
  const auto by_warpgroups = [](const ContractionPlan& plan) { return plan.by_warpgroups(); };
  if (asks_for_warpgroups() && std::any_of(found.begin(), found.end(), by_warpgroups)) return found;
  // Most products by tensor cores need no look at thousands of other plans.
  const double most = most_of(count, found);
  if (most <= least_element_cycles(c_, device_)) return found;
  for (ContractionPlan& plan : by_elements(count, most)) keep_best(std::move(plan), count, found);
  return found;
}

bool Planner::is_whole(const ContractionPlan& plan, const std::vector<size_t>& rows) const {
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    const bool is_row = std::find(rows.begin(), rows.end(), axis) != rows.end();
    if (!is_row && plan.parallel[axis].blocks > 1) return false;
  }
  return true;
}

std::vector<ContractionPlan> Planner::in_chain(const std::vector<size_t>& rows, std::optional<size_t> kept) {
  kept_ = kept;
  const std::optional<TensorCores> cores = tensor_cores_of(c_, classes_, device_, false);
  if (cores && cores->atom && options_.tensor_cores.value_or(true)) return in_chain_by_atoms(*cores, rows);
  if (options_.tensor_cores.value_or(false)) return {};
  return in_chain_by_elements(rows);
}

std::optional<ContractionPlan> Planner::in_stream(const AtomShape& shape, std::optional<size_t> kept) {
  kept_ = kept;
  sparing_ = false;
  const std::optional<TensorCores> cores = tensor_cores_of(c_, classes_, device_, false);
  if (!cores || !cores->atom || !options_.tensor_cores.value_or(true)) return std::nullopt;
  return plan(shape, *cores);
}

/// Tiles are powers of two, so that the products of a chain find as many threads. What they have beyond the columns is
/// zero.
std::vector<ContractionPlan> Planner::in_chain_by_elements(const std::vector<size_t>& rows) const {
  sparing_ = true;
  std::vector<ContractionPlan> found;
  if (classes_.rows.empty() || classes_.unshared >= 0) return found;
  std::set<int64_t> chunks, row_registers, column_registers;
  for (const Shape& shape : shapes(c_, classes_, {main_, outer_steps_}, request_)) {
    if (shape.groups > 1 || !shape.tiles.block.empty()) continue;
    chunks.insert(shape.chunk);
    row_registers.insert(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(shape.row_registers))));
    column_registers.insert(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(shape.column_registers))));
  }
  const auto add = [&](const Shape& shape) {
    std::optional<ContractionPlan> candidate = plan(shape);
    if (!candidate || candidate->groups > 1 || !is_whole(*candidate, rows)) return;
    // Other products may read the tensor by its dimensions.
    const bool has_runs = std::any_of(candidate->operands.begin(), candidate->operands.end(),
                                      [](const OperandPlan& o) { return o.merged + 1 < o.box.size(); });
    if (!has_runs) found.push_back(*std::move(candidate));
  };
  for (const int64_t block_rows : {8, 16, 32, 64, 128}) {
    for (const int64_t of_rows : row_registers) {
      for (const int64_t of_columns : column_registers) {
        for (const int64_t chunk : chunks) {
          add({.chunk = chunk, .tiles = tiles_of_chain(rows, block_rows, of_rows, of_columns)});
        }
      }
    }
  }
  return found;
}

/// All of each axis but `rows`, of which a block has so many values; a thread some of each side.
Tiles Planner::tiles_of_chain(const std::vector<size_t>& rows, int64_t block_rows, int64_t row_registers,
                              int64_t column_registers) const {
  Tiles tiles{std::vector<int64_t>(c_.parallel.size(), 1), std::vector<int64_t>(c_.parallel.size(), 1)};
  const auto deal = [&](const std::vector<size_t>& axes, int64_t registers) {
    for (size_t axis : axes) {
      const bool is_row = std::find(rows.begin(), rows.end(), axis) != rows.end();
      const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(c_.parallel[axis].extent)));
      tiles.block[axis] = is_row ? std::min(block_rows, all) : all;
      if (is_row) block_rows /= tiles.block[axis];
      tiles.thread[axis] = std::min(registers, tiles.block[axis]);
      registers /= tiles.thread[axis];
    }
  };
  deal(classes_.columns, column_registers);
  deal(classes_.rows, row_registers);
  return tiles;
}

BoundedShapes Planner::shapes_by_elements(bool sparing) const {
  sparing_ = sparing;
  const auto all = std::make_shared<const std::vector<Shape>>(shapes(c_, classes_, {main_, outer_steps_}, request_));
  return {.count = all->size(),
          .least_cycles = [this, all](size_t shape) { return least_cycles_of(tiled((*all)[shape])); },
          .plan = [this, all](size_t shape) { return plan((*all)[shape]); }};
}

std::vector<ContractionPlan> Planner::by_elements(size_t count, double most_cycles) const {
  for (const bool sparing : {true, false}) {
    const BoundedShapes shapes = shapes_by_elements(sparing);
    std::vector<ContractionPlan> found = laid_out(best_of(shapes, std::max(count, kLaidOut), most_cycles), count);
    // Where sparing plans take too long, others are not asked for.
    if (!found.empty() || has_plan(shapes)) return found;
  }
  return {};
}

}  // namespace tc::gpu
