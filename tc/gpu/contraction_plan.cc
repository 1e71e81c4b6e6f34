#include "tc/gpu/contraction_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kLanes = 32;
constexpr double kBarrierCycles = 100;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

/// The time of two things done at once: neither hides behind the other as a whole.
double together(double a, double b) { return std::pow(std::pow(a, 4) + std::pow(b, 4), 0.25); }

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

class Planner {
 public:
  Planner(const Contraction& contraction, const options::MappingOptions& options, const Device& device)
      : c_(contraction), options_(options), device_(device) {
    classify();
    choose_main();
  }
  std::optional<ContractionPlan> best() const;
  std::optional<ContractionPlan> rearranging() const;

 private:
  void classify();
  void choose_main();
  std::vector<int64_t> chunks() const;
  std::optional<ContractionPlan> plan(const Shape& shape) const;
  bool finish(ContractionPlan& plan) const;
  void distribute(const std::vector<size_t>& axes, int64_t points, int64_t registers, ContractionPlan& plan) const;
  OperandPlan operand_plan(const Operand& operand, const ContractionPlan& plan) const;
  std::optional<size_t> turned(const Operand& operand, const ContractionPlan& plan) const;
  int64_t copy_vector(const Operand& operand, const ContractionPlan& plan) const;
  int64_t range(const Subscript& s, const ContractionPlan& plan) const;
  bool fits(const ContractionPlan& plan) const;
  double estimate(const ContractionPlan& plan) const;
  double distinct(size_t operand, const ContractionPlan& plan) const;
  double block_cycles(const ContractionPlan& plan) const;
  int64_t registers_of_thread(const ContractionPlan& plan) const;

  const Contraction& c_;
  const options::MappingOptions& options_;
  const Device& device_;
  Classes classes_;
  size_t main_ = 0;
  std::vector<int64_t> chunk_;  ///< of the other reduction axes
  bool outer_steps_ = false;    ///< some of them run around the main one
};

void Planner::classify() {
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
std::optional<size_t> Planner::turned(const Operand& operand, const ContractionPlan& plan) const {
  constexpr int64_t kCopied = 4;  // bytes of the least asynchronous copy
  constexpr int64_t kOften = 64;  // below, copies of single elements cost more than that saves
  int64_t uses = 1;
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis)
    uses *= depends(operand, axis) ? 1 : plan.parallel[axis].tile;
  if (uses < kOften) return {};
  Subscript rest = operand.subscripts.back();
  if (operand.type.bytes() < kCopied || rest.reduction[main_] != 1 || c_.update.assign == ir::Assign::kSet) return {};
  rest.reduction[main_] = 0;
  if (!all_zero(rest.reduction) || !all_zero(rest.parallel)) return {};
  for (size_t d = operand.subscripts.size() - 1; d-- > 0;) {
    for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
      Subscript other = operand.subscripts[d];
      if (other.parallel[axis] != 1) continue;
      other.parallel[axis] = 0;
      if (all_zero(other.parallel) && all_zero(other.reduction)) return d;
    }
  }
  return {};
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
  const Subscript& last = operand.subscripts.back();
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
    Subscript other = operand.subscripts[result.innermost];
    const bool counts = other.parallel[axis] == 1;
    other.parallel[axis] = 0;
    const bool alone = counts && all_zero(other.parallel) && all_zero(other.reduction);
    if (alone && plan.parallel[axis].group > 1) result.group_axis = static_cast<int>(axis);
  }
  return result;
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
  for (size_t axis : classes_.columns) plan.order.push_back(axis);
  for (size_t axis : classes_.rows) plan.order.push_back(axis);
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    AxisPlan& a = plan.parallel[axis];
    a.blocks = ceil_div(c_.parallel[axis].extent, a.tile);
    for (const Operand& operand : c_.operands) {
      const std::optional<size_t> turn = turned(operand, plan);
      if (!is_last(operand, axis) && !(turn && operand.subscripts[*turn].parallel[axis] == 1)) continue;
      a.group = std::max(a.group, std::min(a.registers, kVectorBytes / operand.type.bytes()));
    }
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  // A group's part of a step is long enough for vectors, and for what a barrier costs.
  const int64_t shortest = plan.groups > 8 ? 4 : 8;
  const int64_t part = plan.chunk[main_] / plan.groups;
  if (part * plan.groups != plan.chunk[main_] || (plan.groups > 1 && part < shortest)) return std::nullopt;
  if (!finish(plan)) return std::nullopt;
  plan.cycles = estimate(plan);
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
  return fits(plan);
}

/// Square tiles, whose rows are read and written by warps; one element at a time, so that rows in shared memory may
/// have an odd pitch, and threads that read a column meet in no bank.
std::optional<ContractionPlan> Planner::rearranging() const {
  constexpr int64_t kLarge = 64, kSmall = 32, kThreads = 256;
  const size_t last = c_.parallel.size() - 1;
  size_t other = last;
  for (size_t axis = 0; axis < last; ++axis) {
    if (is_last(c_.operands[0], axis)) other = axis;
  }
  double points = 1;
  for (const Axis& axis : c_.parallel) points *= static_cast<double>(axis.extent);
  for (const int64_t tile : {kLarge, kSmall}) {
    ContractionPlan plan;
    plan.parallel.resize(c_.parallel.size());
    plan.chunk = {1};
    AxisPlan& columns = plan.parallel[last];
    columns.tile = std::min(tile, round_up(c_.parallel[last].extent, kLanes));
    columns.registers = columns.tile / kLanes;
    AxisPlan& rows = plan.parallel[other];
    rows.registers = tile * kLanes / kThreads;
    rows.tile = tile;
    plan.order = {last, other};
    for (size_t axis = c_.parallel.size(); axis-- > 0;) {
      plan.parallel[axis].blocks = ceil_div(c_.parallel[axis].extent, plan.parallel[axis].tile);
      if (axis != last && axis != other) plan.order.push_back(axis);
    }
    const bool enough = points / static_cast<double>(tile * tile) >= 4.0 * static_cast<double>(device_.processors);
    if (!enough && tile != kSmall) continue;
    if (!finish(plan)) continue;
    for (size_t i = 0; i < plan.operands.size(); ++i) {
      OperandPlan& o = plan.operands[i];
      o.vector = 1;
      o.box.back() = range(c_.operands[i].subscripts.back(), plan);
      o.pitch = o.box.back() | 1;
      plan.asynchronous = plan.asynchronous && c_.operands[i].type.bytes() >= 4;
    }
    if (fits(plan)) return plan;
  }
  return std::nullopt;
}

int64_t Planner::registers_of_thread(const ContractionPlan& plan) const {
  int64_t result = plan.registers() + 40;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    int64_t fragment = plan.operands[i].along_main ? plan.vector : 1;
    for (size_t axis : plan.operands[i].axes) fragment *= plan.parallel[axis].registers;
    result += fragment * ceil_div(c_.operands[i].type.bytes(), 4);
  }
  return result;
}

bool Planner::fits(const ContractionPlan& plan) const {
  constexpr int64_t kMostRegisters = 200, kAllRegisters = 49152;  // a quarter is left to spare
  constexpr int64_t kMostSums = 64;  // with more the assembler runs out of registers for what it reads ahead
  const int64_t shared = std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
  return plan.threads() <= std::min<int64_t>(device_.threads_per_block, 256) && plan.threads() <= device_.block[0] &&
         plan.shared_bytes(c_) <= shared && registers_of_thread(plan) <= kMostRegisters &&
         plan.registers() <= kMostSums &&
         registers_of_thread(plan) * round_up(plan.threads(), 4 * kLanes) <= kAllRegisters;
}

/// Of a thread's reads of an operand in shared memory, the part that is left where neighbouring registers read the same
/// elements for neighbouring values of a reduction axis that is unrolled.
double Planner::distinct(size_t operand, const ContractionPlan& plan) const {
  double result = 1;
  for (const Subscript& s : c_.operands[operand].subscripts) {
    double span = 1, all = 1;
    for (size_t i = 0; i < s.parallel.size(); ++i) {
      const AxisPlan& a = plan.parallel[i];
      if (s.parallel[i] != 0 && (a.group == a.registers || a.threads() == 1)) {
        span += static_cast<double>(std::abs(s.parallel[i]) * (a.registers - 1));
        all *= static_cast<double>(a.registers);
      }
    }
    for (size_t r = 0; r < s.reduction.size(); ++r) {
      if (s.reduction[r] == 0 || r == plan.main || plan.chunk[r] == 1) continue;
      span += static_cast<double>(std::abs(s.reduction[r]) * (plan.chunk[r] - 1));
      all *= static_cast<double>(plan.chunk[r]);
    }
    result *= std::min(1.0, span / all);
  }
  return result;
}

/// Of a processor for one block: what it issues, while shared memory gives what is read.
double Planner::block_cycles(const ContractionPlan& plan) const {
  double reduction = 1;
  for (const Axis& axis : c_.reduction) reduction *= static_cast<double>(axis.extent);
  // Groups that are part of a warp share it.
  const double warps = std::ceil(static_cast<double>(plan.threads()) / kLanes) / static_cast<double>(plan.groups);
  double reads = 0, wavefronts = 0, copies = 0;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    const OperandPlan& o = plan.operands[i];
    double count = distinct(i, plan);
    for (size_t axis : o.axes) count *= static_cast<double>(plan.parallel[axis].registers);
    double vector = 1;
    if (o.group_axis >= 0) vector = static_cast<double>(plan.parallel[static_cast<size_t>(o.group_axis)].group);
    if (o.along_main) vector = static_cast<double>(plan.vector);
    reads += count / vector;
    // A warp gets 128 bytes in a cycle, wide reads or narrow, and whether its threads read the same or not.
    wavefronts += count * std::max(1.0, static_cast<double>(c_.operands[i].type.bytes()) / 4);
    double box = 1;
    for (int64_t extent : o.box) box *= static_cast<double>(extent);
    copies += box / static_cast<double>(o.vector) / kLanes * (o.vector > 1 ? 4 : 2);
  }
  const double issued = reduction * warps * (static_cast<double>(plan.registers()) + 1.5 * reads) / 4;
  const double shared = reduction * warps * wavefronts + copies * static_cast<double>(plan.steps(c_));
  const double all_warps = warps * static_cast<double>(plan.groups);
  const double sums = plan.groups == 1 ? 0 : 2 * static_cast<double>(plan.registers()) * all_warps + kBarrierCycles;
  // Without all of a step in one piece, less is read ahead: 5 to 15 % on an H200.
  const bool in_one_piece = plan.registers() * plan.chunk[main_] / plan.groups <= kMostUnrolled;
  return together(issued, shared) * (in_one_piece ? 1 : 1.12) + sums;
}

double Planner::estimate(const ContractionPlan& plan) const {
  constexpr double kProcessorThreads = 2048, kProcessorRegisters = 65536, kProcessorShared = 228 * 1024;
  constexpr double kL2Bytes = 3000, kStepCycles = 130, kStartCycles = 1500;  // bytes of all processors in a cycle
  const double rest = c_.reduction[main_].extent % plan.chunk[main_] == 0 ? 0 : 2 * kStartCycles;
  double blocks = 1, points = 1;
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    blocks *= static_cast<double>(plan.parallel[axis].blocks);
    points *= static_cast<double>(c_.parallel[axis].extent);
  }
  const auto threads = static_cast<double>(round_up(plan.threads(), kLanes));
  const double resident = std::max(
      1.0, std::floor(std::min({kProcessorThreads / threads,
                                kProcessorRegisters / (threads * static_cast<double>(registers_of_thread(plan))),
                                kProcessorShared / static_cast<double>(plan.shared_bytes(c_) + 1024), 32.0})));
  const double each = std::ceil(blocks / static_cast<double>(device_.processors));
  const double at_once = std::min(resident, each);
  const double warps = at_once * threads / kLanes;
  const double busy = warps / (warps + 2);
  const double waves = std::ceil(each / resident);
  const auto steps = static_cast<double>(plan.steps(c_) + 1);
  double bytes = 0, first = 0;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    double box = static_cast<double>(c_.operands[i].type.bytes());
    for (int64_t extent : plan.operands[i].box) box *= static_cast<double>(extent);
    bytes += box * static_cast<double>(plan.steps(c_)) * blocks;
    first += box * at_once * static_cast<double>(device_.processors);
  }
  // Nothing hides the first step's copies, which all processors make at once.
  const double processor =
      each * block_cycles(plan) / busy + first / kL2Bytes + waves * (kStartCycles + rest + steps * kStepCycles);
  bytes += points * static_cast<double>(c_.update.accumulator.bytes());
  return together(processor, bytes / kL2Bytes + kStartCycles);
}

std::optional<ContractionPlan> Planner::best() const {
  std::optional<ContractionPlan> best;
  const auto consider = [&](const Shape& shape) {
    const std::optional<ContractionPlan> candidate = plan(shape);
    if (candidate && (!best || candidate->cycles < best->cycles)) best = candidate;
  };
  using Choices = std::vector<int64_t>;
  const bool one_class = classes_.rows.empty();
  const Choices few = {8, 16, 32, 64, 128}, many = {8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  const Choices registers = {1, 2, 4, 8}, more = {1, 2, 4, 8, 16};
  for (int64_t rows : one_class ? Choices{1} : few) {
    for (int64_t columns : many) {
      for (int64_t row_registers : one_class ? Choices{1} : registers) {
        for (int64_t column_registers : one_class ? more : registers) {
          const int64_t threads = rows / std::min(rows, row_registers) * columns / std::min(columns, column_registers);
          for (int64_t groups = 1; groups <= 16 && threads * groups <= 1024; groups *= 2) {
            for (int64_t chunk : chunks()) {
              consider({rows, columns, row_registers, column_registers, groups, chunk});
            }
          }
        }
      }
    }
  }
  return best;
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

std::optional<ContractionPlan> plan_contraction(const Contraction& contraction, const options::MappingOptions& options,
                                                const Device& device) {
  const Planner planner(contraction, options, device);
  return contraction.update.assign == ir::Assign::kSet ? planner.rearranging() : planner.best();
}

}  // namespace tc::gpu
