#include "tc/gpu/strategy/contraction/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/index_expr.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {

namespace hi = Halide::Internal;

namespace {

std::vector<size_t> axes_of(const Contraction& c) {
  std::vector<size_t> result;
  for (size_t axis = 0; axis < c.parallel.size(); ++axis) {
    if (ir::mentions(*c.selection, c.parallel[axis].name)) result.push_back(axis);
  }
  return result;
}

}  // namespace

std::optional<SelectedSlice> selected_slice(const ir::Program& program, const hi::Call* read,
                                            const std::vector<std::string>& names, size_t parallel) {
  std::optional<SelectedSlice> result;
  for (size_t d = 0; d < read->args.size(); ++d) {
    if (!reads_tensor(program, read->args[d])) continue;
    if (result || d + 1 == read->args.size()) return std::nullopt;
    result = {d, read->args[d]};
  }
  if (!result) return std::nullopt;
  bool selects = false, has_column = false;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_in_selection = ir::mentions(result->selection, names[i]);
    bool is_elsewhere = false;
    for (size_t d = 0; d < read->args.size(); ++d) {
      is_elsewhere = is_elsewhere || (d != result->dimension && ir::mentions(read->args[d], names[i]));
    }
    if (is_in_selection && (i >= parallel || is_elsewhere)) return std::nullopt;
    selects = selects || is_in_selection;
    has_column = has_column || (is_elsewhere && i < parallel);
  }
  const auto is_linear = [&](size_t d) { return d == result->dimension || linear(read->args[d], names); };
  for (size_t d = 0; d < read->args.size(); ++d) {
    if (!is_linear(d)) return std::nullopt;
  }
  return selects && has_column ? result : std::nullopt;
}

std::string selection_fault(const Contraction& c, const ContractionPlan& plan) {
  if (!c.selection) return "";
  if (!plan.by_warpgroups()) return "only warpgroups go through the slices of an operand that data select";
  if (plan.store_boxes || plan.grid > 0 || plan.cluster_blocks() > 1) {
    return "blocks that go through slices have one tile, without a cluster, and store rows by threads";
  }
  const std::vector<size_t>& rows = plan.tensor_cores->rows;
  for (size_t axis : axes_of(c)) {
    if (plan.parallel[axis].tile == 1 || std::find(rows.begin(), rows.end(), axis) != rows.end()) continue;
    return fmt::format("'{}' selects slices by its columns", c.parallel[axis].name);
  }
  return "";
}

int64_t slices_of(const Contraction& c) {
  for (const Operand& o : c.operands) {
    if (o.selected) return o.extents[*o.selected];
  }
  return 1;
}

double expected_slices(const Contraction& c, const ContractionPlan& plan) {
  if (!c.selection) return 1;
  int64_t all = 1, rows = 1;
  for (size_t axis : axes_of(c)) {
    all *= c.parallel[axis].extent;
    rows *= std::min(plan.parallel[axis].tile, c.parallel[axis].extent);
  }
  const int64_t slices = slices_of(c);
  const double run = std::max(1.0, static_cast<double>(all) / static_cast<double>(slices));
  return std::min(static_cast<double>(std::min(rows, slices)), 1 + static_cast<double>(rows - 1) / run);
}

int64_t shared_end_of_selection(const Contraction& c, const ContractionPlan& plan, int64_t end) {
  if (!c.selection || !plan.by_warpgroups()) return end;
  constexpr int64_t kLists = 4, kBytes = 4;
  const int64_t rows = tile_of(plan.tensor_cores->rows, plan);
  for (int64_t i = 0; i < kLists; ++i) end = round_up(end, tile::kSharedAlignment) + rows * kBytes;
  return round_up(end, tile::kSharedAlignment) + kBytes;
}

}  // namespace tc::gpu
