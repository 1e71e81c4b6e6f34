#include "tc/gpu/contraction_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tc/gpu/contraction_cost.h"
#include "tc/gpu/contraction_wish.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kLanes = 32;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

/// What one candidate asks for; 1 for "rows" where all parallel axes are of one class.
struct Shape {
  int64_t rows = 1, columns = 1;                    ///< points of a block
  int64_t row_registers = 1, column_registers = 1;  ///< of a thread
  int64_t groups = 1;
  int64_t chunk = 1;
};

/// Parallel axes by what they have in common, each list innermost first.
struct Classes {
  std::vector<size_t> columns, rows;
  int unshared = -1;  ///< the first of columns, if no operand is used again along it: it is there to be contiguous
};

bool depends(const Operand& operand, size_t axis) {
  return std::any_of(operand.subscripts.begin(), operand.subscripts.end(),
                     [&](const Subscript& s) { return s.parallel[axis] != 0; });
}

/// Whether the last subscript counts along the axis.
bool is_last(const Operand& operand, size_t axis) { return operand.subscripts.back().parallel[axis] == 1; }

bool all_zero(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; });
}

/// A subscript without what has one value in a block.
Subscript within_block(Subscript s, const ContractionPlan& plan) {
  for (size_t axis = 0; axis < s.parallel.size(); ++axis) {
    if (plan.parallel[axis].tile == 1) s.parallel[axis] = 0;
  }
  return s;
}

class Planner {
 public:
  Planner(const Contraction& contraction, const options::MappingOptions& options, const Device& device)
      : c_(contraction), options_(options), device_(device), wish_(wish_of(contraction, options)) {
    classify();
    choose_main();
  }
  std::vector<ContractionPlan> best(size_t count) const;
  std::vector<ContractionPlan> rearranging() const;
  Result<void> fault() const;
  const std::string& why_not() const { return why_not_; }

 private:
  void classify();
  void choose_main();
  std::vector<int64_t> chunks() const;
  std::optional<ContractionPlan> plan(const Shape& shape) const;
  std::optional<ContractionPlan> rearranged(int64_t tile) const;
  bool finish(ContractionPlan& plan) const;
  void distribute(const std::vector<size_t>& axes, int64_t points, int64_t registers, ContractionPlan& plan) const;
  OperandPlan operand_plan(const Operand& operand, const ContractionPlan& plan) const;
  std::optional<size_t> turnable(const Operand& operand, const ContractionPlan& plan) const;
  std::optional<size_t> turned(const Operand& operand, const ContractionPlan& plan) const;
  int64_t copy_vector(const Operand& operand, const ContractionPlan& plan) const;
  int64_t range(const Subscript& s, const ContractionPlan& plan) const;
  bool follow(ContractionPlan& plan) const;
  bool has_threads(const ContractionPlan& plan) const;
  bool has_steps(const ContractionPlan& plan) const;
  bool fits(const ContractionPlan& plan) const;
  std::vector<Shape> shapes() const;
  /// False, for the reason that is given.
  bool no(std::string reason) const {
    if (why_not_.empty()) why_not_ = std::move(reason);
    return false;
  }

  const Contraction& c_;
  const options::MappingOptions& options_;
  const Device& device_;
  Wish wish_;
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

/// Lengths of a step along the main axis; those that leave a rest only where it is little.
std::vector<int64_t> Planner::chunks() const {
  constexpr int64_t kLong = 8, kWhole = 128, kManySteps = 16;
  const int64_t extent = c_.reduction[main_].extent;
  std::vector<int64_t> any, good;
  for (const int64_t chunk : {1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64}) {
    if (chunk > extent || (chunk < 4 && extent >= kLong && !outer_steps_)) continue;
    if (extent % chunk == 0 || (extent >= kManySteps * chunk && chunk % 16 == 0 && chunk != 48 && !outer_steps_)) {
      good.push_back(chunk);
    } else {
      any.push_back(chunk);
    }
  }
  const bool enough = outer_steps_ || (!good.empty() && good.back() >= std::min(extent, kLong));
  if (!enough) good.insert(good.end(), any.begin(), any.end());
  if (extent <= kWhole) good.push_back(extent);
  return good;
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

/// The values of a subscript in a step of a block, from the least to the greatest.
int64_t Planner::range(const Subscript& s, const ContractionPlan& plan) const {
  int64_t result = 1;
  for (size_t i = 0; i < s.parallel.size(); ++i) result += std::abs(s.parallel[i]) * (plan.parallel[i].tile - 1);
  for (size_t i = 0; i < s.reduction.size(); ++i) result += std::abs(s.reduction[i]) * (plan.chunk[i] - 1);
  return result;
}

/// The most elements such that every copy is aligned and lies within the tensor or outside as a whole.
int64_t Planner::copy_vector(const Operand& operand, const ContractionPlan& plan) const {
  const Subscript& s = operand.subscripts.back();
  for (int64_t vector = kVectorBytes / operand.type.bytes(); vector > 1; vector /= 2) {
    int64_t first = s.constant;
    bool aligned = operand.extents.back() % vector == 0;
    for (size_t i = 0; i < s.parallel.size(); ++i) {
      first += s.parallel[i] * c_.parallel[i].begin;
      aligned = aligned && (s.parallel[i] * plan.parallel[i].tile % vector == 0 || plan.parallel[i].blocks == 1);
      aligned = aligned && s.parallel[i] >= 0;
    }
    for (size_t i = 0; i < s.reduction.size(); ++i) {
      first += s.reduction[i] * c_.reduction[i].begin;
      aligned = aligned && (s.reduction[i] * plan.chunk[i] % vector == 0 || plan.chunk[i] == c_.reduction[i].extent);
      aligned = aligned && s.reduction[i] >= 0;
    }
    if (aligned && first % vector == 0) return vector;
  }
  return 1;
}

/// The dimension of an operand that becomes the innermost in shared memory, instead of the main reduction axis: a
/// thread then reads groups of its results' elements, not vectors along the reduction, which take four times the
/// registers.
std::optional<size_t> Planner::turnable(const Operand& operand, const ContractionPlan& plan) const {
  constexpr int64_t kCopied = 4;  // bytes of the least asynchronous copy
  constexpr int64_t kOften = 64;  // below, copies of single elements cost more than that saves
  int64_t uses = 1;
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis)
    uses *= depends(operand, axis) ? 1 : plan.parallel[axis].tile;
  if (uses < kOften) return {};
  Subscript rest = within_block(operand.subscripts.back(), plan);
  if (operand.type.bytes() < kCopied || rest.reduction[main_] != 1 || c_.update.assign == ir::Assign::kSet) return {};
  rest.reduction[main_] = 0;
  if (!all_zero(rest.reduction) || !all_zero(rest.parallel)) return {};
  for (size_t d = operand.subscripts.size() - 1; d-- > 0;) {
    for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
      Subscript other = within_block(operand.subscripts[d], plan);
      if (other.parallel[axis] != 1) continue;
      other.parallel[axis] = 0;
      if (all_zero(other.parallel) && all_zero(other.reduction)) return d;
    }
  }
  return {};
}

/// One operand is turned. Where two lie along the reduction, single copies of both took 11 % more than vectors of both
/// as they lie, on an H200. Turning through registers took 3 % more than single copies.
std::optional<size_t> Planner::turned(const Operand& operand, const ContractionPlan& plan) const {
  const auto can = [&](const Operand& other) { return turnable(other, plan).has_value(); };
  return std::count_if(c_.operands.begin(), c_.operands.end(), can) == 1 ? turnable(operand, plan) : std::nullopt;
}

OperandPlan Planner::operand_plan(const Operand& operand, const ContractionPlan& plan) const {
  OperandPlan result;
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    if (depends(operand, axis)) result.axes.push_back(axis);
  }
  for (const Subscript& s : operand.subscripts) result.box.push_back(range(s, plan));
  const std::optional<size_t> turn = turned(operand, plan);
  result.innermost = turn.value_or(operand.subscripts.size() - 1);
  result.vector = turn ? 1 : copy_vector(operand, plan);
  while (result.vector > 1 && result.vector / 2 >= result.box.back()) result.vector /= 2;
  result.box.back() = round_up(result.box.back(), result.vector);
  const int64_t whole = kVectorBytes / operand.type.bytes();
  const Subscript last = within_block(operand.subscripts.back(), plan);
  result.pitch = operand.subscripts.size() == 1 ? result.box.back() : round_up(result.box.back(), whole);
  if (turn) {
    // Rows a vector apart modulo the banks: a warp's copies, of 8 elements of 4 rows of the tensor, meet in none.
    result.pitch = round_up(result.box[*turn], kLanes) + whole;
  }
  Subscript rest = last;
  rest.reduction[plan.main] = 0;
  if (!turn && last.reduction[plan.main] == 1 && all_zero(rest.reduction) && all_zero(rest.parallel)) {
    result.along_main =
        plan.chunk[plan.main] % plan.groups == 0 && whole > 1 && plan.chunk[plan.main] / plan.groups % whole == 0;
    // Rows an odd number of vectors apart: threads that read different rows meet in no bank.
    if (operand.subscripts.size() > 1 && result.pitch / whole % 2 == 0) result.pitch += whole;
  }
  for (size_t axis : result.axes) {
    Subscript other = within_block(operand.subscripts[result.innermost], plan);
    const bool counts = other.parallel[axis] == 1;
    other.parallel[axis] = 0;
    const bool alone = counts && all_zero(other.parallel) && all_zero(other.reduction);
    if (alone && plan.parallel[axis].group > 1) result.group_axis = static_cast<int>(axis);
  }
  return result;
}

/// Puts what the options say in the place of what was chosen.
bool Planner::follow(ContractionPlan& plan) const {
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    AxisPlan& a = plan.parallel[axis];
    if (wish_.registers[axis] > 0) a.registers = wish_.registers[axis];
    a.tile = wish_.tile[axis] > 0 ? wish_.tile[axis] : round_up(a.tile, a.registers);
    const bool only_column = classes_.columns == std::vector<size_t>{axis};
    const bool only_other = c_.parallel.size() == 2 && !only_column && classes_.columns.size() == 1;
    const int64_t threads = only_column ? wish_.columns : only_other ? wish_.others : 0;
    if (threads > 0 && wish_.registers[axis] == 0 && a.tile % threads == 0) a.registers = a.tile / threads;
    if (a.tile % a.registers != 0) {
      return no(fmt::format("{} results of a thread along '{}' do not divide a block's {}", a.registers,
                            c_.parallel[axis].name, a.tile));
    }
  }
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    if (wish_.chunk[r] > 0) plan.chunk[r] = wish_.chunk[r];
  }
  if (wish_.groups > 0) plan.groups = wish_.groups;
  for (size_t axis : classes_.columns) plan.columns_threads *= plan.parallel[axis].threads();
  return has_threads(plan) && has_steps(plan);
}

bool Planner::has_threads(const ContractionPlan& plan) const {
  if (!wish_.says_threads()) return true;
  const int64_t columns = plan.columns_threads, others = plan.points_threads() / columns;
  return (columns == wish_.columns && others == wish_.others) ||
         no(fmt::format("a block's results and a thread's make {} by {} threads, not {} by {}", columns, others,
                        wish_.columns, wish_.others));
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
  const int64_t shortest = wish_.groups > 0 ? 1 : plan.groups > 8 ? 4 : 8;
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
  distribute(classes_.columns, shape.columns, shape.column_registers, plan);
  distribute(classes_.rows, shape.rows, shape.row_registers, plan);
  if (!follow(plan)) return std::nullopt;
  for (size_t axis : classes_.columns) plan.order.push_back(axis);
  for (size_t axis : classes_.rows) plan.order.push_back(axis);
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    AxisPlan& a = plan.parallel[axis];
    a.blocks = ceil_div(c_.parallel[axis].extent, a.tile);
    for (const Operand& operand : c_.operands) {
      const std::optional<size_t> turn = turned(operand, plan);
      if (!is_last(operand, axis) && !(turn && operand.subscripts[*turn].parallel[axis] == 1)) continue;
      int64_t group = kVectorBytes / operand.type.bytes();
      while (a.registers % group != 0) group /= 2;
      a.group = std::max(a.group, group);
    }
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  if (!finish(plan)) return std::nullopt;
  plan.cycles = estimated_cycles(c_, plan, device_);
  return plan;
}

/// The operands and the copies, when tiles are chosen; false if the plan does not fit.
bool Planner::finish(ContractionPlan& plan) const {
  plan.asynchronous = true;
  plan.vector = kVectorBytes;
  bool any_along = false;
  for (const Operand& operand : c_.operands) {
    plan.operands.push_back(operand_plan(operand, plan));
    const OperandPlan& o = plan.operands.back();
    plan.asynchronous = plan.asynchronous && o.vector * operand.type.bytes() >= 4;
    if (o.along_main) plan.vector = std::min(plan.vector, kVectorBytes / operand.type.bytes());
    any_along = any_along || o.along_main;
  }
  if (!any_along) plan.vector = 1;
  plan.stages = plan.asynchronous ? std::min<int64_t>(options_.copy_stages.value_or(3), plan.steps(c_)) : 1;
  plan.stages = std::max<int64_t>(plan.stages, 1);
  plan.most_unrolled = options_.unroll.value_or(plan.most_unrolled);
  plan.unroll_copies = options_.unroll_copy_shared;
  return fits(plan);
}

/// A tile whose rows are read and written by warps; one element at a time, so that rows in shared memory may have an
/// odd pitch, and threads that read a column meet in no bank.
std::optional<ContractionPlan> Planner::rearranged(int64_t tile) const {
  const int64_t threads = std::max(kLanes, std::min({int64_t{256}, device_.threads_per_block, device_.block[0]}));
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
  plan.order = {last, other};
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    plan.parallel[axis].blocks = ceil_div(c_.parallel[axis].extent, plan.parallel[axis].tile);
    if (axis != last && axis != other) plan.order.push_back(axis);
  }
  if (!finish(plan)) return std::nullopt;
  for (size_t i = 0; i < plan.operands.size(); ++i) {
    OperandPlan& o = plan.operands[i];
    o.vector = 1;
    o.box.back() = range(c_.operands[i].subscripts.back(), plan);
    o.pitch = o.box.back() | 1;
    plan.asynchronous = plan.asynchronous && c_.operands[i].type.bytes() >= 4;
  }
  if (!fits(plan)) return std::nullopt;
  plan.cycles = estimated_cycles(c_, plan, device_);
  return plan;
}

/// Square tiles, large ones where there are enough.
std::vector<ContractionPlan> Planner::rearranging() const {
  constexpr int64_t kSmall = 32;
  double points = 1;
  for (const Axis& axis : c_.parallel) points *= static_cast<double>(axis.extent);
  const bool enough =
      points / static_cast<double>(kRearranged * kRearranged) >= 4.0 * static_cast<double>(device_.processors);
  for (const bool sparing : {true, false}) {
    sparing_ = sparing;
    for (const int64_t tile : {kRearranged, kSmall}) {
      std::optional<ContractionPlan> plan = enough || tile == kSmall ? rearranged(tile) : std::nullopt;
      if (plan) return {*std::move(plan)};
    }
  }
  return {};
}

bool Planner::fits(const ContractionPlan& plan) const {
  constexpr int64_t kSparingRegisters = 200, kSparingOfAll = 49152;  // a quarter is left to spare
  constexpr int64_t kSparingThreads = 256;
  constexpr int64_t kSparingSums = 64;  // with more the assembler runs out of registers for what it reads ahead
  constexpr int64_t kRegisters = 255, kAllRegisters = 65536;
  const int64_t shared = std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
  const int64_t threads = std::min(device_.threads_per_block, device_.block[0]);
  const int64_t registers = registers_of_thread(c_, plan);
  const int64_t of_all = registers * round_up(plan.threads(), 4 * kLanes);
  if (plan.threads() > threads) return no(fmt::format("a block has {} threads, of {}", plan.threads(), threads));
  if (plan.shared_bytes(c_) > shared) {
    return no(fmt::format("a block needs {} bytes of shared memory, of {}", plan.shared_bytes(c_), shared));
  }
  if (registers > kRegisters) return no(fmt::format("a thread needs {} registers, of {}", registers, kRegisters));
  if (of_all > kAllRegisters) return no(fmt::format("a block needs {} registers, of {}", of_all, kAllRegisters));
  return !sparing_ || (plan.threads() <= kSparingThreads && registers <= kSparingRegisters &&
                       plan.registers() <= kSparingSums && of_all <= kSparingOfAll);
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
  const options::MappingOptions options = options_of(plan);
  if (std::any_of(found.begin(), found.end(), [&](const auto& other) { return options_of(other) == options; })) return;
  const auto at = std::upper_bound(found.begin(), found.end(), plan,
                                   [](const auto& a, const auto& b) { return a.cycles < b.cycles; });
  found.insert(at, std::move(plan));
  if (found.size() > count) found.pop_back();
}

/// All shapes that the options leave open.
std::vector<Shape> Planner::shapes() const {
  using Choices = std::vector<int64_t>;
  const Choices one = {1};
  const bool one_class = classes_.rows.empty(), fixed = wish_.says_all_tiles();
  const Choices few = one_class || fixed ? one : Choices{8, 16, 32, 64, 128};
  const Choices many = fixed ? one : Choices{8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  const Choices registers = wish_.says_all_registers() || one_class ? one : Choices{1, 2, 4, 8};
  const Choices more = wish_.says_all_registers() ? one : one_class ? Choices{1, 2, 4, 8, 16} : registers;
  const Choices lengths = wish_.chunk[main_] > 0 ? Choices{wish_.chunk[main_]} : chunks();
  const int64_t most_groups = wish_.groups > 0 ? 1 : 16;
  std::vector<Shape> result;
  for (int64_t rows : few) {
    for (int64_t columns : many) {
      for (int64_t row_registers : registers) {
        for (int64_t column_registers : more) {
          const int64_t threads = rows / std::min(rows, row_registers) * columns / std::min(columns, column_registers);
          for (int64_t groups = 1; groups <= most_groups && (fixed || threads * groups <= 1024); groups *= 2) {
            for (int64_t chunk : lengths) {
              result.push_back({rows, columns, row_registers, column_registers, groups, chunk});
            }
          }
        }
      }
    }
  }
  return result;
}

std::vector<ContractionPlan> Planner::best(size_t count) const {
  std::vector<ContractionPlan> found;
  for (const bool sparing : {true, false}) {
    sparing_ = sparing;
    for (const Shape& shape : shapes()) {
      std::optional<ContractionPlan> candidate = plan(shape);
      if (candidate) keep_best(*std::move(candidate), count, found);
    }
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

int64_t ContractionPlan::registers() const {
  int64_t result = 1;
  for (const AxisPlan& axis : parallel) result *= axis.registers;
  return result;
}

int64_t ContractionPlan::steps(const Contraction& contraction) const {
  int64_t result = 1;
  for (size_t r = 0; r < chunk.size(); ++r) result *= contraction.reduction[r].extent / chunk[r];
  return result;
}

int64_t ContractionPlan::shared_bytes(const Contraction& contraction) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t elements = operands[i].pitch * stages;
    for (size_t d = 0; d < operands[i].box.size(); ++d) elements *= d == operands[i].innermost ? 1 : operands[i].box[d];
    bytes += round_up(elements * contraction.operands[i].type.bytes(), tile::kSharedAlignment);
  }
  const int64_t sums = groups == 1 ? 0 : registers() * threads();
  return bytes + round_up(sums * contraction.update.accumulator.bytes(), tile::kSharedAlignment);
}

namespace {

Result<std::vector<ContractionPlan>> planned(const Contraction& contraction, const options::MappingOptions& options,
                                             const Device& device, size_t count) {
  const Planner planner(contraction, options, device);
  TC_TRY_VOID(planner.fault());
  std::vector<ContractionPlan> plans =
      contraction.update.assign == ir::Assign::kSet ? planner.rearranging() : planner.best(count);
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
