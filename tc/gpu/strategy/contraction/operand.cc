#include "tc/gpu/strategy/contraction/operand.h"

#include <algorithm>

#include "tc/gpu/strategy/contraction/layout.h"
#include "tc/support/round.h"

namespace tc::gpu {

bool depends(const Operand& operand, size_t axis) {
  return std::any_of(operand.subscripts.begin(), operand.subscripts.end(),
                     [&](const Subscript& s) { return s.parallel[axis] != 0; });
}

const Operand& in_memory(const Contraction& c, size_t operand) {
  const Operand& o = c.operands[operand];
  return o.computed && o.computed->source ? *o.computed->source : o;
}

ir::Range range_read(const Contraction& c, const Operand& operand, size_t dimension) {
  const Subscript& s = operand.subscripts[dimension];
  int64_t least = s.constant, greatest = s.constant;
  const auto add = [&](const std::vector<int64_t>& by, const std::vector<Axis>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t first = by[i] * axes[i].begin, last = by[i] * (axes[i].begin + axes[i].extent - 1);
      least += std::min(first, last);
      greatest += std::max(first, last);
    }
  };
  add(s.parallel, c.parallel);
  add(s.reduction, c.reduction);
  if (!operand.inside.empty()) {
    least = std::max(least, operand.inside[dimension].least.value_or(least));
    greatest = std::min(greatest, operand.inside[dimension].greatest.value_or(greatest));
  }
  return {least, greatest - least + 1};
}

double bytes_read(const Contraction& c, const Operand& operand) {
  double result = operand.type.bytes();
  for (size_t d = 0; d < operand.extents.size(); ++d) {
    int64_t values = operand.extents[d];
    if (!operand.computed && operand.selected != d) {
      const ir::Range read = range_read(c, operand, d);
      const int64_t first = std::max<int64_t>(read.begin, 0);
      values = std::max<int64_t>(std::min(read.begin + read.extent, values) - first, 0);
    }
    result *= static_cast<double>(values);
  }
  return result;
}

namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kLanes = 32;

/// A coefficient of a subscript, without what has one value in a block.
int64_t parallel_within(const Subscript& s, size_t axis, const ContractionPlan& plan) {
  return plan.parallel[axis].tile == 1 ? 0 : s.parallel[axis];
}

enum class Kind { kParallel, kReduction };

/// Whether neighbours on an axis read neighbours of a dimension: it counts there alone, and in no other, as it would
/// along a diagonal.
bool steps_alone(const Operand& operand, size_t dimension, Kind kind, size_t axis, const ContractionPlan& plan) {
  const Subscript& own = operand.subscripts[dimension];
  for (size_t i = 0; i < own.parallel.size(); ++i) {
    const int64_t wanted = kind == Kind::kParallel && i == axis ? 1 : 0;
    if (parallel_within(own, i, plan) != wanted) return false;
  }
  for (size_t r = 0; r < own.reduction.size(); ++r) {
    if (own.reduction[r] != (kind == Kind::kReduction && r == axis ? 1 : 0)) return false;
  }
  for (size_t d = 0; d < operand.subscripts.size(); ++d) {
    const Subscript& s = operand.subscripts[d];
    if (d != dimension && (kind == Kind::kParallel ? s.parallel[axis] : s.reduction[axis]) != 0) return false;
  }
  return true;
}

/// The most elements such that every copy is aligned and lies within the tensor or outside as a whole.
int64_t copy_vector(const Contraction& c, const Operand& operand, const ContractionPlan& plan) {
  const Subscript& s = operand.subscripts.back();
  for (int64_t vector = kVectorBytes / operand.type.bytes(); vector > 1; vector /= 2) {
    int64_t first = s.constant;
    bool aligned = operand.row_divisor() % vector == 0;
    for (size_t i = 0; i < s.parallel.size(); ++i) {
      first += s.parallel[i] * c.parallel[i].begin;
      aligned = aligned && (s.parallel[i] * plan.parallel[i].tile % vector == 0 || plan.parallel[i].blocks == 1);
      aligned = aligned && s.parallel[i] >= 0;
    }
    for (size_t i = 0; i < s.reduction.size(); ++i) {
      first += s.reduction[i] * c.reduction[i].begin;
      aligned = aligned && (s.reduction[i] * plan.chunk[i] % vector == 0 || plan.chunk[i] == c.reduction[i].extent);
      aligned = aligned && s.reduction[i] >= 0;
    }
    if (operand.chosen_row) aligned = aligned && operand.chosen_row->unit % vector == 0;
    if (aligned && first % vector == 0) return vector;
  }
  return 1;
}

/// Of an operand with borders of 0: the most elements such that every copy is aligned and lies within the borders or
/// outside as a whole, when rows begin `lead` elements early.
int64_t bordered_vector(const Contraction& c, const Operand& operand, const ContractionPlan& plan, int64_t& lead) {
  const Subscript& s = operand.subscripts.back();
  const ir::Inside& inside = operand.inside.back();
  int64_t first = s.constant;
  if (operand.computed) return 1;
  for (int64_t vector = kVectorBytes / operand.type.bytes(); vector > 1; vector /= 2) {
    bool aligned = operand.row_divisor() % vector == 0 && inside.least.value_or(0) % vector == 0 &&
                   (inside.greatest.value_or(-1) + 1) % vector == 0;
    first = s.constant;
    for (size_t i = 0; i < s.parallel.size(); ++i) {
      first += s.parallel[i] * c.parallel[i].begin;
      aligned = aligned && s.parallel[i] >= 0;
      aligned = aligned && (s.parallel[i] * plan.parallel[i].tile % vector == 0 || plan.parallel[i].blocks == 1);
    }
    for (size_t i = 0; i < s.reduction.size(); ++i) {
      first += s.reduction[i] * c.reduction[i].begin;
      aligned = aligned && s.reduction[i] >= 0;
      aligned = aligned && (s.reduction[i] * plan.chunk[i] % vector == 0 || plan.chunk[i] == c.reduction[i].extent);
    }
    const int64_t early = (first % vector + vector) % vector;
    // What lies behind the reduction is set to zero by whole copies.
    const int64_t left = c.reduction[plan.main].extent % plan.chunk[plan.main];
    if (plan.tensor_cores && s.reduction[plan.main] != 0) aligned = aligned && (left + early) % vector == 0;
    if (!aligned) continue;
    lead = early;
    return vector;
  }
  lead = 0;
  return 1;
}

/// The dimension of an operand that becomes the innermost in shared memory, instead of the main reduction axis: a
/// thread then reads groups of its results' elements, not vectors along the reduction, which take four times the
/// registers.
std::optional<size_t> turnable(const Contraction& c, const Operand& operand, const ContractionPlan& plan) {
  constexpr int64_t kCopied = 4;  // bytes of the least asynchronous copy
  constexpr int64_t kOften = 64;  // below, copies of single elements cost more than that saves
  int64_t uses = 1;
  for (size_t axis = 0; axis < c.parallel.size(); ++axis) uses *= depends(operand, axis) ? 1 : plan.parallel[axis].tile;
  if (uses < kOften || operand.chosen_row) return {};
  const size_t last = operand.subscripts.size() - 1;
  if (operand.type.bytes() < kCopied || c.update.assign == ir::Assign::kSet) return {};
  if (!steps_alone(operand, last, Kind::kReduction, plan.main, plan)) return {};
  for (size_t d = last; d-- > 0;) {
    for (size_t axis = 0; axis < c.parallel.size(); ++axis) {
      if (steps_alone(operand, d, Kind::kParallel, axis, plan)) return d;
    }
  }
  return {};
}

}  // namespace

bool has_axis_alone(const Operand& operand, size_t axis) {
  return std::all_of(operand.subscripts.begin(), operand.subscripts.end(), [&](const Subscript& s) {
    if (s.reduction[axis] == 0) return true;
    const auto used = std::count_if(s.reduction.begin(), s.reduction.end(), [](int64_t by) { return by != 0; }) +
                      std::count_if(s.parallel.begin(), s.parallel.end(), [](int64_t by) { return by != 0; });
    return used == 1 && s.reduction[axis] == 1;
  });
}

bool steps_along(const Operand& operand, size_t dimension, size_t axis, const ContractionPlan& plan) {
  return steps_alone(operand, dimension, Kind::kParallel, axis, plan);
}

/// One operand is turned. Where two lie along the reduction, single copies of both took 11 % more than vectors of both
/// as they lie, on an H200. Turning through registers took 3 % more than single copies.
Turned turned(const Contraction& c, const ContractionPlan& plan) {
  std::optional<Turned> found;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const std::optional<size_t> dimension = turnable(c, c.operands[i], plan);
    if (!dimension) continue;
    if (found) return {};
    found = Turned{i, *dimension};
  }
  return found.value_or(Turned());
}

OperandPlan operand_plan(const Contraction& c, size_t number, Turned turned, const ContractionPlan& plan) {
  const Operand& operand = c.operands[number];
  OperandPlan result;
  for (size_t axis = 0; axis < c.parallel.size(); ++axis) {
    if (depends(operand, axis)) result.axes.push_back(axis);
  }
  for (const Subscript& s : operand.subscripts) result.box.push_back(range(s, plan));
  const std::optional<size_t> turn = turned.of(number);
  result.innermost = turn.value_or(operand.subscripts.size() - 1);
  result.merged = operand.subscripts.size() - 1;
  result.vector = turn                     ? 1
                  : operand.inside.empty() ? copy_vector(c, operand, plan)
                                           : bordered_vector(c, operand, plan, result.lead);
  while (result.vector > 1 && result.vector / 2 >= result.box.back()) result.vector /= 2;
  result.lead %= result.vector;
  result.box.back() = round_up(result.box.back() + result.lead, result.vector);
  const int64_t whole = kVectorBytes / operand.type.bytes();
  result.pitch = operand.subscripts.size() == 1 ? result.box.back() : round_up(result.box.back(), whole);
  if (turn) {
    // Rows a vector apart modulo the banks: a warp's copies, of 8 elements of 4 rows of the tensor, meet in none.
    result.pitch = round_up(result.box[*turn], kLanes) + whole;
  }
  if (!turn && result.lead == 0 && steps_alone(operand, result.innermost, Kind::kReduction, plan.main, plan)) {
    result.along_main =
        plan.chunk[plan.main] % plan.groups == 0 && whole > 1 && plan.chunk[plan.main] / plan.groups % whole == 0;
    // Rows an odd number of vectors apart: threads that read different rows meet in no bank.
    if (operand.subscripts.size() > 1 && result.pitch / whole % 2 == 0) result.pitch += whole;
  }
  if (plan.tensor_cores || result.lead > 0) return result;
  for (size_t axis : result.axes) {
    const int64_t group = plan.parallel[axis].group;
    if (group > 1 && whole % group == 0 && steps_alone(operand, result.innermost, Kind::kParallel, axis, plan))
      result.group_axis = static_cast<int>(axis);
  }
  const size_t merged = first_merged(c, operand, plan);
  const bool reduces = c.update.assign != ir::Assign::kSet && operand.inside.empty();
  if (reduces && !turn && !result.along_main && result.group_axis < 0 && merged < result.merged) {
    result.merged = merged;
    result.box.back() = range(operand.subscripts.back(), plan);
    result.vector = merged_vector(c, operand, merged, plan);
  }
  return result;
}

std::vector<size_t> run_across(const Contraction& c, const Operand& operand) {
  std::vector<size_t> result;
  const size_t last = c.parallel.size() - 1;
  for (size_t d = operand.subscripts.size(); d-- > 0;) {
    const Subscript& s = operand.subscripts[d];
    std::optional<size_t> own;
    for (size_t axis = 0; axis < s.parallel.size(); ++axis) {
      if (s.parallel[axis] == 0) continue;
      if (s.parallel[axis] != 1 || own) return {};
      own = axis;
    }
    if (!own || s.constant + c.parallel[*own].begin != 0) return {};
    if (*own == last) return result;
    const bool is_whole = c.parallel[*own].extent == operand.extents[d];
    if (!is_whole || std::find(result.begin(), result.end(), *own) != result.end()) return {};
    result.push_back(*own);
  }
  return {};
}

OperandPlan kept_operand(const Contraction& c, size_t number, const ContractionPlan& plan) {
  const Operand& operand = c.operands[number];
  OperandPlan result;
  result.kept = true;
  for (size_t axis = 0; axis < c.parallel.size(); ++axis) {
    if (depends(operand, axis)) result.axes.push_back(axis);
  }
  for (size_t d = 0; d < operand.subscripts.size(); ++d) {
    const Subscript& s = operand.subscripts[d];
    result.box.push_back(range(s, plan));
    const bool reduces = std::any_of(s.reduction.begin(), s.reduction.end(), [](int64_t by) { return by != 0; });
    if (reduces) result.innermost = d;
  }
  result.merged = result.box.size() - 1;
  const bool along = operand.subscripts[result.innermost].reduction[plan.main] == 1;
  const int64_t whole = kVectorBytes / operand.type.bytes();
  result.along_main = along && !plan.tensor_cores && whole > 1 && plan.chunk[plan.main] % whole == 0;
  if (result.along_main) result.read_vector = whole;
  constexpr int64_t kOfMatrix = 2;  // bytes of an element
  result.fragment = along && operand.type.bytes() == kOfMatrix ? FragmentRead::kAlong : FragmentRead::kElements;
  return result;
}

}  // namespace tc::gpu
