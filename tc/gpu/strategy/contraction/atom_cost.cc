#include "tc/gpu/strategy/contraction/atom_cost.h"

#include <algorithm>
#include <cmath>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/row_stores.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

constexpr double kLanes = 32, kSchedulers = 4;

double elements_of(const std::vector<int64_t>& extents) {
  double result = 1;
  for (const int64_t extent : extents) result *= static_cast<double>(extent);
  return result;
}

bool has_window(const Contraction& c, const ContractionPlan& plan) {
  for (size_t r = 0; r < c.reduction.size(); ++r) {
    if (r != plan.main && plan.chunk[r] > 1) return true;
  }
  return false;
}

/// Instructions of a thread for one copy.
double instructions_of_copy(const OperandPlan& o) { return o.vector > 1 ? 5 : 7; }

/// The same where schedulers issue nothing else. In a window of several dimensions a copy finds its place by many, as
/// the assembler has it, of which few wait for each other.
double issued_of_copy(const Contraction& c, const OperandPlan& o, const ContractionPlan& plan) {
  constexpr double kInWindow = 11;
  return has_window(c, plan) ? kInWindow : instructions_of_copy(o);
}

/// Steps of a block, with that of what is left.
double all_steps(const Contraction& c, const ContractionPlan& plan) {
  return static_cast<double>(plan.steps(c) + (plan.left(c) > 0 ? 1 : 0));
}

/// In which a block alone goes through its steps: its copies arrive, of which buffers hide a part, and a thread issues
/// its copies one after the other. Those of an operand that no cache holds come from memory. At the end a warp stores
/// row after row.
double latency_of_block(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr double kArrival = 390, kFromMemory = 680;
  constexpr double kHidden = 1.0;                 // of it by each further buffer
  constexpr double kDependent = 4.7;              // of an instruction
  constexpr double kLaidOut = 16, kLooped = 1.6;  // more copies than that are made in a loop, and take so much longer
  constexpr double kRow = 60;                     // for the words of a warp
  // What is computed goes through registers: a block waits for it in each step, whatever the buffers.
  const double ahead = has_computed(c) ? 0 : static_cast<double>(plan.stages - 1);
  const bool is_far = std::any_of(c.operands.begin(), c.operands.end(), [&](const Operand& o) {
    return bytes_read(c, o) > static_cast<double>(device.cache_bytes) / 2;
  });
  double step = (kArrival + (is_far ? kFromMemory : 0)) / (1 + kHidden * ahead);
  for (const OperandPlan& o : plan.operands) {
    if (o.kept) continue;
    const double copies = std::ceil(elements_of(o.box) / static_cast<double>(o.vector * plan.threads()));
    const double looped = !plan.asynchronous && copies > kLaidOut ? kLooped : 1;
    step += looped * copies * instructions_of_copy(o) * kDependent;
  }
  const double warps = static_cast<double>(plan.threads()) / kLanes;
  double rows = 0;
  for (const StoredTensor& stored : c.stored) {
    if (!is_stored_by_rows(stored, c, plan)) continue;
    const TensorCores& cores = *plan.tensor_cores;
    const double columns = kLanes * static_cast<double>(word_of(stored));  // of the words of a warp
    const double rounds = std::ceil(static_cast<double>(tile_of(cores.columns, plan)) / columns);
    rows += static_cast<double>(tile_of(cores.rows, plan)) / warps * rounds;
  }
  return all_steps(c, plan) * step + rows * kRow;
}

/// Products of an atom's reduction that a warp adds to each of its results.
double slices_of_warp(const Contraction& c, const ContractionPlan& plan) {
  const auto depth = static_cast<double>(plan.tensor_cores->atom->k);
  double slices = 1;
  for (size_t r = 0; r < c.reduction.size(); ++r) {
    const int64_t extent = c.reduction[r].extent;
    const int64_t filled = r == plan.main && plan.fills_last_step() ? round_up(extent, plan.chunk[r]) : extent;
    slices *= r == plan.main ? std::ceil(static_cast<double>(filled) / depth) / static_cast<double>(plan.groups)
                             : static_cast<double>(filled);
  }
  return slices;
}

/// That a processor sustains.
double products_of_cycle(const tile::MatMulAtom& atom, const Device& device) {
  constexpr double kSustained = 0.513, kHalfBytes = 2;  // of the products that it may start
  return device.tensor_products * kSustained * kHalfBytes / bytes_of(atom.operand);
}

/// Of a processor for one block, while the others that it has at once hide its waits.
double work_of_block(const Contraction& c, const ContractionPlan& plan, const Device& device, double resident_warps) {
  constexpr double kWavefront = 128, kHalfBytes = 2;
  constexpr double kArrivingBytes = 24, kOfWindows = 48;  // in a cycle; those of windows come twice, from the L1 cache
  constexpr double kIntoShared = 0.17;                    // of the cycles that its bytes would take by lines
  constexpr double kIssued = 2.2;                         // cycles of a scheduler for an instruction
  constexpr double kRead = 1.57;                          // of shared memory for a line
  const TensorCores& cores = *plan.tensor_cores;
  const double warps = static_cast<double>(plan.threads()) / kLanes, slices = slices_of_warp(c, plan);
  const double steps = all_steps(c, plan);
  const double products = static_cast<double>(plan.registers()) * kLanes * cores.atom->k;  // of a warp's slice
  double read = 0, copied = 0, bytes = 0;
  for (const size_t i : {cores.a, cores.b}) {
    const OperandPlan& o = plan.operands[i];
    const double values = fragment_values(plan, i);
    const bool by_elements = o.fragment == FragmentRead::kElements;
    read += o.conflicts * (by_elements ? values / kLanes : kHalfBytes * values / kWavefront);
    if (o.kept) continue;
    const double element = c.operands[i].type.bytes(), vector = static_cast<double>(o.vector);
    const double of_copy = std::max(kIssued * issued_of_copy(c, o, plan) / kSchedulers,
                                    kIntoShared * vector * element * kLanes / kWavefront);
    copied += elements_of(o.box) / vector / kLanes * of_copy;
    bytes += elements_of(o.box) * element;
  }
  const double multiplied = warps * slices * products /
                            (products_of_cycle(*cores.atom, device) * std::min(1.0, resident_warps / kSchedulers));
  const double moved = kRead * warps * slices * read + steps * copied;
  return together(together(multiplied, moved), steps * bytes / (has_window(c, plan) ? kOfWindows : kArrivingBytes));
}

/// Cycles for each result that threads store by words or by pairs, which fill sectors or do not.
constexpr double kPart = 0.39, kSector = 0.3, kAlone = 0.85;
constexpr double kOfImage = 0.3;  ///< by two convolutions of 7 x 7

/// In which results are stored, all processors' cycles together. What four threads store of a row is less than a sector
/// of memory, or lies in two, unless their pairs have four bytes each and begin where sectors do; elements that are in
/// no pair take as many stores again. Of a statement that is not in a kernel yet pairs are taken.
double stored_cycles(const Contraction& c, const ContractionPlan& plan) {
  double points = 1, result = 0;
  for (const Axis& axis : c.parallel) points *= static_cast<double>(axis.extent);
  const double in_part = has_window(c, plan) ? kOfImage : kPart;
  if (c.stored.empty()) return points * in_part;
  for (const StoredTensor& stored : c.stored) {
    const double in_pairs = fills_sectors(stored, plan) ? kSector : in_part;
    const bool has_pairs =
        stored.row_divisor() % 2 == 0 && stored.is_dense_along(c.parallel[plan.tensor_cores->columns[0]].name);
    const double direct = has_pairs ? in_pairs : kAlone;
    result += elements_stored(c, stored) * (is_stored_by_rows(stored, c, plan) ? cycles_in_row(stored) : direct);
  }
  return result;
}

/// In which operands come from where they are, and results go. Nothing hides it: blocks store at their end.
double moved_cycles(const Contraction& c, double stored_cycles, const Device& device) {
  constexpr double kOperandBytes = 1980;  // of the device in a cycle
  double bytes = 0;
  for (const Operand& operand : c.operands) bytes += bytes_read(c, operand);
  return stored_cycles / device.processors + bytes / kOperandBytes;
}

constexpr double kStart = 2690;  ///< of a product

}  // namespace

double atom_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device, int64_t shared_bytes) {
  constexpr double kSum = 1.7;  // of a warp for each of its results, to add those of another group
  // Convolutions whose images and weights came by single elements took 3 to 13 times the rest of this on an H100.
  constexpr double kSingle = 4;
  const BlocksOfProcessor of = blocks_of_processor(plan, device, registers_of_thread(c, plan), shared_bytes);
  const bool is_single =
      !plan.asynchronous && std::any_of(plan.operands.begin(), plan.operands.end(),
                                        [](const auto& o) { return o.fragment == FragmentRead::kElements; });
  const double alone = latency_of_block(c, plan, device) * (is_single ? kSingle : 1);
  const double work = work_of_block(c, plan, device, of.warps) * (is_single ? kSingle : 1);
  const double sums =
      plan.groups == 1 ? 0 : kSum * static_cast<double>(plan.registers() * plan.threads()) / kLanes * of.waves;
  // A block alone waits for its copies before it multiplies, and has none under way meanwhile, if it has few buffers.
  const bool overlaps = of.warps * kLanes > of.threads || plan.stages > 2;
  const double waits = of.waves * alone, works = of.each * work;
  const double processor = (overlaps ? together(waits, works) : waits + works) + sums;
  const double started = of.blocks / device.blocks_per_us * 1e3 * device.gigahertz;
  return std::max(kStart + processor + moved_cycles(c, stored_cycles(c, plan), device), started);
}

double least_atom_cycles(const Contraction& c, const tile::MatMulAtom& atom, const Device& device) {
  constexpr double kRounding = 1 - 1e-9;
  double points = 1, products = 1, stored = 0;
  for (const Axis& axis : c.parallel) points *= static_cast<double>(axis.extent);
  for (const Axis& axis : c.reduction) products *= static_cast<double>(axis.extent);
  products *= points;
  if (c.stored.empty()) stored = points * std::min({kPart, kSector, kOfImage});
  for (const StoredTensor& result : c.stored) {
    const double direct = std::min({kPart, kSector, kAlone, kOfImage});
    stored += elements_stored(c, result) * std::min(direct, cycles_in_row(result));
  }
  const double multiplied = products / products_of_cycle(atom, device) / device.processors;
  return kRounding * (kStart + multiplied + moved_cycles(c, stored, device));
}

}  // namespace tc::gpu
