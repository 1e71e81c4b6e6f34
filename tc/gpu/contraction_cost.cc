#include "tc/gpu/contraction_cost.h"

#include <algorithm>
#include <cmath>

namespace tc::gpu {
namespace {

constexpr int64_t kLanes = 32;
constexpr double kBarrierCycles = 100;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

/// The time of two things done at once: neither hides behind the other as a whole.
double together(double a, double b) { return std::pow(std::pow(a, 4) + std::pow(b, 4), 0.25); }

/// Of a thread's reads of an operand in shared memory, the part that is left where neighbouring registers read the same
/// elements for neighbouring values of a reduction axis that is unrolled.
double distinct(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  double result = 1;
  for (const Subscript& s : c.operands[operand].subscripts) {
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
double block_cycles(const Contraction& c, const ContractionPlan& plan) {
  double reduction = 1;
  for (const Axis& axis : c.reduction) reduction *= static_cast<double>(axis.extent);
  // Groups that are part of a warp share it.
  const double warps = std::ceil(static_cast<double>(plan.threads()) / kLanes) / static_cast<double>(plan.groups);
  double reads = 0, wavefronts = 0, copies = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const OperandPlan& o = plan.operands[i];
    double count = distinct(c, i, plan);
    for (size_t axis : o.axes) count *= static_cast<double>(plan.parallel[axis].registers);
    double vector = 1;
    if (o.group_axis >= 0) vector = static_cast<double>(plan.parallel[static_cast<size_t>(o.group_axis)].group);
    if (o.along_main) vector = static_cast<double>(plan.vector);
    reads += count / vector;
    // A warp gets 128 bytes in a cycle, wide reads or narrow, and whether its threads read the same or not.
    wavefronts += count * std::max(1.0, static_cast<double>(c.operands[i].type.bytes()) / 4);
    double box = 1;
    for (int64_t extent : o.box) box *= static_cast<double>(extent);
    copies += box / static_cast<double>(o.vector) / kLanes * (o.vector > 1 ? 4 : 2);
  }
  const double issued = reduction * warps * (static_cast<double>(plan.registers()) + 1.5 * reads) / 4;
  const double shared = reduction * warps * wavefronts + copies * static_cast<double>(plan.steps(c));
  const double all_warps = warps * static_cast<double>(plan.groups);
  const double sums = plan.groups == 1 ? 0 : 2 * static_cast<double>(plan.registers()) * all_warps + kBarrierCycles;
  // Without all of a step in one piece, less is read ahead: 5 to 15 % on an H200.
  const bool in_one_piece = plan.registers() * plan.chunk[plan.main] / plan.groups <= plan.most_unrolled;
  return together(issued, shared) * (in_one_piece ? 1 : 1.12) + sums;
}

}  // namespace

int64_t registers_of_thread(const Contraction& c, const ContractionPlan& plan) {
  int64_t result = plan.registers() + 40;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    int64_t fragment = plan.operands[i].along_main ? plan.vector : 1;
    for (size_t axis : plan.operands[i].axes) fragment *= plan.parallel[axis].registers;
    result += fragment * ceil_div(c.operands[i].type.bytes(), 4);
  }
  return result;
}

double estimated_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr double kProcessorThreads = 2048, kProcessorRegisters = 65536, kProcessorShared = 228 * 1024;
  constexpr double kL2Bytes = 3000, kStepCycles = 130, kStartCycles = 1500;  // bytes of all processors in a cycle
  const double rest = c.reduction[plan.main].extent % plan.chunk[plan.main] == 0 ? 0 : 2 * kStartCycles;
  double blocks = 1, points = 1;
  for (size_t axis = 0; axis < c.parallel.size(); ++axis) {
    blocks *= static_cast<double>(plan.parallel[axis].blocks);
    points *= static_cast<double>(c.parallel[axis].extent);
  }
  const auto threads = static_cast<double>(round_up(plan.threads(), kLanes));
  const double resident = std::max(
      1.0, std::floor(std::min({kProcessorThreads / threads,
                                kProcessorRegisters / (threads * static_cast<double>(registers_of_thread(c, plan))),
                                kProcessorShared / static_cast<double>(plan.shared_bytes(c) + 1024), 32.0})));
  const double each = std::ceil(blocks / static_cast<double>(device.processors));
  const double at_once = std::min(resident, each);
  const double warps = at_once * threads / kLanes;
  const double busy = warps / (warps + 2);
  const double waves = std::ceil(each / resident);
  const auto steps = static_cast<double>(plan.steps(c) + 1);
  double bytes = 0, first = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    double box = static_cast<double>(c.operands[i].type.bytes());
    for (int64_t extent : plan.operands[i].box) box *= static_cast<double>(extent);
    bytes += box * static_cast<double>(plan.steps(c)) * blocks;
    first += box * at_once * static_cast<double>(device.processors);
  }
  // Nothing hides the first step's copies, which all processors make at once.
  const double processor =
      each * block_cycles(c, plan) / busy + first / kL2Bytes + waves * (kStartCycles + rest + steps * kStepCycles);
  bytes += points * static_cast<double>(c.update.accumulator.bytes());
  return together(processor, bytes / kL2Bytes + kStartCycles);
}

}  // namespace tc::gpu
