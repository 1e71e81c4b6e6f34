#include "tc/gpu/strategy/contraction/warpgroups.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/strided_boxes.h"
#include "tc/ir/layouts.h"
#include "tc/support/round.h"
#include "tc/tile/matrix_descriptor.h"

namespace tc::gpu {
namespace {

constexpr int64_t kCopied = 16;  ///< bytes that starts and strides of boxes are multiples of
constexpr int64_t kMostDimensions = 5;

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

/// The first one.
int64_t first_read(const Contraction& c, const Subscript& s) {
  int64_t first = s.constant;
  for (size_t i = 0; i < s.parallel.size(); ++i) first += s.parallel[i] * c.parallel[i].begin;
  for (size_t r = 0; r < s.reduction.size(); ++r) first += s.reduction[r] * c.reduction[r].begin;
  return first;
}

/// Whether a map's rows go on with those of other remainders.
bool shares_rows_with_remainders(const Operand& o) {
  const size_t next = o.subscripts.size() - 2;
  return o.subscripts.size() > 1 && box_step(o, next) > 1 && has_remainders_in_rows(o, next);
}

}  // namespace

int64_t row_of(const Operand& operand) { return tile::row_elements(operand.type.bytes()); }

int64_t chunk_of(const Contraction& c) {
  int64_t result = 1;
  for (size_t i = 0; i < c.operands.size(); ++i) result = std::max(result, row_of(in_memory(c, i)));
  return result;
}

std::vector<int64_t> chunks_of(const Contraction& c, size_t main) {
  const int64_t whole = chunk_of(c);
  std::vector<int64_t> only(c.reduction.size(), 1);
  only[main] = whole;
  if (c.reduction.size() == 1 || c.reduction[main].extent % whole == 0) return only;
  const auto is_plain = [&](const Operand& o) {
    const std::vector<int64_t>& last = o.subscripts.back().reduction;
    return !o.chosen_row && !o.computed && !o.selected &&
           std::all_of(last.begin(), last.end(), [](int64_t by) { return by == 0; });
  };
  if (!std::all_of(c.operands.begin(), c.operands.end(), is_plain)) return only;
  // Both operands have the axes' dimensions in the same order, so that the rows of their boxes go together.
  const auto dimensions = [&](const Operand& o) {
    std::vector<int> result;
    for (size_t r = 0; r < c.reduction.size(); ++r) result.push_back(dimension_along(o, &Subscript::reduction, r));
    return result;
  };
  const std::vector<int> of_a = dimensions(c.operands[0]), of_b = dimensions(c.operands[1]);
  std::vector<int64_t> chunks(c.reduction.size(), 1);
  int64_t left = whole;
  const auto take = [&](size_t r) {
    if (of_a[r] < 0 || of_b[r] < 0) return;
    for (size_t other = 0; other < chunks.size(); ++other) {
      const bool is_in_order = (of_a[other] < of_a[r]) == (of_b[other] < of_b[r]);
      if (other != r && chunks[other] > 1 && (!is_in_order || of_a[other] == of_a[r] || of_b[other] == of_b[r])) return;
    }
    const auto extent = static_cast<uint64_t>(c.reduction[r].extent);
    chunks[r] = std::min(left, int64_t{1} << std::countr_zero(extent));
    left /= chunks[r];
  };
  take(main);
  for (size_t r = c.reduction.size(); r-- > 0;) {
    if (r != main) take(r);
  }
  const bool may_fill =
      std::all_of(c.operands.begin(), c.operands.end(), [&](const Operand& o) { return has_axis_alone(o, main); });
  const int64_t least = may_fill ? whole / 2 : values_of_slice(c.operands[0]);
  return whole / left >= least ? chunks : only;
}

int64_t values_of_chunks(const ContractionPlan& plan) {
  return std::accumulate(plan.chunk.begin(), plan.chunk.end(), int64_t{1}, std::multiplies<>());
}

int64_t boxes_along(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  return runs_across(c, operand, plan) ? 1 : plan.chunk[plan.main] / row_of(in_memory(c, operand));
}

int64_t values_of_slice(const Operand& operand) { return tile::WarpgroupAtom::kSliceBytes / operand.type.bytes(); }

int64_t values_of_step(const Contraction& c, const ContractionPlan& plan) {
  const int64_t all = values_of_chunks(plan);
  if (all != plan.chunk[plan.main]) return all;
  return std::min(all, round_up(c.reduction[plan.main].extent, values_of_slice(c.operands[0])));
}

bool runs_along_reduction(Halide::Type type) { return type.bytes() != 2; }

bool lies_in_lines(const Operand& operand) {
  constexpr int64_t kLine = 128;
  return operand.pitch() * operand.type.bytes() % kLine == 0;
}

int dimension_along(const Operand& operand, const std::vector<int64_t> Subscript::*side, size_t axis) {
  int result = -1;
  for (size_t d = 0; d < operand.subscripts.size(); ++d) {
    const int64_t by = (operand.subscripts[d].*side)[axis];
    if (by == 0) continue;
    const int64_t step = side == &Subscript::parallel ? box_step(operand, d) : 1;
    if ((by != 1 && by != step) || result >= 0) return -1;
    result = static_cast<int>(d);
  }
  return result;
}

int64_t first_inside(const Operand& operand, size_t dimension) {
  return operand.inside.empty() ? 0 : operand.inside[dimension].least.value_or(0);
}

const std::vector<size_t>& side_of(size_t operand, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  return operand == cores.a ? cores.rows : cores.columns;
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

int64_t rows_apart(size_t axis, const ContractionPlan& plan, RowDigit digit) {
  constexpr int64_t kWithinAtom = 8;
  const TensorCores& cores = *plan.tensor_cores;
  if (cores.pairs_rows || (digit == RowDigit::kAtoms && cores.row_atoms == 1)) return 0;
  const int64_t apart = digit == RowDigit::kAtoms ? tile::WarpgroupAtom::kM * cores.warpgroups : kWithinAtom;
  int64_t stride = 1;
  for (size_t row : cores.rows) {
    const int64_t tile = plan.parallel[row].tile;
    if (row == axis) return stride <= apart && apart < stride * tile ? apart / stride : 0;
    stride *= tile;
  }
  return 0;
}

std::vector<RowDigit> row_digits(size_t axis, const ContractionPlan& plan) {
  std::vector<RowDigit> result;
  for (const RowDigit digit : {RowDigit::kWithinAtom, RowDigit::kAtoms}) {
    if (rows_apart(axis, plan, digit) > 0) result.push_back(digit);
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

int64_t steps_of_block(const Contraction& c, const ContractionPlan& plan) {
  return ceil_div(plan.steps(c), plan.cluster_parts);
}

std::optional<size_t> cut_dimension(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Operand& o = in_memory(c, operand);
  const int64_t slabs = plan.operands[operand].stage / (row_of(o) * values_of_chunks(plan));
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
  const int64_t rows = blocks_of(axes, plan), columns = blocks_of(plan.tensor_cores->columns, plan);
  // In a group of many rows neighbours read the same columns, in a group of one the same rows.
  const bool shares_columns = columns * column >= rows * row;
  int64_t result = plan.parallel[axes[0]].cluster, least = 0,
          before = 1;  // `before`: blocks along the axes before this one
  for (size_t axis : axes) {
    const int64_t blocks = plan.parallel[axis].blocks;
    for (int64_t along = 1; along <= std::min(blocks, device.processors / before); ++along) {
      if (blocks % along != 0 || along % plan.parallel[axis].cluster != 0) continue;
      const int64_t group = before * along;
      const int64_t in_group = ceil_div(device.processors, group);  // blocks along the columns
      const int64_t rows_at_once = std::min(ceil_div(in_group, columns) * group, rows);
      const int64_t read = rows_at_once * row + std::min(in_group, columns) * column;
      if (least > 0 && (shares_columns ? read > least : read >= least)) continue;
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
                       c.reduction[plan.main].name,
                       ir::is_float8(o.type) ? "8-bit floats"
                       : o.type.is_float()   ? "TF32"
                                             : "8-bit integers");
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
  if (!runs_across(c, operand, plan) && plan.chunk[plan.main] % row_of(o) != 0) {
    return fmt::format("a step of {} is no multiple of a row of {} elements of '{}'", plan.chunk[plan.main], row_of(o),
                       o.tensor);
  }
  if (o.pitch() * bytes % kCopied != 0) {
    return fmt::format("rows of '{}' are no multiple of {} bytes", o.tensor, kCopied);
  }
  for (size_t d = 0; d < o.extents.size(); ++d) {
    if (o.strides[d] * bytes >= int64_t{1} << 40) return fmt::format("'{}' is too large for boxes", o.tensor);
  }
  const Subscript& row = o.subscripts.back();
  if (shares_rows_with_remainders(o) && (first_read(c, row) != 0 || extent_read(c, row) != o.extents.back())) {
    return fmt::format("behind what is read of rows of '{}' lie others, a stride away", o.tensor);
  }
  if (has_remainders(o) && sharers(operand, plan).count > 1) {
    return fmt::format("blocks do not share boxes of rows of '{}' that lie apart", o.tensor);
  }
  constexpr int64_t kPattern = 8;  // rows that a swizzle repeats after
  const int64_t parts = sharers(operand, plan).count;
  const int64_t rows = runs_across(c, operand, plan) ? values_of_chunks(plan) : tile_of(side_of(operand, plan), plan);
  const int64_t cut = plan.parallel[slowest_axis(side_of(operand, plan), plan)].tile;
  if (parts > 1 && values_of_chunks(plan) != plan.chunk[plan.main]) {
    return fmt::format("blocks do not share boxes of '{}' that have parts of several axes", o.tensor);
  }
  if (rows % (parts * kPattern) != 0 || (!runs_across(c, operand, plan) && cut % parts != 0)) {
    return fmt::format("{} blocks do not share {} rows of '{}' in eights", parts, rows, o.tensor);
  }
  return "";
}

OperandPlan boxed_operand(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const Operand& o = in_memory(c, operand);
  const int64_t row = row_of(o), chunk = values_of_chunks(plan);
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
  for (size_t r = 0; r < c.reduction.size(); ++r) {
    const int64_t values = r == plan.main && !across ? row : plan.chunk[r];
    if (values > 1) result.box.at(static_cast<size_t>(dimension_along(o, &Subscript::reduction, r))) = values;
  }
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
    const int64_t step = box_step(o, d);
    map.extents.push_back(ceil_div(std::min(read, end) - first, step));
    map.strides.push_back(o.strides[d] * step);
    const bool is_last = d + 1 == o.subscripts.size();
    const int64_t box = plan.operands[operand].box[d] / (cut == d ? sharers(operand, plan).count : 1);
    map.box.push_back(is_last ? row_of(o) : box);
    if (step == 1) continue;
    if (has_remainders_in_rows(o, d)) {
      map.extents.front() = step * o.extents.back();
      continue;
    }
    map.extents.push_back(step);
    map.strides.push_back(o.strides[d]);
    map.box.push_back(1);
  }
  map.swizzle = static_cast<int>(row_of(o) * o.type.bytes());
  return map;
}

tile::RegisterShares register_shares(const ContractionPlan& plan) {
  constexpr int64_t kLeast = 24, kUnit = 8, kMost = 240;
  const int64_t threads = plan.threads() * plan.teams(), others = plan.block_threads() - threads;
  const int64_t all = tile::registers_at_start(plan.block_threads()) * plan.block_threads();
  const int64_t of_threads = std::min(kMost, (all - others * kLeast) / threads / kUnit * kUnit);
  const int64_t of_others = std::min<int64_t>((all - threads * of_threads) / others / kUnit * kUnit,
                                              tile::registers_at_start(plan.block_threads()));
  return {static_cast<int>(of_threads), static_cast<int>(of_others)};
}

int64_t most_registers(const ContractionPlan& plan) {
  return plan.gives_registers ? register_shares(plan).of_readers : tile::registers_at_start(plan.block_threads());
}

bool leaves_registers(const ContractionPlan& plan, int64_t sums) {
  constexpr int64_t kBeside = 32;
  return sums + kBeside <= most_registers(plan);
}

}  // namespace tc::gpu
