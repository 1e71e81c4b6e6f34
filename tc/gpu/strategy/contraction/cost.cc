#include "tc/gpu/strategy/contraction/cost.h"

#include "tc/gpu/strategy/contraction/atom_cost.h"
#include "tc/gpu/strategy/contraction/computed_rows.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/warpgroup_cost.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/round.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tc::gpu {
namespace {

constexpr double kHalfFloatBytes = 2;

constexpr int64_t kLanes = 32;
constexpr double kSchedulers = 4;  ///< of a processor: each issues one instruction of one of its warps in a cycle
constexpr double kBarrierCycles = 100;
constexpr double kSector = 32;           ///< bytes
constexpr double kL2Bytes = 3000;        ///< of all processors in a cycle
constexpr double kArrivalCycles = 1000;  ///< from the start of a step's copies to the last one's end
constexpr double kAlike = 0.75;

/// The products that a thread lays out for one value of the main reduction axis.
int64_t products_of_value(const Contraction& c, const ContractionPlan& plan) {
  int64_t result = plan.registers();
  for (size_t r = 0; r < c.reduction.size(); ++r) result *= r == plan.main ? 1 : plan.chunk[r];
  return result;
}

/// Whether all values of the main axis in a step stand in one piece of text with the windows of the others.
bool main_is_laid_out(const Contraction& c, const ContractionPlan& plan) {
  return plan.vector == 1 && products_of_value(c, plan) * plan.chunk[plan.main] / plan.groups <= plan.most_unrolled;
}

/// Cycles of a processor to write a block's results of 16 bits, which are halves of sectors at best. Of rows of odd
/// length they are stored one by one: 13 million took 109 us on an H100.
double narrow_store_cycles(const Contraction& c, const ContractionPlan& plan) {
  constexpr double kInVectors = 0.15;  // for each result
  if (std::all_of(c.stored.begin(), c.stored.end(), [](const StoredTensor& t) { return t.type.bytes() > 2; })) return 0;
  const bool in_vectors =
      std::all_of(c.stored.begin(), c.stored.end(), [](const StoredTensor& t) { return t.row_divisor() % 2 == 0; });
  const auto results = static_cast<double>(plan.registers() * plan.points_threads());
  return results * (in_vectors ? kInVectors : 1 + 0.1 * static_cast<double>(plan.parallel[plan.order[0]].group));
}

/// Cycles of a processor to write a block's results: two sectors in each, or one line of which threads write parts.
double store_cycles(const Contraction& c, const ContractionPlan& plan) {
  constexpr double kLine = 128;
  const AxisPlan& a = plan.parallel[plan.order[0]];
  const auto bytes = static_cast<double>(c.update.accumulator.bytes()), group = static_cast<double>(a.group);
  const bool is_last = plan.order[0] + 1 == plan.parallel.size();
  const bool is_vector =
      is_last && a.group <= 4 && (a.group & (a.group - 1)) == 0 && c.parallel.back().extent % a.group == 0;
  const double apart = is_last && a.threads() > 1 ? group * bytes : kLine;
  const double lines = std::max(apart / kLine, 1 / static_cast<double>(is_last ? a.threads() : 1));
  const double each = std::min(1.0, std::max(std::min(1.0, apart / kSector) / 2, lines));
  return static_cast<double>(plan.registers() * plan.points_threads()) * each / (is_vector ? group : 1);
}

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
      const int64_t values = r == plan.main ? plan.chunk[r] / plan.groups : plan.chunk[r];
      if (s.reduction[r] == 0 || values == 1 || (r == plan.main && !main_is_laid_out(c, plan))) continue;
      span += static_cast<double>(std::abs(s.reduction[r]) * (values - 1));
      all *= static_cast<double>(values);
    }
    result *= std::min(1.0, span / all);
  }
  return result;
}

/// Whether a gain by reads_alike is to be expected. For elements of 16 bits an H200 showed it where each processor has
/// many results, or where copies wait for each other; with less to do, plans chosen by it took longer.
bool gains_by_alike(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr int64_t kManyResults = 24576;  // of a processor
  int64_t points = 1;
  for (const Axis& axis : c.parallel) points *= axis.extent;
  return !converts_operands(c) || !plan.asynchronous || points >= kManyResults * device.processors;
}

/// Whether neighbouring threads, eight of which are served at once where they read vectors of 16 bytes, read the same
/// vector: then sixteen are, in half the cycles by the profiler's count, in kAlike of them by what kernels take.
bool reads_alike(const ContractionPlan& plan, const OperandPlan& operand, double vector) {
  constexpr int64_t kServed = 8;
  const size_t fastest = plan.order[0];
  return vector >= 4 && plan.parallel[fastest].threads() % kServed == 0 &&
         std::find(operand.axes.begin(), operand.axes.end(), fastest) == operand.axes.end();
}

/// Instructions of the choices by indices in a product: a comparison or two, and a selection.
double choices(const Halide::Expr& value) {
  struct Counter : Halide::Internal::IRVisitor {
    double count = 0;
    using IRVisitor::visit;
    void visit(const Halide::Internal::Call* op) override {
      if (op->is_intrinsic(Halide::Internal::Call::if_then_else)) count += 3;
      IRVisitor::visit(op);
    }
  } counter;
  value.accept(&counter);
  return counter.count;
}

/// Whether a product's box has shorter runs than the sectors that memory comes in. A warp's copy takes a cycle for
/// each.
bool is_scattered(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const OperandPlan& o = plan.operands[operand];
  const auto run = static_cast<double>(o.box.empty() ? 1 : o.box.back() * c.operands[operand].type.bytes());
  return c.operands.size() > 1 && !plan.has_windows(c) && !o.kept && run < kSector;
}

/// Of a processor for one block: what it issues, while shared memory gives what is read. `resident_warps` are those of
/// all its blocks: a scheduler without a warp issues nothing.
double block_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device, double resident_warps) {
  double reduction = 1;
  for (const Axis& axis : c.reduction) reduction *= static_cast<double>(axis.extent);
  // Groups that are part of a warp share it.
  const double warps = std::ceil(static_cast<double>(plan.threads()) / kLanes) / static_cast<double>(plan.groups);
  const bool windows = plan.has_windows(c), may_gain = !windows && gains_by_alike(c, plan, device);
  double reads = 0, wavefronts = 0, copies = 0, addresses = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const OperandPlan& o = plan.operands[i];
    double count = distinct(c, i, plan);
    for (size_t axis : o.axes) count *= static_cast<double>(plan.parallel[axis].registers);
    const auto vector = static_cast<double>(o.read_vector);
    reads += count / vector;
    // A warp gets 128 bytes in a cycle, wide reads or narrow.
    wavefronts += count * o.conflicts * std::max(1.0, static_cast<double>(c.operands[i].type.bytes()) / 4) *
                  (may_gain && reads_alike(plan, o, vector) ? kAlike : 1);
    if (o.kept) continue;
    double box = 1;
    for (int64_t extent : o.box) box *= static_cast<double>(extent);
    const double scattered = is_scattered(c, i, plan) ? box / static_cast<double>(o.box.back()) : 0;
    copies += std::max(box / static_cast<double>(o.vector) / kLanes * (o.vector > 1 ? 4 : 2), scattered);
    // Where in the tensor and the box a copy's elements are.
    const double dimensions = static_cast<double>(o.merged) + 1;
    if (windows) addresses += box / static_cast<double>(o.vector) / kLanes * 10 * dimensions;
  }
  // A product of n factors is n - 1 instructions, the last with its addition; one factor is added alone.
  const double products = static_cast<double>(plan.registers()) *
                          (static_cast<double>(std::max<size_t>(c.operands.size(), 2) - 1) + choices(c.update.value));
  const double issued =
      (reduction * warps * (products + (windows ? 1 : 1.5) * reads) + addresses * static_cast<double>(plan.steps(c))) /
      std::min(kSchedulers, resident_warps);
  const double shared = reduction * warps * wavefronts + copies * static_cast<double>(plan.steps(c));
  const double all_warps = warps * static_cast<double>(plan.groups);
  const double sums = plan.groups == 1 ? 0 : 2 * static_cast<double>(plan.registers()) * all_warps + kBarrierCycles;
  // Without all of a step in one piece, less is read ahead: 5 to 15 % on an H200.
  const int64_t piece = windows ? products_of_value(c, plan) : plan.registers() * plan.chunk[plan.main] / plan.groups;
  const bool in_one_piece = piece <= plan.most_unrolled;
  const double stores = windows ? store_cycles(c, plan) : narrow_store_cycles(c, plan);
  // More sums than this leave few registers to read ahead.
  const double crowded = windows ? 1 + 0.01 * static_cast<double>(std::max<int64_t>(plan.registers() - 36, 0)) : 1;
  return together(issued, shared) * (in_one_piece ? 1 : 1.12) * crowded + sums + stores;
}

/// Of a processor for one block of a chain by tensor cores: what these multiply, while shared memory gives fragments
/// and takes copies, and schedulers issue all of it. `resident_warps` are those of all its blocks.
double atom_work(const Contraction& c, const ContractionPlan& plan, const Device& device, double resident_warps) {
  // A copy finds its place in a window of several dimensions by 25 to 30 instructions, as the assembler has it.
  constexpr double kWavefront = 128, kInWindow = 25;
  const TensorCores& cores = *plan.tensor_cores;
  bool has_window = false;
  for (size_t r = 0; r < c.reduction.size(); ++r) has_window = has_window || (r != plan.main && plan.chunk[r] > 1);
  double slices = 1;  // of a warp
  for (size_t r = 0; r < c.reduction.size(); ++r) {
    const auto extent = static_cast<double>(c.reduction[r].extent);
    const double filled =
        plan.fills_last_step() ? static_cast<double>(round_up(c.reduction[r].extent, plan.chunk[r])) : extent;
    slices *= r == plan.main ? std::ceil(filled / cores.atom->k) / static_cast<double>(plan.groups) : extent;
  }
  const double warps = static_cast<double>(plan.threads()) / kLanes;
  const double products = static_cast<double>(plan.registers()) * kLanes * cores.atom->k;  // of a warp's slice
  double wavefronts = 0, loads = 0, copied = 0, copies = 0;
  for (const size_t i : {cores.a, cores.b}) {
    const OperandPlan& o = plan.operands[i];
    const double values = fragment_values(plan, i);
    const bool elements = o.fragment == FragmentRead::kElements;
    loads += elements ? values / kLanes * (cores.rounds[i] ? 3 : 2) : values / (kLanes * 8);
    wavefronts += o.conflicts * (elements ? values / kLanes : 2 * values / kWavefront);
    if (o.kept) continue;
    double box = 1;
    for (int64_t extent : o.box) box *= static_cast<double>(extent);
    copied += box * static_cast<double>(c.operands[i].type.bytes()) / kWavefront;
    const double each = has_window ? kInWindow : plan.asynchronous ? 3 : o.vector > 1 ? 5 : 10;
    copies += box / static_cast<double>(o.vector) / kLanes * each;
  }
  const auto steps = static_cast<double>(plan.steps(c));
  const double share = std::min(1.0, resident_warps / kSchedulers);
  const double atom_products = device.tensor_products * kHalfFloatBytes / bytes_of(cores.atom->operand);
  const double multiplied = warps * slices * products / (atom_products * share);
  const double issued =
      (warps * slices * (products / (cores.atom->m * cores.atom->n * cores.atom->k) + loads) + steps * copies) /
      std::min(kSchedulers, resident_warps);
  const double shared = warps * slices * wavefronts + steps * copied;
  return together(together(multiplied, shared), issued);
}

}  // namespace

double together(double a, double b) { return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b)); }

double fragment_values(const ContractionPlan& plan, size_t operand) {
  const TensorCores& cores = *plan.tensor_cores;
  const bool is_a = operand == cores.a;
  double registers = 1;
  for (size_t axis : is_a ? cores.rows : cores.columns) {
    registers *= static_cast<double>(plan.parallel[axis].registers);
  }
  return registers * cores.atom->k * (is_a ? 8 : 4);
}

bool has_computed(const Contraction& c) {
  return std::any_of(c.operands.begin(), c.operands.end(), [](const Operand& o) { return o.computed.has_value(); });
}

bool converts_operands(const Contraction& c) {
  return std::any_of(c.operands.begin(), c.operands.end(), [](const Operand& o) { return o.type.bytes() < 4; });
}

int64_t registers_of_thread(const Contraction& c, const ContractionPlan& plan) {
  // The parts of sums leave their registers to what comes after the loop: a kernel with 80 sums took 168.
  // As the assembler has it, with 64 sums and 32 registers that are held 132, with 128 and 32 196.
  if (plan.by_warpgroups() && plan.tensor_cores->computes_a) return plan.registers() + held_registers(plan) + 56;
  if (plan.by_warpgroups() && plan.tensor_cores->in_parts) return 2 * plan.registers() + 8;
  if (plan.by_warpgroups()) return (1 + plan.joined) * plan.registers() + 48;
  if (plan.tensor_cores) {
    int64_t rows = 1, columns = 1;
    for (size_t axis : plan.tensor_cores->rows) rows *= plan.parallel[axis].registers;
    for (size_t axis : plan.tensor_cores->columns) columns *= plan.parallel[axis].registers;
    return rows * columns + 2 * rows + columns + 40;
  }
  // What the assembler takes for windows, as 18 kernels have it: 57 to 72 for 32 sums, 106 to 143 for 48.
  if (plan.has_windows(c)) return 24 + 2 * plan.registers() * ceil_div(c.update.accumulator.bytes(), 4);
  int64_t result = plan.registers() + 40;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    int64_t fragment = plan.operands[i].along_main ? plan.vector : 1;
    for (size_t axis : plan.operands[i].axes) fragment *= plan.parallel[axis].registers;
    result += fragment * ceil_div(c.operands[i].type.bytes(), 4);
  }
  return result;
}

double cycles_within(double us, const Device& device) {
  constexpr double kRounding = 1 + 1e-9;
  return kRounding * us * 1e3 * device.gigahertz;
}

double least_element_cycles(const Contraction& c, const Device& device) {
  constexpr double kOfProcessor = 128;  // in a cycle
  double products = 1;
  for (const auto* axes : {&c.parallel, &c.reduction}) {
    for (const Axis& axis : *axes) products *= static_cast<double>(axis.extent);
  }
  return products / kOfProcessor / device.processors;
}

BlocksOfProcessor blocks_of_processor(const ContractionPlan& plan, const Device& device, int64_t registers,
                                      int64_t shared_bytes) {
  constexpr double kProcessorThreads = 2048, kProcessorRegisters = 65536, kProcessorShared = 228 * 1024;
  BlocksOfProcessor result;
  for (const AxisPlan& axis : plan.parallel) result.blocks *= static_cast<double>(axis.blocks);
  result.threads = static_cast<double>(round_up(plan.threads(), kLanes));
  const double resident =
      std::max(1.0, std::floor(std::min({kProcessorThreads / result.threads,
                                         kProcessorRegisters / (result.threads * double(registers)),
                                         kProcessorShared / static_cast<double>(shared_bytes + 1024), 32.0})));
  result.each = std::ceil(result.blocks / static_cast<double>(device.processors));
  result.waves = std::ceil(result.each / resident);
  result.warps = std::min(resident, result.each) * result.threads / kLanes;
  return result;
}

namespace {

/// Of a plan by elements whose blocks have so much shared memory. `first_blocks`: of a processor, whose first copies
/// nothing hides, at most; fewer take less.
double cycles_with(const Contraction& c, const ContractionPlan& plan, const Device& device, int64_t shared_bytes,
                   double first_blocks) {
  constexpr double kStartCycles = 1500, kIdleWarps = 2;  // of a scheduler's time
  const double step_cycles = plan.has_windows(c) || converts_operands(c) ? 130 : 200;
  const double rest = plan.left(c) == 0 ? 0 : kStartCycles;
  const auto [blocks, threads, each, waves, warps] =
      blocks_of_processor(plan, device, registers_of_thread(c, plan), shared_bytes);
  const double at_once = warps * kLanes / threads;
  double points = 1;
  for (const Axis& axis : c.parallel) points *= static_cast<double>(axis.extent);
  // Windows are long runs of loads and products: few warps hide little of them, and what a block begins with is hidden
  // by the others of its processor, but for the first time.
  const bool windows = plan.has_windows(c);
  const double block = block_cycles(c, plan, device, warps);
  const double busy = windows ? std::min(1.0, 1.17 * std::pow(warps / (warps + 2), 2)) : warps / (warps + kIdleWarps);
  const double starts = windows ? 1 + (waves - 1) / at_once : waves;
  const auto steps = static_cast<double>(plan.steps(c) + 1);
  double bytes = 0, first = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    double box = static_cast<double>(c.operands[i].type.bytes());
    const double run = box * static_cast<double>(plan.operands[i].box.back());
    for (int64_t extent : plan.operands[i].box) box *= static_cast<double>(extent);
    bytes += box * (is_scattered(c, i, plan) ? kSector / run : 1) * static_cast<double>(plan.steps(c)) * blocks;
    first += box * std::min(at_once, first_blocks) * static_cast<double>(device.processors);
  }
  // Nothing hides the first step's copies, which all processors make at once.
  const double processor =
      each * block / busy + first / kL2Bytes + starts * (kStartCycles + rest + steps * step_cycles);
  bytes += points * static_cast<double>(c.update.accumulator.bytes());
  const double started = blocks / device.blocks_per_us * 1e3 * device.gigahertz;
  // 181 plans of float16 took 1.18 of the rest of this on an H200, as a geometric mean.
  const double converts = converts_operands(c) ? 1.18 : 1;
  return converts * std::max(together(processor, bytes / kL2Bytes + kStartCycles), started);
}

}  // namespace

double estimated_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  if (plan.by_warpgroups()) return warpgroup_cycles(c, plan, device);
  if (plan.tensor_cores) return atom_cycles(c, plan, device, plan.shared_bytes(c));
  return cycles_with(c, plan, device, plan.shared_bytes(c), std::numeric_limits<double>::infinity());
}

double least_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device, int64_t shared_bytes) {
  constexpr double kRounding = 1 - 1e-9;
  return kRounding * (plan.tensor_cores ? atom_cycles(c, plan, device, shared_bytes)
                                        : cycles_with(c, plan, device, shared_bytes, 1));
}

/// A step ends with a barrier. A product's results go through the threads' registers, with what they are combined with,
/// which comes from the L2 cache.
double chained_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device, int64_t registers,
                      int64_t shared_bytes, bool in_ring) {
  constexpr double kStepCycles = 200, kResultsCycles = 400, kResultInstructions = 8, kCopyBytes = 64;  // of a processor
  const auto [blocks, threads, each, waves, warps] = blocks_of_processor(plan, device, registers, shared_bytes);
  const auto steps = static_cast<double>(plan.steps(c));
  const double issued = static_cast<double>(plan.registers()) * kResultInstructions * threads / kLanes / kSchedulers;
  const double product = plan.tensor_cores ? atom_work(c, plan, device, warps)
                                           : block_cycles(c, plan, device, warps) * (warps + 2) / (warps + 1);
  const double work = (product + issued) * (warps + 1) / warps;
  double bytes = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    if (plan.operands[i].kept) continue;
    double box = static_cast<double>(c.operands[i].type.bytes());
    for (int64_t extent : plan.operands[i].box) box *= static_cast<double>(extent);
    bytes += box * steps;
  }
  const double copied = std::max(each * bytes / kCopyBytes, blocks * bytes / kL2Bytes);
  const double arrival = in_ring ? 0 : steps * kArrivalCycles;
  return together(each * work + waves * (steps * kStepCycles + kResultsCycles + arrival), copied);
}

/// A scheduler issues what one of its warps does to results while tensor cores multiply for another one: the better,
/// the more warps it has. The constants are fitted to 66 plans of attention on an H200, of 197 x 64 to 1024 x 64 and
/// 512 x 128; they leave an error of 12 %.
StreamCost streamed_cycles(const Contraction& first, const ContractionPlan& of_first, const Contraction& second,
                           const ContractionPlan& of_second, double instructions, const Device& device,
                           int64_t registers, int64_t shared_bytes) {
  constexpr double kSlabCycles = 40, kResultsCycles = 400, kResultInstructions = 8, kPointIssue = 1.25,
                   kIdleWarps = 1.65;
  constexpr double kTested = 2;  // of the last slab, where points may be beyond the end
  constexpr double kBest = 2, kManyWarps = 5;
  const auto [blocks, threads, each, waves, warps] = blocks_of_processor(of_second, device, registers, shared_bytes);
  const auto slabs = static_cast<double>(of_second.steps(second));
  const bool is_partial = second.reduction[of_second.main].extent % of_second.chunk[of_second.main] != 0;
  const double issuing = threads / kLanes / std::min(kSchedulers, warps), busy = (warps + kIdleWarps) / warps;
  const double tests = kPointIssue + (is_partial ? kTested / slabs : 0);
  const double points = static_cast<double>(of_first.registers()) * instructions * issuing * tests;
  const double results = static_cast<double>(of_second.registers()) * kResultInstructions * issuing;
  const double starts = waves * (kResultsCycles + chain_start_cycles());
  const double made = atom_work(first, of_first, device, warps), read = atom_work(second, of_second, device, warps);
  const double slab = made + read / slabs;
  const double power = 1 + kBest * std::clamp((warps / kSchedulers - 1) / kManyWarps, 0.0, 1.0);
  const double with_points = std::pow(std::pow(slab, power) + std::pow(points, power), 1 / power);
  return {.first = each * slabs * (busy * (with_points - read / slabs) + kSlabCycles),
          .second = each * (busy * read + results) + starts};
}

double chain_start_cycles() { return 1500 + kArrivalCycles; }

}  // namespace tc::gpu
