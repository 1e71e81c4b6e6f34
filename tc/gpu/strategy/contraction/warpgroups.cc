#include "tc/gpu/strategy/contraction/warpgroups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/row_stores.h"
#include "tc/gpu/strategy/contraction/selection.h"
#include "tc/ir/layouts.h"
#include "tc/support/round.h"
#include "tc/tile/matrix_descriptor.h"

namespace tc::gpu {
namespace {

constexpr int64_t kCopied = 16;  ///< bytes that starts and strides of boxes are multiples of
constexpr int64_t kMostDimensions = 5;

/// The axes that the operand's rows (the columns of b) go along in a block.
const std::vector<size_t>& side_of(size_t operand, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  return operand == cores.a ? cores.rows : cores.columns;
}

/// The last axis of a side of which a block has several values.
size_t slowest_axis(const std::vector<size_t>& side, const ContractionPlan& plan) {
  size_t result = side[0];
  for (size_t axis : side) result = plan.parallel[axis].tile > 1 ? axis : result;
  return result;
}

bool counts_alone(const Subscript& s) {
  const auto used = [](const std::vector<int64_t>& by) {
    return std::count_if(by.begin(), by.end(), [](int64_t b) { return b != 0; });
  };
  return used(s.parallel) + used(s.reduction) == 1;
}

/// Whether all that a subscript has besides a coefficient of 1, the box's own, moves boxes by whole copies.
bool steps_evenly(const Subscript& s, int64_t bytes) {
  int64_t own = 0;
  const auto is_even = [&](int64_t by) {
    own += by == 1 ? 1 : 0;
    return by == 1 || by * bytes % kCopied == 0;
  };
  return std::all_of(s.parallel.begin(), s.parallel.end(), is_even) &&
         std::all_of(s.reduction.begin(), s.reduction.end(), is_even) && own == 1;
}

/// The elements of a dimension up to the last one that is read.
int64_t extent_read(const Contraction& c, const Subscript& s) {
  int64_t last = s.constant;
  for (size_t i = 0; i < s.parallel.size(); ++i)
    last += s.parallel[i] * (c.parallel[i].begin + c.parallel[i].extent - 1);
  for (size_t r = 0; r < s.reduction.size(); ++r) {
    last += s.reduction[r] * (c.reduction[r].begin + c.reduction[r].extent - 1);
  }
  return last + 1;
}

double bytes_of(const Operand& operand) {
  double result = operand.type.bytes();
  for (const int64_t extent : operand.extents) result *= static_cast<double>(extent);
  return result;
}

/// In which an operand's boxes for a step come. Processors get 68 bytes each in a cycle from the L2 cache where rows of
/// 128 bytes lie in lines, 50 where lines do but boxes begin within them, else 27. The first rate is shared by the part
/// of the processors that is `busy`; the others are each processor's own. What four blocks of a cluster share takes
/// 0.35 of the time, if its rows are crooked or the cache has to bring them from afar; neighbours who read lines of a
/// small operand the cache serves at once as it is. Fitted to 843 plans on an H200 (docs/lab/measurements.md).
double box_cycles(const Contraction& c, size_t operand, const ContractionPlan& plan, double busy) {
  constexpr double kAligned = 68, kWithinLines = 50, kCrooked = 27, kSmallBytes = 7e6, kShared = 0.75;
  const Operand& o = in_memory(c, operand);
  const AxisPlan& first = plan.parallel[side_of(operand, plan)[0]];
  const bool begins_lines = !runs_across(c, operand, plan) || first.tile % row_of(o) == 0 || first.blocks == 1;
  const bool has_lines = lies_in_lines(o) && begins_lines;
  const auto blocks = static_cast<double>(sharers(operand, plan).count);
  const double gain = has_lines && bytes_of(o) < kSmallBytes ? 1 : std::pow(blocks, kShared);
  const double bytes = static_cast<double>(plan.operands[operand].stage * o.type.bytes()) / gain;
  if (has_lines) return bytes / kAligned * busy;
  return bytes / (lies_in_lines(o) ? kWithinLines : kCrooked);
}

/// Whether rows of a result begin where no vector of a thread's columns does, and go through no shared memory: then
/// columns are stored one by one.
bool stores_singly(const Contraction& c, const ContractionPlan& plan) {
  constexpr int64_t kVector = 16;
  const int64_t group = plan.parallel[plan.order[0]].group;
  return std::any_of(c.stored.begin(), c.stored.end(), [&](const StoredTensor& stored) {
    return stored.row_divisor() % std::min(group, kVector / stored.type.bytes()) != 0 &&
           !is_stored_by_rows(stored, c, plan);
  });
}

/// Cycles of a processor for each result that its blocks store one by one. 17 million halves took 92 us on an H100, 133
/// us with 8 columns from one thread's to the next one's.
double single_store_cycles(const Contraction& c, int64_t group) {
  constexpr double kHalf = 2;
  const Halide::Type stored = c.after.empty() ? c.update.accumulator : c.after.back().value.type();
  return (1.0 + 0.1 * static_cast<double>(group)) * kHalf / stored.bytes();
}

/// How many times the stores of a result take what vectors of 16 bytes take. Threads wait for boxes no longer than
/// until their sums are in shared memory, which takes least if they write the pairs that they have. In global memory
/// pairs of halves are halves of sectors. Rows that are staged in shared memory take longer by an estimate.
double stores_of_group(const Contraction& c, const ContractionPlan& plan, bool by_boxes) {
  constexpr double kPairBoxes = 0.3, kNarrowBoxes = 0.7, kWideBoxes = 1.7, kByRows = 1.5;  // of what they take without
  constexpr double kWholeSectors = 1.5;  // of pairs that eight lanes have; not measured
  const int64_t group = plan.parallel[plan.order[0]].group;
  if (plan.tensor_cores->pairs_rows) return kWholeSectors;
  if (stores_by_rows(c, plan)) return kByRows * (group == 8 ? 1 : 2);
  const Halide::Type stored = c.after.empty() ? c.update.accumulator : c.after.back().value.type();
  const bool is_narrow = stored.bytes() <= 2;
  if (by_boxes && is_narrow) return group == 2 ? kPairBoxes : kNarrowBoxes;
  if (by_boxes) return kWideBoxes * stores_of_group(c, plan, false);
  return is_narrow == (group == 8) ? (is_narrow ? 1 : 2) : (is_narrow ? 4 : 8);
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

/// Results of a block.
double points_of(const ContractionPlan& plan) {
  return static_cast<double>(tile_of(plan.tensor_cores->rows, plan) * tile_of(plan.tensor_cores->columns, plan));
}

/// In which a processor's tensor cores multiply what a step of one block brings.
double multiplied_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  const double products = device.warpgroup_products * 2 / static_cast<double>(c.operands[0].type.bytes());
  return points_of(plan) * static_cast<double>(values_of_step(c, plan)) / products;
}

/// In which the boxes of a step come.
double copied_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  const int64_t processors = processors_for(plan.cluster_parts * plan.cluster_blocks(), device);
  const double busy = std::min(1.0, all_blocks(plan) / static_cast<double>(processors));
  double result = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) result += box_cycles(c, i, plan, busy);
  return result;
}

/// In which a step's boxes come and are multiplied. Neither hides behind the other as a whole, as products of matrices
/// show. Of boxes of images, which have several dimensions, too little is measured.
double busy_cycles(const ContractionPlan& plan, double multiplied, double copied) {
  constexpr double kPower = 3.3;
  const bool of_images = std::any_of(plan.operands.begin(), plan.operands.end(), [](const OperandPlan& o) {
    return std::count_if(o.box.begin(), o.box.end(), [](int64_t extent) { return extent > 1; }) > 2;
  });
  if (of_images) return std::max(multiplied, copied);
  return std::pow(std::pow(multiplied, kPower) + std::pow(copied, kPower), 1 / kPower);
}

}  // namespace

int64_t row_of(const Operand& operand) { return tile::row_elements(operand.type.bytes()); }

int64_t chunk_of(const Contraction& c) {
  int64_t result = 1;
  for (size_t i = 0; i < c.operands.size(); ++i) result = std::max(result, row_of(in_memory(c, i)));
  return result;
}

int64_t boxes_along(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  return runs_across(c, operand, plan) ? 1 : plan.chunk[plan.main] / row_of(in_memory(c, operand));
}

int64_t values_of_slice(const Operand& operand) { return tile::WarpgroupAtom::kSliceBytes / operand.type.bytes(); }

int64_t values_of_step(const Contraction& c, const ContractionPlan& plan) {
  return std::min(plan.chunk[plan.main], round_up(c.reduction[plan.main].extent, values_of_slice(c.operands[0])));
}

bool runs_along_reduction(Halide::Type type) { return type.bytes() != 2; }

bool lies_in_lines(const Operand& operand) {
  constexpr int64_t kLine = 128;
  return ir::pitch_of(operand.strides) * operand.type.bytes() % kLine == 0;
}

int dimension_along(const Operand& operand, const std::vector<int64_t> Subscript::*side, size_t axis) {
  int result = -1;
  for (size_t d = 0; d < operand.subscripts.size(); ++d) {
    const int64_t by = (operand.subscripts[d].*side)[axis];
    if (by == 0) continue;
    if (by != 1 || result >= 0) return -1;
    result = static_cast<int>(d);
  }
  return result;
}

int64_t first_inside(const Operand& operand, size_t dimension) {
  return operand.inside.empty() ? 0 : operand.inside[dimension].least.value_or(0);
}

int64_t tile_of(const std::vector<size_t>& axes, const ContractionPlan& plan) {
  int64_t result = 1;
  for (size_t axis : axes) result *= plan.parallel[axis].tile;
  return result;
}

int64_t blocks_of(const std::vector<size_t>& axes, const ContractionPlan& plan) {
  int64_t result = 1;
  for (size_t axis : axes) result *= plan.parallel[axis].blocks;
  return result;
}

int64_t rows_apart(size_t axis, const ContractionPlan& plan) {
  constexpr int64_t kRowsApart = 8;
  if (plan.tensor_cores->pairs_rows) return 0;
  int64_t stride = 1;
  for (size_t row : plan.tensor_cores->rows) {
    const int64_t tile = plan.parallel[row].tile;
    if (row == axis) return stride <= kRowsApart && kRowsApart < stride * tile ? kRowsApart / stride : 0;
    stride *= tile;
  }
  return 0;
}

std::vector<std::pair<int64_t, int64_t>> warpgroup_clusters(const Contraction& c, const ContractionPlan& alone,
                                                            const Device& device) {
  constexpr int64_t kMostBlocks = 8;  // that every device takes
  constexpr double kHidden = 0.5;     // of the products' time, in which boxes come unnoticed
  constexpr int64_t kFewSteps = 8;    // which gain less than blocks wait for each other at their start
  if (steps_of_block(c, alone) < kFewSteps) return {};
  if (copied_cycles(c, alone, device) <= kHidden * multiplied_cycles(c, alone, device)) return {};
  const int64_t row_blocks = alone.parallel[alone.tensor_cores->rows[0]].blocks;
  const int64_t column_blocks = alone.parallel[alone.tensor_cores->columns[0]].blocks;
  const double others = all_blocks(alone) / static_cast<double>(row_blocks * column_blocks);
  std::vector<std::pair<int64_t, int64_t>> result;
  for (const int64_t rows : {1, 2, 4}) {
    for (const int64_t columns : {1, 2, 4}) {
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

tile::BlockGroup sharers(size_t operand, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  const auto rows = static_cast<int>(plan.parallel[cores.rows[0]].cluster);
  const auto columns = static_cast<int>(plan.parallel[cores.columns[0]].cluster);
  const tile::BlockGroup group = operand == cores.a ? tile::BlockGroup{.stride = rows, .count = columns}
                                                    : tile::BlockGroup{.stride = 1, .count = rows};
  return group.count == 1 ? tile::BlockGroup{} : group;
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

int64_t steps_of_block(const Contraction& c, const ContractionPlan& plan) {
  return ceil_div(plan.steps(c), plan.cluster_parts);
}

std::optional<size_t> cut_dimension(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Operand& o = in_memory(c, operand);
  const int64_t slabs = plan.operands[operand].stage / (row_of(o) * plan.chunk[plan.main]);
  const bool across = runs_across(c, operand, plan);
  if (sharers(operand, plan).count == 1 || (across && slabs % sharers(operand, plan).count == 0)) return std::nullopt;
  if (across) return dimension_along(o, &Subscript::reduction, plan.main);
  return dimension_along(o, &Subscript::parallel, slowest_axis(side_of(operand, plan), plan));
}

std::vector<BlockDigit> block_digits(const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  const int64_t rows_of_cluster = plan.parallel[cores.rows[0]].cluster;
  const int64_t columns_of_cluster = plan.parallel[cores.columns[0]].cluster;
  std::vector<BlockDigit> digits = {{cores.rows[0], rows_of_cluster, 1}, {cores.columns[0], columns_of_cluster, 1}};
  std::vector<BlockDigit> behind;
  int64_t rows = plan.row_blocks;
  for (size_t axis : cores.rows) {
    const int64_t blocks = plan.parallel[axis].blocks, first = std::min(rows, blocks);
    const int64_t placed = axis == cores.rows[0] ? rows_of_cluster : 1;
    digits.push_back({axis, first / placed, placed});
    behind.push_back({axis, blocks / first, first});
    rows /= first;
  }
  for (size_t axis : cores.columns) {
    const int64_t placed = axis == cores.columns[0] ? columns_of_cluster : 1;
    digits.push_back({axis, plan.parallel[axis].blocks / placed, placed});
  }
  digits.insert(digits.end(), behind.begin(), behind.end());
  for (size_t axis : plan.order) {
    const bool is_placed = std::any_of(digits.begin(), digits.end(), [&](const auto& d) { return d.axis == axis; });
    if (!is_placed) digits.push_back({axis, plan.parallel[axis].blocks, 1});
  }
  std::erase_if(digits, [](const BlockDigit& digit) { return digit.count == 1; });
  return digits;
}

int64_t row_blocks(const ContractionPlan& plan, const Device& device) {
  const std::vector<size_t>& axes = plan.tensor_cores->rows;
  const int64_t row = tile_of(axes, plan), column = tile_of(plan.tensor_cores->columns, plan);
  const int64_t columns = blocks_of(plan.tensor_cores->columns, plan);
  int64_t result = plan.parallel[axes[0]].cluster, least = 0,
          before = 1;  // `before`: blocks along the axes before this one
  for (size_t axis : axes) {
    const int64_t blocks = plan.parallel[axis].blocks;
    for (int64_t along = 1; along <= std::min(blocks, device.processors / before); ++along) {
      if (blocks % along != 0 || along % plan.parallel[axis].cluster != 0) continue;
      const int64_t group = before * along;
      const int64_t read = group * row + std::min(ceil_div(device.processors, group), columns) * column;
      if (least > 0 && read >= least) continue;
      least = read;
      result = group;
    }
    before *= blocks;
    if (before > device.processors) break;
  }
  return result;
}

bool runs_across(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  return in_memory(c, operand).subscripts.back().reduction[plan.main] == 0;
}

namespace {

/// Why an operand's tile is no box; empty: it is one, or one for each 64 values of its first axis, of which the last
/// may have more than the tile.
std::string tile_fault(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Operand& o = in_memory(c, operand);
  const std::vector<size_t>& side = side_of(operand, plan);
  const std::string& main = c.reduction[plan.main].name;
  const int along_main = dimension_along(o, &Subscript::reduction, plan.main);
  if (along_main < 0) return fmt::format("'{}' has no dimension for '{}'", o.tensor, main);
  int before = static_cast<int>(o.subscripts.size());
  for (size_t axis = 0; axis < c.parallel.size(); ++axis) {
    const bool is_side = std::find(side.begin(), side.end(), axis) != side.end();
    if (!is_side && depends(o, axis) && plan.parallel[axis].tile != 1) {
      return fmt::format("a block has several values of '{}'", c.parallel[axis].name);
    }
  }
  for (size_t axis : side) {
    if (plan.parallel[axis].tile == 1) continue;
    const int along = dimension_along(o, &Subscript::parallel, axis);
    if (along < 0 || along == along_main) {
      return fmt::format("'{}' has no dimension each for '{}' and '{}'", o.tensor, main, c.parallel[axis].name);
    }
    if (along >= before) return fmt::format("'{}' has no dimension for '{}' alone", o.tensor, c.parallel[axis].name);
    before = along;
  }
  if (!runs_across(c, operand, plan)) return "";
  if (dimension_along(o, &Subscript::parallel, side[0]) + 1 != static_cast<int>(o.subscripts.size())) {
    return fmt::format("neighbours of '{}' in memory are along neither '{}' nor '{}'", o.tensor, main,
                       c.parallel[side[0]].name);
  }
  const int64_t tile = plan.parallel[side[0]].tile, row = row_of(o);
  if (tile % row != 0 && tile_of(side, plan) != tile) {
    return fmt::format("{} of '{}' are no rows of {} elements", tile, c.parallel[side[0]].name, row);
  }
  return "";
}

}  // namespace

namespace {

/// Why threads do not compute what they multiply of an operand; empty: they do, or it is not computed.
std::string computed_fault(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  constexpr int64_t kMostBytes = 4;
  const Operand& o = c.operands[operand];
  if (!o.computed) return "";
  if (operand != plan.tensor_cores->a) return fmt::format("warpgroups compute one operand, not '{}' too", o.tensor);
  const Operand& source = *o.computed->source;
  if (o.type.bytes() != 2 || source.type.bytes() > kMostBytes) {
    return fmt::format("threads of warpgroups compute no '{}' of '{}'", o.tensor, source.tensor);
  }
  if (plan.tensor_cores->pairs_rows && plan.parallel[plan.tensor_cores->rows[0]].tile % 2 != 0) {
    return fmt::format("a block has an odd number of '{}'", c.parallel[plan.tensor_cores->rows[0]].name);
  }
  return "";
}

}  // namespace

std::string box_fault(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Operand& o = in_memory(c, operand);
  const auto dimensions = static_cast<int>(o.subscripts.size());
  if (o.chosen_row || o.computed)
    return fmt::format("no box of '{}' holds what data choose or a block computes", o.tensor);
  if (std::string fault = computed_fault(c, operand, plan); !fault.empty()) return fault;
  if (dimensions > kMostDimensions) return fmt::format("'{}' has more than {} dimensions", o.tensor, kMostDimensions);
  if (std::string fault = tile_fault(c, operand, plan); !fault.empty()) return fault;
  const auto along_main = static_cast<size_t>(dimension_along(o, &Subscript::reduction, plan.main));
  if (runs_along_reduction(c.operands[operand].type) && runs_across(c, operand, plan)) {
    return fmt::format("neighbours of '{}' in memory are not along '{}', as products of {} need", o.tensor,
                       c.reduction[plan.main].name, ir::is_float8(o.type) ? "8-bit floats" : "TF32");
  }
  if (plan.tensor_cores->rounds[operand]) {
    return fmt::format("'{}' is not rounded to TF32 in memory, where warpgroups multiply it", o.tensor);
  }
  const bool fills = c.reduction[plan.main].extent % plan.chunk[plan.main] != 0;
  if (fills && !counts_alone(o.subscripts[along_main])) {
    return fmt::format("the last step of '{}' in '{}' is not filled with zeros", c.reduction[plan.main].name, o.tensor);
  }
  for (const Subscript& s : o.subscripts) {
    const auto falls = [](const std::vector<int64_t>& by) {
      return std::any_of(by.begin(), by.end(), [](int64_t b) { return b < 0; });
    };
    if (falls(s.parallel) || falls(s.reduction)) return fmt::format("a subscript of '{}' falls", o.tensor);
    if (extent_read(c, s) > INT32_MAX) return fmt::format("a subscript of '{}' is no coordinate", o.tensor);
  }
  const Subscript& last = o.subscripts.back();
  const int64_t begin =
      runs_across(c, operand, plan) ? c.parallel[side_of(operand, plan)[0]].begin : c.reduction[plan.main].begin;
  const int64_t first = first_inside(o, o.subscripts.size() - 1), bytes = o.type.bytes();
  if (!steps_evenly(last, bytes) || (last.constant + begin) * bytes % kCopied != 0 || first * bytes % kCopied != 0) {
    return fmt::format("rows of '{}' do not begin at multiples of {} bytes", o.tensor, kCopied);
  }
  if (ir::pitch_of(o.strides) * bytes % kCopied != 0) {
    return fmt::format("rows of '{}' are no multiple of {} bytes", o.tensor, kCopied);
  }
  for (size_t d = 0; d < o.extents.size(); ++d) {
    if (o.strides[d] * bytes >= int64_t{1} << 40) return fmt::format("'{}' is too large for boxes", o.tensor);
  }
  constexpr int64_t kPattern = 8;  // rows that a swizzle repeats after
  const int64_t parts = sharers(operand, plan).count;
  const int64_t rows = runs_across(c, operand, plan) ? plan.chunk[plan.main] : tile_of(side_of(operand, plan), plan);
  const int64_t cut = plan.parallel[slowest_axis(side_of(operand, plan), plan)].tile;
  if (rows % (parts * kPattern) != 0 || (!runs_across(c, operand, plan) && cut % parts != 0)) {
    return fmt::format("{} blocks do not share {} rows of '{}' in eights", parts, rows, o.tensor);
  }
  return "";
}

OperandPlan boxed_operand(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Operand& o = in_memory(c, operand);
  const int64_t row = row_of(o), chunk = plan.chunk[plan.main];
  const std::vector<size_t>& side = side_of(operand, plan);
  const bool across = runs_across(c, operand, plan);
  OperandPlan result;
  result.box.assign(o.subscripts.size(), 1);
  for (size_t i = 0; i < side.size(); ++i) {
    const int64_t tile = plan.parallel[side[i]].tile;
    // Of rows that run along the first axis each box has one row's elements, at one value of the others.
    if (tile == 1 || (across && i > 0)) continue;
    result.box[static_cast<size_t>(dimension_along(o, &Subscript::parallel, side[i]))] = tile;
  }
  result.box[static_cast<size_t>(dimension_along(o, &Subscript::reduction, plan.main))] = across ? chunk : row;
  result.innermost = o.subscripts.size() - 1;
  result.merged = result.innermost;
  result.vector = kCopied / o.type.bytes();
  const int64_t values = tile_of(side, plan);
  result.stage = (across ? round_up(values, row) : values) * chunk;
  result.last_stage = result.stage;
  for (size_t axis = 0; axis < c.parallel.size(); ++axis) {
    if (depends(o, axis)) result.axes.push_back(axis);
  }
  return result;
}

bool share_ring(const Contraction& a, const ContractionPlan& plan_a, const Contraction& b,
                const ContractionPlan& plan_b) {
  const TensorCores &x = *plan_a.tensor_cores, &y = *plan_b.tensor_cores;
  const auto same = [&](size_t of_a, size_t of_b) {
    return a.operands[of_a].type == b.operands[of_b].type &&
           plan_a.operands[of_a].stage == plan_b.operands[of_b].stage &&
           runs_across(a, of_a, plan_a) == runs_across(b, of_b, plan_b);
  };
  return same(x.a, y.a) && same(x.b, y.b);
}

tile::TensorMap map_of(const Contraction& c, size_t operand, const ContractionPlan& plan, const std::string& name) {
  const Operand& o = in_memory(c, operand);
  const std::optional<size_t> cut = cut_dimension(c, operand, plan);
  tile::TensorMap map{.name = name, .tensor = o.tensor};
  for (size_t d = o.subscripts.size(); d-- > 0;) {
    const Subscript& s = o.subscripts[d];
    const int64_t first = first_inside(o, d);
    const int64_t end = o.inside.empty() ? o.extents[d] : o.inside[d].greatest.value_or(o.extents[d] - 1) + 1;
    map.offset += first * o.strides[d];
    const int64_t read = o.selected == d ? o.extents[d] : extent_read(c, s);
    map.extents.push_back(std::min(read, end) - first);
    map.strides.push_back(o.strides[d]);
    const bool is_last = d + 1 == o.subscripts.size();
    const int64_t box = plan.operands[operand].box[d] / (cut == d ? sharers(operand, plan).count : 1);
    map.box.push_back(is_last ? row_of(o) : box);
  }
  map.swizzle = static_cast<int>(row_of(o) * o.type.bytes());
  return map;
}

namespace {

/// Clusters and blocks that read a tile of an operand; of a selected slice, as many as have rows that select it.
double readers_of(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  const Operand& o = c.operands[operand];
  const auto all = static_cast<double>(blocks_of(operand == cores.a ? cores.columns : cores.rows, plan));
  const double blocks = all / static_cast<double>(sharers(operand, plan).count);
  if (!o.selected) return blocks;
  return std::max(1.0, blocks * expected_slices(c, plan) / static_cast<double>(o.extents[*o.selected]));
}

/// Cycles from the start of a box to its arrival. What no cache holds comes from memory, unless many blocks read it:
/// then it is there for most of them. Both fitted to 31 products on an H100, which took within 7 % of what is
/// estimated.
double latency_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr double kCached = 500, kFromMemory = 2250;
  constexpr double kFewReaders = 4;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const bool is_large = bytes_of(in_memory(c, i)) > static_cast<double>(device.cache_bytes) / 2;
    if (is_large && readers_of(c, i, plan) <= kFewReaders) return kFromMemory;
  }
  return kCached;
}

/// In which memory delivers the operands and takes the results. Of operands that no cache holds some come again for
/// each further reader: 128 rows times 8192 x 8192 took 20 % longer where two blocks read each weight.
double memory_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr double kAgain = 0.2;
  double again = 0, not_there = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const double own = bytes_of(in_memory(c, i));
    not_there += bytes_of(c.operands[i]) - own;
    if (own > static_cast<double>(device.cache_bytes) / 2 && readers_of(c, i, plan) > 1) again += kAgain * own;
  }
  return least_memory_cycles(c, device) + (again - not_there) / device.memory_bytes_per_us * 1e3 * device.gigahertz;
}

/// Of a processor for a step: what threads issue to compute their operand, and what shared memory gives to them and to
/// the products, two values at a time for each row. Not measured.
double computing_cycles(const Contraction& c, const ContractionPlan& plan) {
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
  return std::max(values * computed.instructions / kLanes, shared);
}

/// Of a step: where a ring has no power of two of buffers, a turn's place in it is found by a division. Long products
/// hide it.
double turn_cycles(const ContractionPlan& plan, double step) {
  constexpr double kDivision = 50, kLong = 400;
  return std::has_single_bit(static_cast<uint64_t>(plan.stages)) || step > kLong ? 0 : kDivision;
}

/// Of the sums of a tile that blocks of a cluster put together: each writes all that it has to its own shared memory,
/// and reads a part of what each other one has. Between processors an H100 moves some 12 bytes a cycle to each. 120 x
/// 960 x 1280 by 64 x 64 took 4.3 us on an H200 in clusters of two, and 3.6 us of four.
double exchange_cycles(const ContractionPlan& plan, double points) {
  constexpr double kBarriers = 700, kOwnBytes = 128, kOtherBytes = 12;
  if (plan.cluster_parts == 1) return 0;
  const auto parts = static_cast<double>(plan.cluster_parts);
  const double bytes = points * sizeof(float);
  return kBarriers + bytes / kOwnBytes + bytes * (parts - 1) / parts / kOtherBytes;
}

}  // namespace

tile::RegisterShares register_shares(const ContractionPlan& plan) {
  constexpr int64_t kLeast = 24, kUnit = 8, kMost = 240;
  const int64_t threads = plan.threads(), others = plan.block_threads() - threads;
  const int64_t all = tile::registers_at_start(plan.block_threads()) * plan.block_threads();
  const int64_t of_threads = std::min(kMost, (all - others * kLeast) / threads / kUnit * kUnit);
  const int64_t of_others = std::min<int64_t>((all - threads * of_threads) / others / kUnit * kUnit,
                                              tile::registers_at_start(plan.block_threads()));
  return {static_cast<int>(of_threads), static_cast<int>(of_others)};
}

int64_t most_registers(const ContractionPlan& plan) {
  return plan.gives_registers ? register_shares(plan).of_readers : tile::registers_at_start(plan.block_threads());
}

int64_t resident_blocks(const Contraction& c, const ContractionPlan& plan) {
  constexpr int64_t kProcessorShared = 228 * 1024, kProcessorRegisters = 65536, kOfBlock = 1024;
  const int64_t threads = plan.threads() + kProducerThreads;
  return std::max<int64_t>(1, std::min(kProcessorShared / (plan.shared_bytes(c) + kOfBlock),
                                       kProcessorRegisters / (threads * registers_of_thread(c, plan))));
}

double warpgroup_cycles(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr double kStartCycles = 2000, kGoOnCycles = 500, kStepCycles = 40, kStored = 24;
  // From a buffer's arrival to its release, where little is multiplied.
  constexpr double kLeastStep = 160;
  constexpr double kFoundCycles = 20;  // for each row, of three rounds through all rows; not measured
  // The blocks of a cluster wait for the slowest in each step. So a cluster must gain.
  constexpr double kClusterStep = 28, kInCluster = 1.005;
  const int64_t rows = tile_of(plan.tensor_cores->rows, plan);
  const double blocks = all_blocks(plan), points = points_of(plan);
  const auto processors = static_cast<double>(processors_for(plan.cluster_parts * plan.cluster_blocks(), device));
  const double multiplied = multiplied_cycles(c, plan, device), copied = copied_cycles(c, plan, device);
  const auto resident = static_cast<double>(resident_blocks(c, plan));
  const double each = std::ceil(blocks / processors);
  const double at_once = std::min(resident, each);
  // Products of another warpgroup go on while one adds what its step has brought to its sums, a register in a cycle.
  const bool alone = plan.tensor_cores->warpgroups * at_once <= 1;
  const double added = plan.tensor_cores->in_parts ? static_cast<double>(plan.registers()) : 0;
  // What threads compute is hidden in part by the products of the half of a step before.
  constexpr double kComputedBeside = 0.15;
  const double computed = computing_cycles(c, plan);
  const double busy =
      std::max(busy_cycles(plan, multiplied + (alone ? added : 0), copied), computed) + kComputedBeside * computed;
  const double step =
      std::max(busy, kLeastStep / at_once) + kStepCycles + (plan.cluster_blocks() > 1 ? kClusterStep : 0);
  // Buffers in flight hide the latency of boxes.
  const double ahead = std::max(1.0, static_cast<double>(plan.stages - 1)) * at_once;
  const double latency = latency_cycles(c, plan, device) / ahead + turn_cycles(plan, step);
  const auto steps = static_cast<double>(steps_of_block(c, plan));
  const int64_t group = plan.parallel[plan.order[0]].group;
  // Of a cluster that deals out the steps of a tile each block stores a part of its results.
  const auto parts = static_cast<double>(plan.cluster_parts);
  const bool singly = stores_singly(c, plan);
  const double stores = (singly ? 0 : points / kStored * stores_of_group(c, plan, plan.store_boxes) / parts) +
                        exchange_cycles(plan, points);
  // Which no other block hides.
  const double single_stores = singly ? points / parts * single_store_cycles(c, group) : 0;
  // The copies of the next tile begin while a block that goes on stores the last one.
  const double starts = plan.grid > 0 ? kGoOnCycles : kStartCycles;
  // A block with slices finds them first, and multiplies all of its rows by each.
  const double slices = expected_slices(c, plan), found = c.selection ? kFoundCycles * static_cast<double>(rows) : 0;
  const double block = slices * steps * std::max(step + turn_cycles(plan, step), latency) +
                       (starts + found + slices * stores) / at_once + single_stores;
  const double first = plan.grid > 0 ? kStartCycles - kGoOnCycles : 0;  // nothing hides the first tile's start
  // Blocks that go on have their tiles from the start, so all wait for the slowest: 8192^3 took 3 % longer on an H200.
  // So they, too, must gain clearly.
  constexpr double kGoesOn = 1.03;
  const double cycles = (each * block + kStartCycles + first) * (plan.grid > 0 ? kGoesOn : 1) *
                        (plan.cluster_blocks() * plan.cluster_parts > 1 ? kInCluster : 1);
  constexpr double kBeside = 0.05;  // of the shorter one, which the other does not hide
  const double memory = memory_cycles(c, plan, device) + kStartCycles;
  return std::max(cycles, memory) + kBeside * std::min(cycles, memory);
}

}  // namespace tc::gpu
