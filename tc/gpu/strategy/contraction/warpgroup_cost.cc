#include "tc/gpu/strategy/contraction/warpgroup_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/row_stores.h"
#include "tc/gpu/strategy/contraction/selection.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

constexpr int64_t kMostSharers = 4;     ///< blocks of a cluster that share an operand's boxes
constexpr double kRounding = 1 - 1e-9;  ///< of bounds

/// Whether boxes have several dimensions, as those of images.
bool has_images(const ContractionPlan& plan) {
  return std::any_of(plan.operands.begin(), plan.operands.end(), [](const OperandPlan& o) {
    return std::count_if(o.box.begin(), o.box.end(), [](int64_t extent) { return extent > 1; }) > 2;
  });
}

/// What the estimate is made of, in cycles where nothing else is said.
struct Figures {
  double aligned, within, crooked;  ///< bytes of boxes that a processor takes in a cycle, by how rows lie in lines
  bool is_crowded;                  ///< whether aligned rows come faster where some processors are idle
  double short_row;                 ///< for each row of a tensor that has fewer than 128 bytes
  double shared;                    ///< power of the blocks of a cluster by which less is taken
  double small_bytes;               ///< of an operand of which a cluster takes no less
  double cache_bytes;               ///< that the L2 cache gives all processors in a cycle
  double together;  ///< power in which the cache's time and the processors' are added: 1 one behind the other, 2 ...
  double row_outside, column_outside;  ///< of a box that lies within the tensor in part, where all processors are busy
  double blocks_outside;               ///< of a step, where a cluster has blocks with no results
  double arrival;                      ///< of a box that is in the cache
  double division;                     ///< of a turn, where a ring has no power of two of buffers
  double launched, idle;               ///< of the kernel; less by the part of the processors that have no block
  double start, own_start;             ///< of a block; of that what no other block of the processor hides
  double of_grid, goes_on;             ///< where blocks go on: of the kernel, and of each further tile
  double hand_over, plain;  ///< where teams take turns: of a tile, and instructions of a result that are in it
  double step, least_step;  ///< of each step, and from a buffer's arrival to its release
  double cluster_start, cluster_step;  ///< the blocks of a cluster wait for the slowest: at first, and in each step
  std::array<double, 3> in_cluster;    ///< and in all, by factors: of 2, 4 and 8 blocks
  double in_parts;                     ///< the same where they deal out steps
  double stored;                       ///< results that a processor stores in a cycle, as vectors of 16 bytes
  double of_warpgroup, across;         ///< the same of one of its warpgroups; of results that lie across the tile
  double slab;                         ///< of a staging buffer of such results
  double barriers, own_bytes, other_bytes;  ///< of sums that a cluster puts together, and bytes in a cycle
  double two_buffers;  ///< one is given back when the other one's products have started: boxes arrive behind these
  double beside;       ///< of memory's time or the other one, which is less, what the other does not hide
};

/// Fitted to 2,662 plans of products of matrices on an H200, and mended by 2,596 more (docs/design/0047).
constexpr Figures kOfMatrices = {.aligned = 88.5,
                                 .within = 70,
                                 .crooked = 54,
                                 .is_crowded = false,
                                 .short_row = 1.1,
                                 .shared = 0.38,
                                 .small_bytes = 25e6,
                                 .cache_bytes = 10250,
                                 .together = 2.28,
                                 .row_outside = 1.1,
                                 .column_outside = 2.8,
                                 .blocks_outside = 85,
                                 .arrival = 200,
                                 .division = 20,
                                 .launched = 1105,
                                 .idle = 626,
                                 .start = 930,
                                 .own_start = 322,
                                 .of_grid = 1000,
                                 .goes_on = 922,
                                 .hand_over = 400,
                                 .plain = 4,
                                 .step = 0,
                                 .least_step = 213,
                                 .cluster_start = 110,
                                 .cluster_step = 30,
                                 .in_cluster = {1, 0.95, 1.07},
                                 .in_parts = 1.2,
                                 .stored = 7.2,
                                 .of_warpgroup = 6.4,
                                 .across = 12.8,
                                 .slab = 68,
                                 .barriers = 1114,
                                 .own_bytes = 67,
                                 .other_bytes = 16.6,
                                 .two_buffers = 1340,
                                 .beside = 0.33};

/// Of windows over images: from single observations. They choose the fastest of 6 plans, or one within 3 %, for each of
/// six convolutions on an H200.
constexpr Figures kOfImages = {.aligned = 68,
                               .within = 50,
                               .crooked = 27,
                               .is_crowded = true,
                               .short_row = 6.6,
                               .shared = 0.75,
                               .small_bytes = 7e6,
                               .cache_bytes = 1e9,
                               .together = 2,
                               .row_outside = 0,
                               .column_outside = 0,
                               .blocks_outside = 0,
                               .arrival = 500,
                               .division = 50,
                               .launched = 2000,
                               .idle = 0,
                               .start = 2000,
                               .own_start = 0,
                               .of_grid = 0,
                               .goes_on = 500,
                               .hand_over = 500,
                               .plain = 0,
                               .step = 40,
                               .least_step = 160,
                               .cluster_start = 0,
                               .cluster_step = 28,
                               .in_cluster = {1.005, 1.005, 1.005},
                               .in_parts = 1.005,
                               .stored = 24,
                               .of_warpgroup = 1e9,
                               .across = 1e9,
                               .slab = 68,
                               .barriers = 700,
                               .own_bytes = 128,
                               .other_bytes = 12,
                               .two_buffers = 0,
                               .beside = 0.05};

const Figures& figures_of(const ContractionPlan& plan) { return has_images(plan) ? kOfImages : kOfMatrices; }

/// How an operand's boxes begin in memory.
enum class Lines { kAligned, kWithin, kCrooked };
Lines lines_of(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Operand& o = in_memory(c, operand);
  if (!lies_in_lines(o)) return Lines::kCrooked;
  const AxisPlan& first = plan.parallel[side_of(operand, plan)[0]];
  const bool begins = !runs_across(c, operand, plan) || first.tile % row_of(o) == 0 || first.blocks == 1;
  return begins ? Lines::kAligned : Lines::kWithin;
}

/// Bytes of an operand's boxes for a step, of which blocks of a cluster share a part by a power of their number. But
/// neighbours who read lines of an operand in the cache are served at once as it is.
double shared_bytes(const Contraction& c, size_t operand, const ContractionPlan& plan, double bytes_read,
                    double power) {
  const Operand& o = in_memory(c, operand);
  const bool gains = lines_of(c, operand, plan) != Lines::kAligned || bytes_read >= figures_of(plan).small_bytes;
  const double gain = gains ? std::pow(static_cast<double>(sharers(operand, plan).count), power) : 1;
  return static_cast<double>(plan.operands[operand].stage * o.type.bytes()) / gain;
}

/// In which a processor takes an operand's boxes for a step, if such a part of all is `busy`.
double box_cycles(const Contraction& c, size_t operand, const ContractionPlan& plan, double bytes_read, double busy) {
  const Figures& f = figures_of(plan);
  const Operand& o = in_memory(c, operand);
  const Lines lines = lines_of(c, operand, plan);
  const double aligned = f.is_crowded ? f.aligned / busy : f.aligned;
  const double rate = lines == Lines::kAligned ? aligned : lines == Lines::kWithin ? f.within : f.crooked;
  const double bytes = shared_bytes(c, operand, plan, bytes_read, f.shared);
  if (o.extents.back() >= row_of(o)) return bytes / rate;
  const int64_t row =
      runs_across(c, operand, plan) ? std::min(row_of(o), plan.parallel[side_of(operand, plan)[0]].tile) : row_of(o);
  return bytes / rate + bytes / static_cast<double>(row * o.type.bytes()) * f.short_row;
}

/// Of the results, those of all products that share a kernel. Of a statement that is in no kernel yet, as it ends.
Halide::Type stored_type(const Contraction& c) {
  if (!c.stored.empty()) return c.stored.back().type;
  return c.after.empty() ? c.update.accumulator : c.after.back().value.type();
}

/// Whether columns of a result are stored one by one: where rows begin where no vector of a thread's columns does, and
/// go through no shared memory, or where columns are no neighbours in memory.
bool stores_singly(const Contraction& c, const ContractionPlan& plan) {
  if (plan.store_boxes) return false;
  constexpr int64_t kVector = 16;
  const AxisPlan& a = plan.parallel[plan.order[0]];
  const std::string& column = c.parallel[plan.order[0]].name;
  return std::any_of(c.stored.begin(), c.stored.end(), [&](const StoredTensor& stored) {
    if (a.tile > 1 && !stored.is_dense_along(column)) return true;
    return stored.row_divisor() % std::min(a.group, kVector / stored.type.bytes()) != 0 &&
           !is_stored_by_rows(stored, c, plan);
  });
}

/// Cycles of a processor for each result that its blocks store one by one. Eight threads have neighbours along the
/// rows, which share sectors where they are few elements apart. Where neighbours in memory are elsewhere, 17 million
/// halves took 92 us on an H100, 133 us with 8 columns from one thread's to the next one's.
double single_store_cycles(const Contraction& c, const ContractionPlan& plan) {
  constexpr double kHalf = 2, kAlongRows = 0.24;
  constexpr int64_t kNeighbours = 8, kFarthest = 4;
  const size_t row = plan.tensor_cores->rows[0];
  int64_t apart = 1;  // elements from one row to the next
  for (const StoredTensor& stored : c.stored) {
    const auto step = stored.steps.find(c.parallel[row].name);
    const int64_t own = step == stored.steps.end() ? 0 : std::abs(step->second);
    apart = own == 0 ? kFarthest + 1 : std::max(apart, own);
  }
  if (plan.parallel[row].tile >= kNeighbours && apart <= kFarthest) return kAlongRows * static_cast<double>(apart);
  const Halide::Type stored = stored_type(c);
  return (1.0 + 0.1 * static_cast<double>(plan.parallel[plan.order[0]].group)) * kHalf / stored.bytes();
}

/// Whether boxes store results that lie across the tile.
bool stages_across(const Contraction& c, const ContractionPlan& plan) {
  return plan.store_boxes && std::any_of(c.stored.begin(), c.stored.end(),
                                         [&](const StoredTensor& stored) { return lies_across(stored, c, plan); });
}
constexpr double kAcrossBoxes = 0.9;  ///< of them, by how many times their stores take what vectors of 16 bytes take

/// How many times the stores of a result take what vectors of 16 bytes take. Threads wait for boxes no longer than
/// until their sums are in shared memory, which takes least if they write the pairs that they have. In global memory
/// pairs of halves are halves of sectors.
double stores_of_group(const Contraction& c, const ContractionPlan& plan, bool by_boxes) {
  constexpr double kPairBoxes = 0.3, kNarrowBoxes = 0.7, kWideBoxes = 0.9;  // of what they take without
  constexpr double kShortRows = 1.5;  // of boxes whose rows are shorter than a line
  // Where no tile follows, a box has to be on its way before the block ends: by 40 plans of six products on an H200.
  constexpr double kLastBoxes = 0.75;
  constexpr int64_t kLine = 128, kVector = 16;
  constexpr double kWholeSectors = 1.5;  // of pairs that eight lanes have; not measured
  constexpr double kOddRows = 14;        // of rows that begin at no multiple of 16 bytes, and are not staged
  const int64_t group = plan.parallel[plan.order[0]].group;
  if (plan.tensor_cores->pairs_rows) return kWholeSectors;
  const std::vector<size_t>& columns = plan.tensor_cores->columns;
  const bool in_rows =
      std::all_of(columns.begin() + 1, columns.end(), [&](size_t axis) { return plan.parallel[axis].tile == 1; });
  const auto begins_within = [&](const StoredTensor& t) {
    return t.row_divisor() * t.type.bytes() % kVector != 0 && in_rows && !is_stored_by_rows(t, c, plan);
  };
  if (std::any_of(c.stored.begin(), c.stored.end(), begins_within)) return kOddRows;
  const Halide::Type stored = stored_type(c);
  const bool is_narrow = stored.bytes() <= 2;
  if (by_boxes) {
    const double rows = staged_columns(c, plan) * stored.bytes() < kLine ? kShortRows : 1;
    if (stages_across(c, plan)) return kAcrossBoxes;
    if (is_narrow && plan.grid == 0) return rows * (group == 2 ? kLastBoxes : 1);
    if (is_narrow) return rows * (group == 2 ? kPairBoxes : kNarrowBoxes);
    return rows * kWideBoxes * stores_of_group(c, plan, false);
  }
  return is_narrow == (group == 8) ? (is_narrow ? 1 : 2) : (is_narrow ? 4 : 8);
}

/// Results of a block.
double points_of(const ContractionPlan& plan) {
  return static_cast<double>(tile_of(plan.tensor_cores->rows, plan) * tile_of(plan.tensor_cores->columns, plan));
}

/// Of a block whose warps store row after row, by words: cycles of a warp that nothing hides, and of the processor.
struct RowStoreCycles {
  double alone = 0, processor = 0;
};

RowStoreCycles row_store_cycles(const Contraction& c, const ContractionPlan& plan) {
  constexpr double kElements = 70, kWords = 120, kWarp = 32, kWarpRows = 16;  // for what the lanes of a warp store
  RowStoreCycles result;
  for (const StoredTensor& stored : c.stored) {
    if (!is_stored_by_rows(stored, c, plan)) continue;
    const auto columns = static_cast<double>(tile_of(plan.tensor_cores->columns, plan));
    const double turns = std::ceil(columns / kWarp / static_cast<double>(word_of(stored)));
    result.alone += kWarpRows * turns * (word_of(stored) > 1 ? kWords : kElements);
    result.processor += points_of(plan) * cycles_in_row(stored);
  }
  return result;
}

/// Processors that blocks find which run in clusters of so many. Those of a cluster share one of the device's parts: of
/// an H200's 132 processors in seven parts some are left over (cuOccupancyMaxActiveClusters, of blocks with a processor
/// each).
int64_t processors_for(int64_t cluster, const Device& device) {
  constexpr std::array<int64_t, 9> kFound = {132, 132, 132, 117, 120, 110, 102, 105, 120};
  const int64_t found = device.processors * kFound.at(static_cast<size_t>(std::min<int64_t>(cluster, 8))) / kFound[1];
  return std::max(found / cluster * cluster, cluster);
}

double all_blocks(const ContractionPlan& plan) {
  auto blocks = static_cast<double>(plan.cluster_parts);
  for (const AxisPlan& axis : plan.parallel) blocks *= static_cast<double>(axis.blocks);
  return blocks;
}

/// In which a processor's tensor cores multiply what a step of one block brings.
double multiplied_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  const double products = device.warpgroup_products * 2 / static_cast<double>(c.operands[0].type.bytes());
  const auto of_step = static_cast<double>(1 + plan.joined);
  return of_step * points_of(plan) * static_cast<double>(values_of_step(c, plan)) / products;
}

/// The boxes of an operand that a step brings. Those of joined products are taken to lie as the first one's.
double boxes_of_step(size_t operand, const ContractionPlan& plan) {
  return static_cast<double>(operand == plan.joined_operand ? 1 : 1 + plan.joined);
}

/// In which a processor takes the boxes of a step.
double copied_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device,
                     const ProductBytes& bytes) {
  const int64_t processors = processors_for(plan.cluster_parts * plan.cluster_blocks(), device);
  const double busy = std::min(1.0, all_blocks(plan) / static_cast<double>(processors));
  double result = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    result += boxes_of_step(i, plan) * box_cycles(c, i, plan, bytes.in_memory[i], busy);
  }
  return result;
}

/// Of a step of the block that waits longest for a box of an operand: one that lies within the tensor in part. 448 rows
/// times 4096 x 1984 in tiles of 128 x 64 took 23 us on an H200, 512 rows 13.
double outside_cycles(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Figures& f = figures_of(plan);
  const std::vector<size_t>& side = side_of(operand, plan);
  if (runs_across(c, operand, plan)) {
    const int64_t row = row_of(in_memory(c, operand)), extent = c.parallel[side[0]].extent;
    return f.column_outside * static_cast<double>(round_up(extent, row) - extent);
  }
  int64_t inside = 1;
  for (size_t axis : side) {
    const int64_t extent = c.parallel[axis].extent, tile = plan.parallel[axis].tile;
    inside *= extent - (ceil_div(extent, tile) - 1) * tile;
  }
  const auto outside = static_cast<double>(tile_of(side, plan) - inside);
  return f.row_outside * outside / std::sqrt(static_cast<double>(sharers(operand, plan).count));
}

/// The same of all operands, and of a cluster with blocks that have no results. It counts by the square of the part of
/// the processors that are busy, and for one of the tiles of each.
double outside_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  const auto processors = static_cast<double>(processors_for(plan.cluster_parts * plan.cluster_blocks(), device));
  const double busy = std::min(1.0, all_blocks(plan) / processors);
  const bool has_empty = std::any_of(c.parallel.begin(), c.parallel.end(), [&](const Axis& axis) {
    const AxisPlan& a = plan.parallel[static_cast<size_t>(&axis - c.parallel.data())];
    return a.blocks > ceil_div(axis.extent, a.tile);
  });
  double result = has_empty ? figures_of(plan).blocks_outside : 0;
  for (size_t i = 0; i < c.operands.size(); ++i) result += outside_cycles(c, i, plan);
  return result * busy * busy / std::ceil(all_blocks(plan) / processors);
}

constexpr double kSharedInCache = 0.8;  ///< power of the blocks of a cluster by which the L2 cache gives less

/// In which the L2 cache gives all blocks what a step of each brings. Rows that do not begin where lines do take parts
/// of more lines.
double cache_cycles(const Contraction& c, const ContractionPlan& plan, const ProductBytes& bytes) {
  constexpr double kPartsOfLines = 1.97;
  double brought = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const double parts = lines_of(c, i, plan) == Lines::kAligned ? 1 : kPartsOfLines;
    brought += boxes_of_step(i, plan) * parts * shared_bytes(c, i, plan, bytes.in_memory[i], kSharedInCache);
  }
  return all_blocks(plan) * brought / figures_of(plan).cache_bytes;
}

/// Clusters and blocks that read a tile of an operand; of a selected slice, as many as have rows that select it.
double readers_of(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  const Operand& o = c.operands[operand];
  const auto all = static_cast<double>(blocks_of(operand == cores.a ? cores.columns : cores.rows, plan));
  const double blocks = all / static_cast<double>(sharers(operand, plan).count);
  if (!o.selected) return blocks;
  return std::max(1.0, blocks * expected_slices(c, plan) / static_cast<double>(o.extents[*o.selected]));
}

/// The part of an operand that no cache holds when it is read again: none of a small one. The L2 cache has two halves,
/// and the other operand and the results want room as well.
double beyond_cache(double bytes, const Device& device) {
  constexpr double kAllFits = 0.3, kNoneFits = 0.7;  // of the cache's bytes
  return std::clamp((bytes / static_cast<double>(device.cache_bytes) - kAllFits) / (kNoneFits - kAllFits), 0.0, 1.0);
}

/// Cycles from the start of a box to its arrival. What no cache holds comes from memory; if many blocks read it, it is
/// there for some of them. Blocks of a cluster go on in step, so that all of them wait for what the first one reads:
/// 2624 x 640 by 7360 took 46 us in tiles of 256 x 64 on an H200, and 64 to 72 in clusters that share the 64 columns.
double latency_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device,
                      const ProductBytes& bytes) {
  constexpr double kFromMemory = 2250, kInStep = 700, kManyRead = 1750;
  constexpr double kFewReaders = 4;
  const double cached = figures_of(plan).arrival;
  double result = cached;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const bool is_read_by_few = readers_of(c, i, plan) <= kFewReaders;
    const double in_step = plan.cluster_blocks() > 1 ? kFromMemory + kInStep : kManyRead;
    const double from_memory = is_read_by_few ? kFromMemory : in_step;
    result = std::max(result, cached + (from_memory - cached) * beyond_cache(bytes.in_memory[i], device));
  }
  return result;
}

double cycles_in_memory(double bytes, const Device& device) {
  return bytes / device.memory_bytes_per_us * 1e3 * device.gigahertz;
}

/// In which memory delivers the operands and takes the results. Of operands that no cache holds some come again for
/// each further reader: 128 rows times 8192 x 8192 took 20 % longer where two blocks read each weight.
double memory_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device,
                     const ProductBytes& bytes) {
  constexpr double kAgain = 0.2;
  double moved = bytes.all;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const double own = bytes.in_memory[i];
    if (readers_of(c, i, plan) > 1) moved += kAgain * own * beyond_cache(own, device);
  }
  return cycles_in_memory(moved, device);
}

/// Of a processor for a step: what threads issue to compute their operand, and what shared memory gives to them and to
/// the products, two values at a time for each row. One warp of a scheduler starts an instruction every 2.5 cycles: 16
/// rows times 8192 x 8192 int8 weights took 30 us by blocks of one warpgroup, 24 us of two.
double computing_cycles(const Contraction& c, const ContractionPlan& plan, double at_once) {
  constexpr double kAlone = 2.5;
  constexpr double kLanes = 128, kWarp = 32, kBank = 128, kAtOnce = 2;
  if (!plan.tensor_cores->computes_a) return 0;
  const double conflicts = plan.tensor_cores->pairs_rows ? 2 : 1;
  const ComputedOperand& computed = *c.operands[plan.tensor_cores->a].computed;
  const auto chunk = static_cast<double>(plan.chunk[plan.main]);
  const double values = static_cast<double>(tile_of(plan.tensor_cores->rows, plan)) * chunk;
  const double multiplied = static_cast<double>(tile_of(plan.tensor_cores->columns, plan)) * chunk *
                            static_cast<double>(c.operands[plan.tensor_cores->b].type.bytes()) *
                            static_cast<double>(plan.tensor_cores->warpgroups);
  const double shared = values / kAtOnce / kWarp * conflicts + multiplied / kBank;
  const double warps = static_cast<double>(plan.tensor_cores->warpgroups) * at_once;
  return std::max(values * computed.instructions / kLanes * std::max(1.0, kAlone / warps), shared);
}

/// Of a step: where a ring has no power of two of buffers, a turn's place in it is found by a division. Long products
/// hide it.
double turn_cycles(const ContractionPlan& plan, double step) {
  constexpr double kLong = 400;
  return std::has_single_bit(static_cast<uint64_t>(plan.stages)) || step > kLong ? 0 : figures_of(plan).division;
}

/// Of the sums of a tile that blocks of a cluster put together: each writes all that it has to its own shared memory,
/// and reads a part of what each other one has.
double exchange_cycles(const ContractionPlan& plan, double points) {
  if (plan.cluster_parts == 1) return 0;
  const Figures& f = figures_of(plan);
  const auto parts = static_cast<double>(plan.cluster_parts);
  const double bytes = points * sizeof(float);
  return f.barriers + bytes / f.own_bytes + bytes * (parts - 1) / parts / f.other_bytes;
}

/// In which a block's threads compute results of their sums. One warp of a scheduler starts an instruction every 2.5
/// cycles, as 128 results with a gelu in 64 x 256 show on an H200. Beside 160 or 192 sums few registers are left for
/// results at once: an instruction of a gelu took 1.8 times as long, in 100 KB of code and in a loop of 20 KB, one of a
/// silu as long as elsewhere. Where no teams take turns the first 17 are hidden by stores. Of slices that data select
/// nothing is measured.
double finishing_cycles(const Contraction& c, const ContractionPlan& plan) {
  constexpr double kAlone = 2.5, kShort = 25, kOfStores = 17, kCrowded = 1.8;
  constexpr int64_t kRoomy = 128;  // sums of a thread
  if (c.selection) return 0;
  const double each = std::max(0.0, c.instructions - (plan.ping_pong ? figures_of(plan).plain : kOfStores));
  const double of_thread = each * static_cast<double>(plan.registers());
  const double crowded = c.instructions > kShort && (1 + plan.joined) * plan.registers() > kRoomy ? kCrowded : 1;
  const int64_t warpgroups = plan.tensor_cores->warpgroups;
  return of_thread * (warpgroups > 1 ? static_cast<double>(warpgroups) : kAlone) * crowded;
}

/// What comes after the last product of a tile.
WarpgroupWork::End end_of_tile(const Contraction& c, const ContractionPlan& plan, double slices) {
  constexpr double kFoundCycles = 20;  // for each row, of three rounds through all rows; not measured
  const double points = points_of(plan);
  const auto parts = static_cast<double>(plan.cluster_parts);  // of a cluster each block stores a part of a tile
  // A block with slices finds them first, and multiplies all of its rows by each.
  const double found = c.selection ? kFoundCycles * static_cast<double>(tile_of(plan.tensor_cores->rows, plan)) : 0;
  const bool singly = stores_singly(c, plan);
  const RowStoreCycles rows = singly ? RowStoreCycles() : row_store_cycles(c, plan);
  const bool in_vectors = !singly && rows.alone == 0;
  return {.issued = found + slices * (exchange_cycles(plan, points) + finishing_cycles(c, plan)),
          .row = slices * rows.alone,
          .rows = slices * rows.processor,
          .vectors = in_vectors ? slices * points * stores_of_group(c, plan, plan.store_boxes) / parts : 0,
          .slabs = stages_across(c, plan) ? static_cast<double>(slabs_of(c, plan)) : 0,
          .singles = singly ? points / parts * single_store_cycles(c, plan) : 0};
}

/// Of a processor from the last product of a tile to the next tile, of which as many as are there `at_once` share the
/// work. What a block is at its start is counted here, too.
double ending_cycles(const ContractionPlan& plan, const WarpgroupWork::End& end, double at_once) {
  const Figures& f = figures_of(plan);
  // The copies of the next tile begin while a block that goes on stores the last one.
  const double in_cluster = plan.cluster_blocks() > 1 ? f.cluster_start : 0;
  const double starts = (plan.grid > 0 ? f.goes_on : f.start) - f.own_start + in_cluster;
  const double issued = starts + end.issued + std::max(end.row, end.rows * at_once);
  // Other blocks store meanwhile, but a warpgroup its own results one after the other.
  const auto warpgroups = static_cast<double>(plan.tensor_cores->warpgroups);
  const double alone = end.slabs > 0 ? f.across : f.of_warpgroup;
  const double stored = std::max(end.vectors / f.stored / at_once, end.vectors / warpgroups / alone);
  return issued / at_once + stored + f.slab * end.slabs + end.singles;
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> warpgroup_clusters(const Contraction& c, const ContractionPlan& alone,
                                                            const Device& device, const ProductBytes& bytes) {
  constexpr int64_t kMostBlocks = 8;  // that every device takes
  constexpr double kHidden = 0.5;     // of the products' time, in which boxes come unnoticed
  constexpr int64_t kFewSteps = 8;    // which gain less than blocks wait for each other at their start
  if (steps_of_block(c, alone) < kFewSteps) return {};
  const double processors = std::min(all_blocks(alone), static_cast<double>(device.processors));
  const double brought =
      std::max(copied_cycles(c, alone, device, bytes), cache_cycles(c, alone, bytes) / all_blocks(alone) * processors);
  if (brought <= kHidden * multiplied_cycles(c, alone, device)) return {};
  const int64_t row_blocks = alone.parallel[alone.tensor_cores->rows[0]].blocks;
  const int64_t column_blocks = alone.parallel[alone.tensor_cores->columns[0]].blocks;
  const double others = all_blocks(alone) / static_cast<double>(row_blocks * column_blocks);
  std::vector<std::pair<int64_t, int64_t>> result;
  for (int64_t rows = 1; rows <= kMostSharers; rows *= 2) {
    for (int64_t columns = 1; columns <= kMostSharers; columns *= 2) {
      const int64_t size = rows * columns;
      if (size == 1 || size > kMostBlocks || rows > row_blocks || columns > column_blocks) continue;
      // More than two blocks find their processors free at the same time only where all blocks do.
      const auto padded = static_cast<double>(round_up(row_blocks, rows) * round_up(column_blocks, columns));
      const bool at_once = others * padded <= static_cast<double>(processors_for(size, device));
      if (size == 2 || at_once) result.emplace_back(rows, columns);
    }
  }
  return result;
}

std::vector<int64_t> cluster_parts(int64_t tiles, int64_t steps, const Device& device) {
  constexpr int64_t kFewSteps = 2, kMostParts = 8;
  std::vector<int64_t> result = {1};
  for (int64_t parts = kMostParts; parts > 1; --parts) {
    const bool fits = tiles * parts <= processors_for(parts, device) && steps >= kFewSteps * parts;
    const bool is_first = result.size() == 1;  // that which leaves fewest processors idle
    if (fits && (is_first || std::has_single_bit(static_cast<uint64_t>(parts)))) result.push_back(parts);
  }
  return result;
}

int64_t resident_blocks(const Contraction& c, const ContractionPlan& plan) {
  constexpr int64_t kProcessorShared = 228 * 1024, kProcessorRegisters = 65536, kOfBlock = 1024;
  const int64_t registers =
      plan.gives_registers ? tile::registers_at_start(plan.block_threads()) : registers_of_thread(c, plan);
  return std::max<int64_t>(1, std::min(kProcessorShared / (plan.shared_bytes(c) + kOfBlock),
                                       kProcessorRegisters / (plan.block_threads() * registers)));
}

ProductBytes bytes_of_product(const Contraction& c) {
  ProductBytes result;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    result.in_memory.push_back(bytes_read(c, in_memory(c, i)));
    result.all += result.in_memory.back();
  }
  for (const StoredTensor& stored : c.stored) result.all += elements_stored(c, stored) * stored.type.bytes();
  return result;
}

WarpgroupWork warpgroup_work(const Contraction& c, const ContractionPlan& plan, const Device& device,
                             const ProductBytes& bytes) {
  const double slices = expected_slices(c, plan);
  return {.multiplied = multiplied_cycles(c, plan, device),
          .copied = copied_cycles(c, plan, device, bytes),
          .from_cache = cache_cycles(c, plan, bytes),
          .steps = slices * static_cast<double>(steps_of_block(c, plan)),
          .latency = latency_cycles(c, plan, device, bytes),
          .outside = outside_cycles(c, plan, device),
          .memory = memory_cycles(c, plan, device, bytes),
          .end = end_of_tile(c, plan, slices)};
}

bool finishes_meanwhile(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  const double steps = static_cast<double>(steps_of_block(c, plan));
  return finishing_cycles(c, plan) <= steps * multiplied_cycles(c, plan, device);
}

namespace {

/// A block's buffers, and the blocks beside it.
struct Ring {
  double at_once = 1;   ///< blocks of a processor
  double ahead = 1;     ///< boxes in flight, of all of them
  double division = 0;  ///< cycles in which a turn is found
  double exposed = 0;   ///< cycles of a step behind which the next boxes arrive
};

/// Blocks of the busiest processor.
double blocks_of_each(const ContractionPlan& plan, const Device& device) {
  return std::ceil(all_blocks(plan) /
                   static_cast<double>(processors_for(plan.cluster_parts * plan.cluster_blocks(), device)));
}

/// Of a block's step, where nothing waits for boxes.
double step_cycles(const Contraction& c, const ContractionPlan& plan, const WarpgroupWork& work, double at_once) {
  const Figures& f = figures_of(plan);
  // Products of another warpgroup go on while one adds what its step has brought to its sums, a register in a cycle.
  const bool alone = plan.tensor_cores->warpgroups * at_once <= 1;
  const double added = plan.tensor_cores->in_parts ? static_cast<double>(plan.registers()) : 0;
  // What threads compute is hidden in part by the products of the half of a step before.
  constexpr double kComputedBeside = 0.15;
  const double computed = computing_cycles(c, plan, at_once);
  const double with_sums = std::max(work.multiplied + (alone ? added : 0), work.copied);
  const double busy = std::max(with_sums, computed) + kComputedBeside * computed;
  return std::max(busy, f.least_step / at_once) + f.step + (plan.cluster_blocks() > 1 ? f.cluster_step : 0);
}

/// Times that hide each other in part.
double added(double a, double b, double power) { return std::pow(std::pow(a, power) + std::pow(b, power), 1 / power); }

/// How many times as long a kernel takes whose blocks share boxes in a cluster.
double of_cluster(const ContractionPlan& plan) {
  const int64_t blocks = plan.cluster_blocks();
  return blocks == 1 ? 1 : figures_of(plan).in_cluster.at(blocks < 4 ? 0 : blocks < 8 ? 1 : 2);
}

/// Of the whole product.
double cycles_with(const Contraction& c, const ContractionPlan& plan, const Device& device, const WarpgroupWork& work,
                   const Ring& ring) {
  const Figures& f = figures_of(plan);
  const bool goes_on = plan.grid > 0;
  const auto processors = static_cast<double>(processors_for(plan.cluster_parts * plan.cluster_blocks(), device));
  const double step = step_cycles(c, plan, work, ring.at_once);
  // Buffers in flight hide the latency of boxes.
  const double latency = work.latency / ring.ahead + ring.division;
  const double multiplies = work.steps * (std::max({step + ring.division, latency, ring.exposed}) + work.outside);
  const double finishes = ending_cycles(plan, work.end, ring.at_once);
  // Of two teams that take turns one finishes while the other one multiplies.
  // What both store goes one way: 1201 x 6514 by 697, of odd rows, took 75 us in turns on an H200, and 32 without.
  const double stores = work.end.singles + work.end.rows + work.end.vectors / f.stored;
  const double in_turns = std::max({multiplies, (multiplies + finishes) / 2, stores}) + f.hand_over;
  const double block = f.own_start + (plan.ping_pong ? in_turns : multiplies + finishes);
  const double first = goes_on ? f.start - f.goes_on + f.of_grid : 0;  // nothing hides the first tile's start
  const double last = plan.ping_pong ? finishes : 0;                   // nor what the last tile ends with
  // Blocks that go on have their tiles from the start, so all wait for the slowest: 8192^3 took 3 % longer on an H200.
  constexpr double kGoesOn = 1.02;
  // Where teams take turns, products of the next tile follow those of the last one at once: eight products took 2 to 8
  // % less on an H200 than such a sum says.
  constexpr double kTakesTurns = 0.93;
  // Two instructions of a warpgroup beside each other, where no teams take turns: 24 plans of 2560^3 to 8192^3.
  constexpr double kBeside = 1.03;
  const bool is_beside = plan.tensor_cores->row_atoms > 1;
  const bool is_copied = work.copied > work.multiplied;  // products wait for their boxes
  const double alone = goes_on ? kGoesOn : plan.cluster_parts > 1 ? f.in_parts : of_cluster(plan);
  // Of results that lie across four warpgroups: nine plans of large products.
  constexpr double kFourAcross = 1.1;
  const bool is_wide = work.end.slabs > 0 && plan.tensor_cores->warpgroups == 4;
  const double of_kind =
      plan.ping_pong ? (is_copied ? 1 : kTakesTurns) : alone * (is_beside ? kBeside : 1) * (is_wide ? kFourAcross : 1);
  // Processors work through what they have, and wait for the cache where all ask for much.
  const double idle = std::max(0.0, 1 - all_blocks(plan) / processors) * f.idle;
  const double all = (blocks_of_each(plan, device) * block + first + last) * of_kind;
  const double cycles = f.launched - idle + added(all, work.steps * work.from_cache, f.together);
  const double memory = work.memory + f.launched;
  return std::max(cycles, memory) + f.beside * std::min(cycles, memory);
}

}  // namespace

double warpgroup_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  return warpgroup_cycles(c, plan, device, warpgroup_work(c, plan, device, bytes_of_product(c)));
}

double warpgroup_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device,
                        const WarpgroupWork& work) {
  const Figures& f = figures_of(plan);
  Ring ring;
  ring.at_once = std::min(static_cast<double>(resident_blocks(c, plan)), blocks_of_each(plan, device));
  ring.ahead = std::max(1.0, static_cast<double>(plan.stages - 1)) * ring.at_once;
  const double step = step_cycles(c, plan, work, ring.at_once);
  ring.division = turn_cycles(plan, step);
  const bool waits = plan.stages == 2 && steps_of_block(c, plan) > 2 && f.two_buffers > 0;
  ring.exposed = waits ? (step + f.two_buffers) / ring.at_once : 0;
  return cycles_with(c, plan, device, work, ring);
}

double least_warpgroup_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device,
                              const WarpgroupWork& work, int64_t most_stages) {
  Ring ring;
  ring.at_once = std::min(static_cast<double>(resident_blocks(c, plan)), blocks_of_each(plan, device));
  ring.ahead = static_cast<double>(most_stages - 1) * ring.at_once;
  return kRounding * cycles_with(c, plan, device, work, ring);
}

double least_cycles_of_tiles(const ContractionPlan& plan, const Device& device, const WarpgroupWork& work,
                             const ProductBytes& bytes) {
  const Figures& f = figures_of(plan);
  const double copied = work.copied / std::pow(kMostSharers, f.shared);
  const double multiplies = work.steps * std::max(work.multiplied, copied);
  const double from_cache = work.steps * work.from_cache / std::pow(kMostSharers, kSharedInCache);
  const double block = f.own_start + multiplies;
  const double cycles = f.launched - f.idle + added(blocks_of_each(plan, device) * block, from_cache, f.together);
  const double memory = cycles_in_memory(bytes.all, device) + f.launched;
  return kRounding * (std::max(cycles, memory) + f.beside * std::min(cycles, memory));
}

}  // namespace tc::gpu
