#include "tc/gpu/strategy/contraction/row_stores.h"

#include <algorithm>
#include <numeric>

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

constexpr int64_t kWarp = 32, kWarpRows = 16, kRowsAtOnce = 8;  // of a warp of a warpgroup
constexpr int64_t kMostBytes = 16;                              // that a lane stores at once

/// Elements of a vector.
int64_t vector_of(const StoredTensor& stored) { return kMostBytes / stored.type.bytes(); }

}  // namespace

bool fills_sectors(const StoredTensor& stored, const ContractionPlan& plan) {
  constexpr int64_t kSectorBytes = 32, kThreads = 4;  // of a row
  if (plan.by_warpgroups()) return word_of(stored) == vector_of(stored);
  const int64_t bytes = stored.type.bytes();
  return 2 * kThreads * bytes >= kSectorBytes && stored.row_divisor() * bytes % kSectorBytes == 0;
}

int64_t word_of(const StoredTensor& stored) { return std::gcd(stored.row_divisor(), vector_of(stored)); }

double cycles_in_row(const StoredTensor& stored) {
  constexpr int64_t kWordBytes = 4, kLeast = 2;                     // an element of one byte takes as long
  constexpr double kShort = 0.1, kWords = 0.083, kVectors = 0.063;  // of a byte
  const int64_t bytes = stored.type.bytes(), word = word_of(stored) * bytes;
  return static_cast<double>(std::max(bytes, kLeast)) * (word < kWordBytes    ? kShort
                                                         : word == kMostBytes ? kVectors
                                                                              : kWords);
}

bool is_stored_by_rows(const StoredTensor& stored, const Contraction& c, const ContractionPlan& plan) {
  if (!plan.tensor_cores || plan.store_boxes || plan.grid > 0 || plan.groups > 1 || plan.cluster_parts > 1)
    return false;
  if (plan.tensor_cores->row_atoms > 1) return false;
  if (!c.pooled.empty() || !c.reductions.empty() || c.selection) return false;
  const std::vector<size_t>& columns = plan.tensor_cores->columns;
  const AxisPlan& a = plan.parallel[columns[0]];
  if (stored.type.bytes() > 4 || stored.extents.size() < 2) return false;
  const bool is_group = a.group == 2 || (plan.by_warpgroups() && a.group == 8);
  if (stored.axes.back() != c.parallel[columns[0]].name || !is_group || plan.order[0] != columns[0]) return false;
  const auto is_one = [&](size_t axis) { return plan.parallel[axis].tile == 1; };
  return std::all_of(columns.begin() + 1, columns.end(), is_one) && !fills_sectors(stored, plan);
}

bool stores_by_rows(const Contraction& c, const ContractionPlan& plan) {
  return std::any_of(c.stored.begin(), c.stored.end(),
                     [&](const StoredTensor& stored) { return is_stored_by_rows(stored, c, plan); });
}

StagedRows staged_rows(const StoredTensor& stored, const ContractionPlan& plan) {
  // Eight rows begin in banks four apart, which has no conflicts where threads write pairs of two bytes. Where they
  // write vectors, a larger distance would have none, and take the memory of a buffer from many plans.
  constexpr int64_t kBankBytes = 128, kApartBytes = 16;
  const int64_t bytes = stored.type.bytes();
  StagedRows result{.units = 1, .rows = 1, .columns = plan.parallel[plan.tensor_cores->columns[0]].tile};
  result.pitch = (round_up(result.columns * bytes, kBankBytes) + kApartBytes) / bytes;
  if (plan.by_warpgroups()) {
    result.units = plan.threads() / kWarp;
    result.rows = kRowsAtOnce;
  } else {
    for (size_t axis : plan.tensor_cores->rows) result.rows *= plan.parallel[axis].threads();
  }
  return result;
}

int64_t shared_end_of_rows(const Contraction& c, const ContractionPlan& plan, int64_t end) {
  for (const StoredTensor& stored : c.stored) {
    if (!is_stored_by_rows(stored, c, plan)) continue;
    const StagedRows staged = staged_rows(stored, plan);
    end = round_up(end, tile::kSharedAlignment) + staged.units * staged.rows * staged.pitch * stored.type.bytes();
  }
  return end;
}

void ContractionBuilder::declare_rows() {
  for (const StoredTensor& stored : c_.stored) {
    if (!is_stored_by_rows(stored, c_, plan_)) continue;
    const StagedRows staged = staged_rows(stored, plan_);
    Tensor tensor = build::shared(names_.fresh(stored.tensor + "_rows"), stored.type,
                                  row_major({staged.units, staged.rows, staged.pitch}));
    tensor.written = true;
    rows_.emplace(stored.tensor, std::move(tensor));
  }
}

/// Along an axis of the rows, where a row of a unit that is staged lies in the block's tile.
Expr ContractionBuilder::local_of_row(size_t axis, const Expr& row) const {
  Expr rest = plan_.by_warpgroups() ? row + row_warp_ * static_cast<int>(kWarpRows) : row;
  const std::vector<size_t>& rows = plan_.tensor_cores->rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    const AxisPlan& a = plan_.parallel[rows[i]];
    const auto count = static_cast<int>(plan_.by_warpgroups() ? a.tile : a.threads());
    if (rows[i] == axis) {
      Expr own = i + 1 < rows.size() ? rest % count : rest;
      if (plan_.by_warpgroups()) {
        if (a.tile == 1) return 0;
        const auto apart = static_cast<int>(rows_apart(axis, plan_));
        return apart > 0 ? own + build::var(high_[axis]) * apart : own;
      }
      return a.registers > 1 ? own + build::var(high_[axis]) * count : own;
    }
    rest = rest / count;
  }
  return 0;
}

/// The element of a result in a row and column that are staged.
std::vector<Expr> ContractionBuilder::element_in_row(const std::string& tensor, const Expr& row,
                                                     const Expr& column) const {
  BodyContext context = context_at(true);
  const TensorCores& cores = *plan_.tensor_cores;
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    const Axis& a = c_.parallel[axis];
    const Expr local = axis == cores.columns[0] ? column : local_of_row(axis, row);
    context.indices[a.name] = poly::ranged(hi::simplify(first_[axis] + local), a.begin, a.begin + a.extent - 1);
  }
  return element_at(element_of(tensor), context);
}

/// What is known of a result that is stored.
const StoredTensor& ContractionBuilder::stored_as(const std::string& tensor) const {
  return *std::find_if(c_.stored.begin(), c_.stored.end(),
                       [&](const StoredTensor& stored) { return stored.tensor == tensor; });
}

/// Whether a row is one of the result's.
Expr ContractionBuilder::is_row_inside(const Expr& row) const {
  Expr inside = hi::const_true();
  for (size_t axis : plan_.tensor_cores->rows) {
    const Axis& a = c_.parallel[axis];
    if (!is_partial(axis)) continue;
    inside = inside && first_[axis] + local_of_row(axis, row) < static_cast<int>(a.begin + a.extent);
  }
  return hi::simplify(inside);
}

/// Stores the rows of a unit that are staged, by words: lanes of a warp have neighbours.
NodePtr ContractionBuilder::store_rows(const std::string& tensor, const Expr& unit) {
  const StoredTensor& stored = stored_as(tensor);
  const StagedRows staged = staged_rows(stored, plan_);
  const Axis& column = c_.parallel[plan_.tensor_cores->columns[0]];
  const Tensor& from = rows_.at(tensor);
  const Tensor to = global_tensor(program_.tensor(tensor), true);
  const Expr left = static_cast<int>(column.begin + column.extent) - first_[plan_.tensor_cores->columns[0]];
  const Expr filled = hi::simplify(Halide::min(left, static_cast<int>(staged.columns)));
  const auto word = static_cast<int>(std::gcd(word_of(stored), staged.columns));
  const auto warps = static_cast<int>(plan_.by_warpgroups() ? 1 : plan_.threads() / kWarp);
  const auto turns = static_cast<int>(ceil_div(staged.rows, warps));
  const auto rounds = static_cast<int>(ceil_div(staged.columns, word * kWarp));
  const std::string turn = names_.fresh("row_turn"), round = names_.fresh("round");
  Expr row = turns > 1 ? build::var(turn) * warps : Expr(0);
  if (warps > 1) row = row + point_thread_ / static_cast<int>(kWarp);
  row = hi::simplify(row);
  const Expr number = rounds > 1 ? lane_ + build::var(round) * static_cast<int>(kWarp) : lane_;
  const Expr at = hi::simplify(number * word);
  NodePtr result = build::if_then(hi::simplify(at < filled), build::move(to, element_in_row(tensor, row, at), from,
                                                                         std::vector<Expr>{unit, row, at}, word));
  if (rounds > 1) result = build::unrolled(round, 0, rounds, result);
  Expr inside = is_row_inside(row);
  if (turns * warps > staged.rows) inside = hi::simplify(row < static_cast<int>(staged.rows) && inside);
  if (!hi::is_const_one(inside)) result = build::if_then(inside, result);
  return turns > 1 ? build::for_loop(turn, 0, turns, result) : result;
}

NodePtr ContractionBuilder::finish_by_rows() {
  const size_t column = plan_.tensor_cores->columns[0];
  const AxisPlan& a = plan_.parallel[column];
  const bool by_warps = plan_.by_warpgroups();
  const auto barrier = [&] {
    return build::barrier(by_warps ? tile::Barrier::Scope::kWarp : tile::Barrier::Scope::kBlock);
  };
  const auto groups = static_cast<int>(a.registers / a.group);
  const Expr unit = by_warps ? row_warp_ : Expr(0);
  const Expr own_row = hi::simplify(by_warps ? lane_ / 4 : lane_ / 4 + row_warp_ * static_cast<int>(kRowsAtOnce));
  const std::vector<std::string> names = written();
  // The last column may be the first one of a pair.
  std::vector<NodePtr> lane, others, staging;
  for (const std::string& name : names) {
    if (!is_seen(name)) continue;
    const Tensor& result = results_.at(name);
    const auto by_rows = rows_.find(name);
    if (by_rows == rows_.end()) {
      others.push_back(build::store(global_tensor(program_.tensor(name), true), element_here(name),
                                    build::read(result, {result_lane()})));
      continue;
    }
    // Floats of 8 bits have no immediate values.
    lane.push_back(build::store(result, {result_lane()}, hi::Cast::make(result.type, 0.0F)));
    const Expr first = hi::substitute(low_[column], Expr(0), local(column));
    const auto piece = static_cast<int>(std::min(a.group, vector_of(stored_as(name))));
    for (int at = 0; at < static_cast<int>(a.group); at += piece) {
      staging.push_back(build::move(by_rows->second, {unit, own_row, hi::simplify(first + at)}, result, {at}, piece));
    }
  }
  NodePtr own = point(names);
  if (!others.empty()) {
    others.insert(others.begin(), own);
    own = build::sequence(std::move(others));
  }
  const auto end = static_cast<int>(c_.parallel[column].begin + c_.parallel[column].extent);
  lane.push_back(build::if_then(hi::simplify(first_[column] + local(column)) < end, own));
  staging.insert(staging.begin(), over_lanes(build::sequence(std::move(lane))));
  NodePtr body = build::sequence(std::move(staging));
  for (auto& [name, tensor] : results_) body = build::allocate(tensor, body);
  if (const Expr inside = is_inside(); inside.defined()) body = build::if_then(inside, body);
  if (groups > 1) body = build::unrolled(high_[column], 0, groups, body);

  std::vector<NodePtr> rows;
  for (const std::string& name : names) {
    if (rows_.count(name) > 0) rows.push_back(store_rows(name, unit));
  }
  const NodePtr result = build::sequence({body, barrier(), build::sequence(std::move(rows)), barrier()});
  std::vector<size_t> axes;  // of the rows
  for (size_t axis : all_axes()) {
    if (axis != column) axes.push_back(axis);
  }
  return over_registers(axes, [&] { return result; });
}

}  // namespace tc::gpu
