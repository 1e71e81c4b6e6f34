#include "tc/gpu/strategy/contraction/layout.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/tensor_cores.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

constexpr int64_t kLanes = 32, kBanks = 32, kBankBytes = 4, kVectorBytes = 16;

/// Where the threads of the first warp read an operand, per thread and dimension.
std::vector<std::vector<int64_t>> reads_of_warp(const Contraction& c, const Operand& operand, int64_t lead,
                                                const ContractionPlan& plan) {
  std::vector<std::vector<int64_t>> result;
  for (int64_t lane = 0; lane < std::min(kLanes, plan.threads()); ++lane) {
    std::vector<int64_t> local(c.parallel.size(), 0);
    int64_t rest = lane % plan.points_threads();
    for (size_t axis : plan.order) {
      const AxisPlan& a = plan.parallel[axis];
      local[axis] = rest % a.threads() * a.group;
      rest /= a.threads();
    }
    const int64_t main = lane / plan.points_threads() * (plan.chunk[plan.main] / plan.groups);
    std::vector<int64_t> position;
    for (const Subscript& s : operand.subscripts) {
      position.push_back(main * s.reduction[plan.main]);
      for (size_t i = 0; i < s.parallel.size(); ++i) position.back() += s.parallel[i] * local[i];
    }
    position.back() += lead;
    result.push_back(std::move(position));
  }
  return result;
}

/// Lanes whose reads of `bytes` each are served at once.
size_t lanes_at_once(int64_t bytes) { return static_cast<size_t>(kLanes / std::max<int64_t>(bytes / kBankBytes, 1)); }

/// Cycles for so many reads of `bytes` each without conflicts.
int64_t least_cycles_of(size_t reads, int64_t bytes) {
  return static_cast<int64_t>((reads + lanes_at_once(bytes) - 1) / lanes_at_once(bytes));
}

/// Cycles for reads of `bytes` each at these bytes; a bank gives one word, to all who want it, in each.
int64_t cycles_of(const std::vector<int64_t>& addresses, int64_t bytes) {
  const int64_t words = std::max<int64_t>(bytes / kBankBytes, 1);
  const size_t at_once = lanes_at_once(bytes);
  int64_t cycles = 0;
  for (size_t first = 0; first < addresses.size(); first += at_once) {
    // The words that are read, those of a bank in a list.
    struct Touched {
      int64_t word = 0;
      int next = -1;
    };
    std::array<Touched, kLanes> touched;
    std::array<int, kBanks> newest;
    std::array<int64_t, kBanks> load = {};
    newest.fill(-1);
    int count = 0;
    for (size_t lane = first; lane < std::min(first + at_once, addresses.size()); ++lane) {
      for (int64_t word = addresses[lane] / kBankBytes; word < addresses[lane] / kBankBytes + words; ++word) {
        const auto bank = static_cast<size_t>(((word % kBanks) + kBanks) % kBanks);
        int at = newest[bank];
        while (at >= 0 && touched[static_cast<size_t>(at)].word != word) at = touched[static_cast<size_t>(at)].next;
        if (at >= 0) continue;
        touched[static_cast<size_t>(count)] = {word, newest[bank]};
        newest[bank] = count++;
        ++load[bank];
      }
    }
    cycles += *std::max_element(load.begin(), load.end());
  }
  return cycles;
}

/// Elements that a thread reads at once. A window of neighbours is written as single reads, of which NVRTC makes
/// vectors where it sees that they are aligned.
int64_t read_vector(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const OperandPlan& o = plan.operands[operand];
  if (plan.tensor_cores) return o.fragment == FragmentRead::kElements ? 1 : tile::kMatrixRow;
  if (o.along_main) return plan.vector;
  if (o.group_axis >= 0) return plan.parallel[static_cast<size_t>(o.group_axis)].group;
  const Subscript& s = c.operands[operand].subscripts[o.innermost];
  int64_t vector = kVectorBytes / c.operands[operand].type.bytes();
  bool counts = false;
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    if (s.parallel[i] == 0 || plan.parallel[i].tile == 1) continue;
    vector = std::gcd(vector, s.parallel[i] * plan.parallel[i].group);
    counts = counts || s.parallel[i] == 1;
  }
  if (plan.groups > 1 && s.reduction[plan.main] != 0) vector = 1;
  if (o.merged + 1 < o.box.size()) vector = std::gcd(vector, c.operands[operand].row_divisor());
  vector = std::gcd(vector, o.lead);
  return counts ? vector : 1;
}

/// Whether a step's box has, of a dimension of the operand, all of the tensor.
bool is_whole(const Contraction& c, const Operand& operand, size_t dimension, const ContractionPlan& plan) {
  const Subscript& s = operand.subscripts[dimension];
  int64_t first = s.constant;
  bool once = true;
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    first += s.parallel[i] * c.parallel[i].begin;
    once = once && s.parallel[i] >= 0 && (s.parallel[i] == 0 || plan.parallel[i].blocks == 1);
  }
  for (size_t r = 0; r < s.reduction.size(); ++r) {
    first += s.reduction[r] * c.reduction[r].begin;
    once = once && s.reduction[r] >= 0 && (s.reduction[r] == 0 || plan.chunk[r] == c.reduction[r].extent);
  }
  return once && first == 0 && range(s, plan) == operand.extents[dimension];
}

/// Whether a subscript without negative coefficients lies in [0, extent) for all values of the axes. Where a choice
/// takes the other branch, it need not.
bool lies_inside(const Contraction& c, const Subscript& s, int64_t extent) {
  int64_t least = s.constant, greatest = s.constant;
  const auto add = [&](int64_t by, const Axis& axis) {
    least += by * axis.begin;
    greatest += by * (axis.begin + axis.extent - 1);
  };
  for (size_t i = 0; i < s.parallel.size(); ++i) add(s.parallel[i], c.parallel[i]);
  for (size_t r = 0; r < s.reduction.size(); ++r) add(s.reduction[r], c.reduction[r]);
  return least >= 0 && greatest < extent;
}

/// Whether one operand alone reads the tensor.
bool is_read_once(const Contraction& c, const std::string& tensor) {
  const auto chooses = [&](const Operand& o) {
    return o.chosen_row && std::any_of(o.chosen_row->subscripts.begin(), o.chosen_row->subscripts.end(),
                                       [&](const Halide::Expr& e) { return reads_tensor(e, tensor); });
  };
  const auto reads = [&](const poly::Statement& s) { return s.tensor == tensor || reads_tensor(s.value, tensor); };
  if (std::count(c.read_elsewhere.begin(), c.read_elsewhere.end(), tensor) > 0) return false;
  return std::count_if(c.operands.begin(), c.operands.end(), [&](const Operand& o) { return o.tensor == tensor; }) ==
             1 &&
         std::none_of(c.operands.begin(), c.operands.end(), chooses) && !reads(c.update) &&
         std::none_of(c.before.begin(), c.before.end(), reads) && std::none_of(c.after.begin(), c.after.end(), reads);
}

/// Elements of a box from its first to its last.
int64_t held(const OperandPlan& o) {
  int64_t result = 1;
  for (size_t d = 0; d < o.box.size(); ++d) {
    const int64_t rows = d == o.dealt ? o.dealt_by : 1;
    result += (rows - 1) * o.dealt_stride + (o.box[d] / rows - 1) * o.strides[d];
  }
  return result;
}

}  // namespace

int64_t range(const Subscript& s, const ContractionPlan& plan) {
  int64_t result = 1;
  for (size_t i = 0; i < s.parallel.size(); ++i) result += std::abs(s.parallel[i]) * (plan.parallel[i].tile - 1);
  for (size_t i = 0; i < s.reduction.size(); ++i) result += std::abs(s.reduction[i]) * (plan.chunk[i] - 1);
  return result;
}

size_t first_merged(const Contraction& c, const Operand& operand, const ContractionPlan& plan) {
  const size_t last = operand.subscripts.size() - 1;
  if (operand.chosen_row || operand.computed || !operand.inside.empty()) return last;
  size_t first = last;
  // Between what different threads read there is room for elements that keep them from meeting in a bank.
  const auto parts_threads = [&](const Subscript& s) {
    const bool reduces = std::any_of(s.reduction.begin(), s.reduction.end(), [](int64_t by) { return by != 0; });
    bool any = false;
    for (size_t i = 0; i < s.parallel.size(); ++i) any = any || (s.parallel[i] != 0 && plan.parallel[i].threads() > 1);
    return any && !reduces;
  };
  const auto follows = [&](size_t d) { return operand.strides[d - 1] == operand.strides[d] * operand.extents[d]; };
  while (first > 0 && follows(first) && is_whole(c, operand, first, plan) && !parts_threads(operand.subscripts[first]))
    --first;
  const Subscript& s = operand.subscripts[first];
  bool within = !parts_threads(s);
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    within = within && s.parallel[i] >= 0 && (s.parallel[i] == 0 || c.parallel[i].extent % plan.parallel[i].tile == 0);
  }
  for (size_t r = 0; r < s.reduction.size(); ++r) {
    within = within && s.reduction[r] >= 0 && (s.reduction[r] == 0 || c.reduction[r].extent % plan.chunk[r] == 0);
  }
  if (!within || !lies_inside(c, s, operand.extents[first])) ++first;
  if (first >= last || !is_read_once(c, operand.tensor)) return last;
  int64_t run = 1;  // a subscript of all of them has 32 bits
  for (size_t d = first; d <= last; ++d) {
    run *= operand.extents[d];
    if (run > INT32_MAX) return last;
  }
  return first;
}

int64_t merged_vector(const Contraction& c, const Operand& operand, size_t merged, const ContractionPlan& plan) {
  const Subscript& s = operand.subscripts[merged];
  int64_t inner = 1;
  for (size_t d = merged + 1; d < operand.extents.size(); ++d) inner *= operand.extents[d];
  if (operand.at_any_address) return 1;
  int64_t unit = range(s, plan) * inner;
  for (size_t d = 0; d < merged; ++d) unit = std::gcd(unit, operand.strides[d]);
  int64_t first = s.constant;
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    first += s.parallel[i] * c.parallel[i].begin;
    unit = std::gcd(unit, s.parallel[i] * plan.parallel[i].tile * inner);
  }
  for (size_t r = 0; r < s.reduction.size(); ++r) {
    first += s.reduction[r] * c.reduction[r].begin;
    unit = std::gcd(unit, s.reduction[r] * plan.chunk[r] * inner);
  }
  return std::gcd(std::gcd(unit, first * inner), kVectorBytes / operand.type.bytes());
}

void lay_out(const Contraction& c, size_t operand, ContractionPlan& plan, Rows rows) {
  OperandPlan& o = plan.operands[operand];
  const int64_t bytes = c.operands[operand].type.bytes(), vector = read_vector(c, operand, plan);
  const int64_t align = std::max(o.vector, vector), period = std::max(kBanks * kBankBytes / bytes, align);
  std::vector<std::vector<int64_t>> reads;
  if (rows != Rows::kRough) {
    reads = plan.tensor_cores ? atom_reads(c, operand, plan) : reads_of_warp(c, c.operands[operand], o.lead, plan);
  }
  std::vector<int64_t> addresses;
  for (const auto& position : reads) addresses.push_back(position[o.innermost] * bytes);
  o.strides.assign(o.box.size(), 1);
  int64_t stride = o.pitch;
  for (size_t d = o.box.size(); d-- > 0;) {
    if (d >= o.merged) stride = d + 1 == o.box.size() ? o.pitch : o.strides[d + 1] * o.box[d + 1];
    if (d == o.innermost) continue;
    const auto with = [&](int64_t wanted) {
      std::vector<int64_t> result = addresses;
      for (size_t lane = 0; lane < reads.size(); ++lane) result[lane] += reads[lane][d] * wanted * bytes;
      return result;
    };
    const bool varies =
        d < o.merged && std::any_of(reads.begin(), reads.end(), [&](const auto& at) { return at[d] != reads[0][d]; });
    int64_t best = stride;
    if (varies && rows == Rows::kApart) {
      int64_t least = cycles_of(with(stride), vector * bytes);
      const int64_t without_conflicts = least_cycles_of(addresses.size(), vector * bytes);
      for (int64_t more = round_up(stride, align); more < stride + period && least > without_conflicts; more += align) {
        const int64_t cycles = cycles_of(with(more), vector * bytes);
        if (cycles >= least) continue;
        least = cycles;
        best = more;
      }
    }
    addresses = with(best);
    o.strides[d] = best;
    stride = best * o.box[d];
    if (d == o.merged) stride = round_up(stride, align);
  }
  o.stage = stride;
  o.last_stage = held(o);
  o.read_vector = vector;
  if (rows == Rows::kRough) return;
  o.conflicts = static_cast<double>(cycles_of(addresses, vector * bytes)) /
                static_cast<double>(least_cycles_of(addresses.size(), vector * bytes));
}

void lay_out_by_vectors(const Contraction& c, size_t operand, size_t across, int64_t vector, ContractionPlan& plan) {
  constexpr int64_t kServed = 8;  // vectors of 16 bytes that shared memory takes at once
  const Operand& read = c.operands[operand];
  OperandPlan& o = plan.operands[operand];
  const size_t last = o.box.size() - 1;
  const int64_t whole = kVectorBytes / read.type.bytes();
  o.merged = o.innermost = last;
  o.pitch = round_up(o.box[last], whole);
  if (o.pitch / whole % 2 == 0) o.pitch += whole;
  o.strides.assign(o.box.size(), 1);
  int64_t stride = o.pitch;
  for (size_t d = last; d-- > 0;) {
    o.strides[d] = stride;
    const bool is_across = read.subscripts[d].parallel[across] == 1 && o.box[d] % vector == 0 && o.dealt_by == 1;
    if (!is_across) {
      stride *= o.box[d];
      continue;
    }
    o.dealt = d;
    o.dealt_by = vector;
    o.dealt_stride = stride * (o.box[d] / vector);
    // Rows that are copied at once stand behind each other in the banks.
    const int64_t of_row = o.box[last] / whole;
    if (of_row < kServed) o.dealt_stride = round_up(o.dealt_stride, kServed * whole) + of_row * whole;
    stride = o.dealt_stride * vector;
  }
  o.stage = stride;
  o.last_stage = held(o);
  o.read_vector = 1;
  o.conflicts = 1;
}

}  // namespace tc::gpu
