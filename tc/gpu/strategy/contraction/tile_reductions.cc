#include "tc/gpu/strategy/contraction/tile_reductions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <isl/map.h>
#include <isl/set.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "tc/gpu/rewrite/instructions.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/points.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class Finder {
 public:
  Finder(const poly::Scop& scop, const Contraction& contraction)
      : scop_(scop), c_(contraction), domains_(poly::statement_domains(scop)) {
    for (const Axis& axis : c_.parallel) axes_.push_back(axis.name);
    for (const auto* statements : {&c_.before, &c_.after}) {
      for (const poly::Statement& s : *statements) elements_.try_emplace(s.tensor, s.subscripts);
    }
    elements_[c_.update.tensor] = c_.update.subscripts;
    for (const Contraction& product : c_.further)
      elements_.try_emplace(product.update.tensor, product.update.subscripts);
    for (const Pooled& pooled : c_.pooled) pooled_.insert(pooled.statement.tensor);
    add_operands(c_);
    for (const Contraction& product : c_.further) add_operands(product);
  }

  std::vector<ReductionBehind> run() {
    std::vector<ReductionBehind> found;
    std::set<std::string> written = pooled_;  // between the contraction and the statement
    for (size_t s = c_.last; s < scop_.statements.size(); ++s) {
      const poly::Statement& statement = scop_.statements[s];
      if (is_start(s)) continue;
      std::optional<TileReduction> reduction = reads_any(statement, written) ? std::nullopt : reduction_at(s);
      if (reduction) {
        found.push_back({s, *std::move(reduction)});
      } else if (goes_through_results(s)) {
        return {};
      }
      written.insert(statement.tensor);
      if (elements_.count(statement.tensor) > 0) break;  // results change
    }
    return found;
  }

  std::optional<TileReduction> reduction_at(size_t s) const {
    const poly::Statement& statement = scop_.statements[s];
    const isl::set* domain = domain_of(domains_, statement.id);
    if (!domain || statement.kind != poly::Statement::Kind::kUpdate || statement.guard.defined()) return std::nullopt;
    if (std::count(statement.is_reduction.begin(), statement.is_reduction.end(), true) == 0) return std::nullopt;
    if (elements_.count(statement.tensor) + operands_.count(statement.tensor) > 0) return std::nullopt;
    TileReduction result;
    result.statement = statement;
    if (s > 0 && is_start(s - 1)) result.start = scop_.statements[s - 1].id;
    const size_t axes = axes_.size();
    result.reduced.assign(axes, false);
    result.index.resize(axes);
    result.shift.assign(axes, 0);
    result.part.resize(axes);
    result.part_extents.resize(axes);
    bool any = false;
    for (const hi::Call* read : ir::reads_in(*scop_.program, statement.value)) {
      if (operands_.count(read->name) > 0 || read->name == statement.tensor) return std::nullopt;
      if (elements_.count(read->name) == 0) continue;
      if (!any && !place(*read, *domain, result)) return std::nullopt;
      if (any && !is_at_point(*read, result)) return std::nullopt;
      any = true;
    }
    if (!any || !has_own_results(result) || !goes_through_all(result)) return std::nullopt;
    set_value(result);
    return result;
  }

 private:
  void add_operands(const Contraction& product) {
    for (const Operand& operand : product.operands) operands_.insert(operand.tensor);
  }

  /// Whether a statement only sets what the next one updates to identities.
  bool is_start(size_t s) const {
    return scop_.statements[s].kind == poly::Statement::Kind::kInit && s + 1 < scop_.statements.size() &&
           scop_.statements[s + 1].id + "_init" == scop_.statements[s].id;
  }

  bool reads_any(const poly::Statement& statement, const std::set<std::string>& tensors) const {
    const auto reads = ir::reads_in(*scop_.program, statement.value);
    return std::any_of(reads.begin(), reads.end(), [&](const auto* read) { return tensors.count(read->name) > 0; });
  }

  /// Whether a statement reads results, and is no product, for which they have to be stored anyway.
  bool goes_through_results(size_t s) const {
    const auto reads = ir::reads_in(*scop_.program, scop_.statements[s].value);
    const bool any =
        std::any_of(reads.begin(), reads.end(), [&](const auto* read) { return elements_.count(read->name) > 0; });
    return any && !contraction_at(scop_, s);
  }

  /// What each axis of a read of a result is over the statement's indices, as a linear form less the axis's own.
  std::optional<std::vector<LinearForm>> forms_of(const hi::Call& read, const poly::Statement& statement) const {
    std::vector<std::optional<LinearForm>> forms(axes_.size());
    const std::vector<Expr>& element = elements_.at(read.name);
    for (size_t d = 0; d < element.size(); ++d) {
      const std::optional<ShiftedIndex> axis = shifted(element[d], axes_);
      std::optional<LinearForm> form = linear(hi::simplify(read.args[d]), statement.indices);
      if (!axis || !form || forms[axis->index]) return std::nullopt;
      form->constant -= axis->constant;
      forms[axis->index] = *std::move(form);
    }
    std::vector<LinearForm> result;
    for (std::optional<LinearForm>& form : forms) {
      if (!form) return std::nullopt;
      result.push_back(*std::move(form));
    }
    return result;
  }

  /// Finds out which indices count along each axis.
  bool place(const hi::Call& read, const isl::set& domain, TileReduction& result) const {
    const poly::Statement& s = result.statement;
    const std::optional<std::vector<LinearForm>> forms = forms_of(read, s);
    if (!forms) return false;
    const auto least = [&](size_t i) { return poly::to_int64(domain.dim_min_val(static_cast<int>(i))); };
    const auto extent = [&](size_t i) {
      return poly::to_int64(domain.dim_max_val(static_cast<int>(i))) - least(i) + 1;
    };
    std::set<size_t> used;
    for (size_t a = 0; a < axes_.size(); ++a) {
      const Axis& axis = c_.parallel[a];
      std::optional<size_t> own, part;
      for (size_t i = 0; i < s.indices.size(); ++i) {
        if ((*forms)[a].coefficients[i] == 0) continue;
        if (!used.insert(i).second) return false;
        std::optional<size_t>& to = (*forms)[a].coefficients[i] == 1 && (!own || s.is_reduction[i]) ? own : part;
        if (&to == &own && own) std::swap(own, part);
        if (to) return false;
        to = i;
      }
      if (!own) return false;
      result.index[a] = s.indices[*own];
      result.reduced[a] = s.is_reduction[*own];
      result.shift[a] = (*forms)[a].constant;
      result.part_extents[a] = axis.extent;
      if (result.shift[a] + least(*own) != axis.begin) return false;
      if (!part) {
        if (extent(*own) != axis.extent) return false;
        continue;
      }
      const int64_t by = (*forms)[a].coefficients[*part];
      const bool is_part = result.reduced[a] && !s.is_reduction[*part] && least(*own) == 0 && least(*part) == 0 &&
                           extent(*own) <= by && ceil_div(axis.extent, by) == extent(*part);
      if (!is_part) return false;
      result.part[a] = s.indices[*part];
      result.part_extents[a] = by;
    }
    return used.size() == s.indices.size();
  }

  /// Whether a further read is of the same point.
  bool is_at_point(const hi::Call& read, const TileReduction& reduction) const {
    const std::optional<std::vector<LinearForm>> forms = forms_of(read, reduction.statement);
    if (!forms) return false;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if ((*forms)[a].constant != reduction.shift[a]) return false;
      for (size_t i = 0; i < reduction.statement.indices.size(); ++i) {
        const std::string& name = reduction.statement.indices[i];
        const int64_t by = name == reduction.index[a] ? 1 : name == reduction.part[a] ? reduction.part_extents[a] : 0;
        if ((*forms)[a].coefficients[i] != by) return false;
      }
    }
    return true;
  }

  /// Whether each of its results has an index of its own for all that it does not reduce over; L(0) has none.
  bool has_own_results(const TileReduction& reduction) const {
    const poly::Statement& s = reduction.statement;
    std::set<size_t> used;
    for (const Expr& subscript : s.subscripts) {
      if (hi::is_const(hi::simplify(subscript))) continue;
      const std::optional<ShiftedIndex> index = shifted(hi::simplify(subscript), s.indices);
      if (!index || s.is_reduction[index->index] || !used.insert(index->index).second) return false;
    }
    return used.size() + static_cast<size_t>(std::count(s.is_reduction.begin(), s.is_reduction.end(), true)) ==
           s.indices.size();
  }

  /// Whether its instances are one for each point: of the last part there are those that the axis has.
  bool goes_through_all(const TileReduction& reduction) const {
    const poly::Statement& s = reduction.statement;
    const isl::set& domain = *domain_of(domains_, s.id);
    std::vector<std::string> constraints;
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < s.indices.size(); ++i) {
      names[s.indices[i]] = fmt::format("i{}", i);
      const int at = static_cast<int>(i);
      constraints.push_back(fmt::format("{} <= i{} <= {}", poly::to_int64(domain.dim_min_val(at)), i,
                                        poly::to_int64(domain.dim_max_val(at))));
    }
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (reduction.part[a].empty()) continue;
      constraints.push_back(fmt::format("{} * {} + {} < {}", reduction.part_extents[a], names[reduction.part[a]],
                                        names[reduction.index[a]], c_.parallel[a].extent));
    }
    std::vector<std::string> tuple;
    for (size_t i = 0; i < s.indices.size(); ++i) tuple.push_back(fmt::format("i{}", i));
    const std::string text =
        fmt::format("{{ {}[{}] : {} }}", s.id, fmt::join(tuple, ", "), fmt::join(constraints, " and "));
    return domain.is_equal(isl::set(scop_.context->get(), text));
  }

  /// Its value over the axes: the indices of parts cancel out in subscripts.
  void set_value(TileReduction& reduction) const {
    std::map<std::string, Expr> names;
    for (size_t a = 0; a < axes_.size(); ++a) {
      Expr at = hi::Variable::make(ir::index_type(), axes_[a]) - hi::make_const(ir::index_type(), reduction.shift[a]);
      if (!reduction.part[a].empty()) {
        at = at - hi::Variable::make(ir::index_type(), reduction.part[a]) *
                      hi::make_const(ir::index_type(), reduction.part_extents[a]);
      }
      names[reduction.index[a]] = at;
    }
    struct Subscripts : hi::IRMutator {
      explicit Subscripts(const ir::Program& program) : program(program) {}
      const ir::Program& program;
      using hi::IRMutator::visit;
      Expr visit(const hi::Call* op) override {
        if (!ir::is_tensor_read(program, op)) return IRMutator::visit(op);
        std::vector<Expr> args;
        for (const Expr& arg : op->args) args.push_back(hi::simplify(arg));
        return hi::Call::make(op->type, op->name, args, op->call_type);
      }
    } subscripts(*scop_.program);
    reduction.value = subscripts.mutate(hi::substitute(names, reduction.statement.value));
  }

  const poly::Scop& scop_;
  const Contraction& c_;
  std::vector<isl::set> domains_;
  std::vector<std::string> axes_;
  std::map<std::string, std::vector<Expr>> elements_;  ///< per tensor that the group writes: that of a point
  std::set<std::string> pooled_, operands_;
};

}  // namespace

std::vector<ReductionBehind> reductions_behind(const poly::Scop& scop, const Contraction& contraction) {
  if (contraction.update.assign == ir::Assign::kSet || contraction.selection) return {};
  return Finder(scop, contraction).run();
}

std::optional<TileReduction> reduction_of_points(const poly::Scop& scop, const Contraction& contraction,
                                                 size_t statement) {
  return Finder(scop, contraction).reduction_at(statement);
}

bool gains_in_tiles(const poly::Scop& scop, const Contraction& c, const TileReduction& reduction,
                    const Device& device) {
  constexpr double kLaunchUs = 3, kLanesOfProcessor = 128;
  // Of a block's long straight code, with reads that little hides: a binary cross entropy of 4096 x 8192 results took
  // 247 us in the product's launch on an H200 and 185 us in one of its own, with 44 instructions for each.
  constexpr double kStalls = 2;
  const std::vector<std::string> held = written_tensors(c);
  const auto of_read = [&](const hi::Call* call) -> std::optional<double> {
    constexpr double kRead = 4;
    if (std::find(held.begin(), held.end(), call->name) != held.end()) return 0;
    return ir::is_tensor_read(*scop.program, call) ? std::optional(kRead) : std::nullopt;
  };
  constexpr double kReduced = 2;
  const double instructions = kStalls * (kReduced + instructions_of(reduction.value, of_read));
  double points = 1;
  for (const Axis& axis : c.parallel) points *= static_cast<double>(axis.extent);
  const double lanes_of_us = kLanesOfProcessor * static_cast<double>(device.processors) * device.gigahertz * 1e3;
  const double bytes = 2 * static_cast<double>(scop.program->tensor(c.update.tensor).type.bytes());  // written and read
  return points * instructions / lanes_of_us < kLaunchUs + points * bytes / device.memory_bytes_per_us;
}

bool reduces_in_tiles(const Contraction& contraction, const ContractionPlan& plan, const TileReduction& reduction) {
  for (size_t a = 0; a < reduction.reduced.size(); ++a) {
    if (!reduction.reduced[a]) continue;
    const AxisPlan& axis = plan.parallel[a];
    const bool fits = reduction.part[a].empty() ? axis.tile >= contraction.parallel[a].extent
                                                : axis.tile % reduction.part_extents[a] == 0;
    if (!fits) return false;
  }
  return thread_reduction(plan, reduction).has_value();
}

bool has_several_parts(const ContractionPlan& plan, const TileReduction& reduction, size_t axis) {
  return reduction.reduced[axis] && !reduction.part[axis].empty() &&
         plan.parallel[axis].tile > reduction.part_extents[axis];
}

namespace {

constexpr int64_t kWarp = 32, kQuad = 4, kRowLanes = kWarp / kQuad;

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/// Lets `left` values of an axis be combined by as many of `count` lanes, the first of which is a multiple of `lane`
/// lanes away; false where these are not neighbours by bits of the lane's number.
bool exchange(size_t axis, int64_t lane, int64_t count, int64_t& left, ThreadReduction& result) {
  const int64_t lanes = std::min(left, count);
  if (lanes > 1 && !(is_power_of_two(lane) && is_power_of_two(lanes) && left % lanes == 0 && count % lanes == 0)) {
    return false;
  }
  for (int64_t by = 1; by < lanes; by *= 2) result.lane_masks.push_back(static_cast<int>(lane * by));
  result.lanes[axis] = lanes;
  left /= lanes;
  return true;
}

/// Of an axis with several parts in a tile: its values lie in neighbouring registers, then in threads, of which `count`
/// in a warp, then in registers again.
bool add_parts(const ContractionPlan& plan, size_t axis, int64_t lane, int64_t count, const TileReduction& reduction,
               ThreadReduction& result) {
  const AxisPlan& a = plan.parallel[axis];
  int64_t left = reduction.part_extents[axis];
  result.low[axis] = std::min(left, a.group);
  if (a.group % result.low[axis] != 0 || left % result.low[axis] != 0) return false;
  left /= result.low[axis];
  if (!exchange(axis, lane, std::min(a.threads(), count), left, result)) return false;
  if (left == 1) return true;
  result.high[axis] = left;
  return result.lanes[axis] == a.threads() && a.registers / a.group % left == 0;
}

/// Of threads along some axes, the first axis fastest, those that lie within a warp: they are numbered by `first` in
/// steps, of which a warp has `count`.
bool add_lanes(const ContractionPlan& plan, const std::vector<size_t>& axes, int64_t first, int64_t count,
               const TileReduction& reduction, ThreadReduction& result) {
  int64_t stride = 1;
  for (size_t axis : axes) {
    const int64_t threads = plan.parallel[axis].threads();
    int64_t& lanes = result.lanes[axis];
    if (has_several_parts(plan, reduction, axis)) {
      const int64_t in_warp = stride < count ? std::gcd(threads, count / stride) : 1;
      if (!add_parts(plan, axis, first * stride, in_warp, reduction, result)) return false;
    } else {
      while (reduction.reduced[axis] && is_power_of_two(stride) && stride * lanes * 2 <= count &&
             threads % (lanes * 2) == 0) {
        result.lane_masks.push_back(static_cast<int>(first * stride * lanes));
        lanes *= 2;
      }
      if (reduction.reduced[axis]) result.slots *= threads / lanes;
    }
    stride *= threads;
  }
  return true;
}

/// The rows of a warpgroup that are reduced in part, or along some axes only: their values lie in lanes, then in the
/// two rows of a thread. Those behind these lie in other warps.
bool add_some_rows(const ContractionPlan& plan, const TileReduction& reduction, ThreadReduction& result) {
  int64_t stride = 1;
  for (size_t axis : plan.tensor_cores->rows) {
    const int64_t tile = plan.parallel[axis].tile;
    if (reduction.reduced[axis] && tile > 1) {
      const bool has_parts = has_several_parts(plan, reduction, axis);
      int64_t left = has_parts ? reduction.part_extents[axis] : tile;
      const int64_t lanes = stride < kRowLanes ? std::gcd(tile, kRowLanes / stride) : 1;
      if (kRowLanes % std::min(stride, kRowLanes) != 0 || !exchange(axis, kQuad * stride, lanes, left, result)) {
        return false;
      }
      if (left > 1) {
        const bool is_next = rows_apart(axis, plan) == result.lanes[axis] && left == 2;
        if (!is_next) return false;
        if (has_parts) result.high[axis] = 2;
      }
    }
    stride *= tile;
  }
  return true;
}

/// The same of warpgroups, whose rows lie in the lanes and warps.
bool add_warpgroup(const ContractionPlan& plan, const TileReduction& reduction, ThreadReduction& result) {
  const TensorCores& cores = *plan.tensor_cores;
  if (has_several_parts(plan, reduction, cores.columns[0])) {
    if (!add_parts(plan, cores.columns[0], 1, kQuad, reduction, result)) return false;
  } else if (reduction.reduced[cores.columns[0]]) {
    result.lane_masks = {1, 2};
    result.lanes[cores.columns[0]] = kQuad;
  }
  size_t rows = 0, reduced = 0;
  bool any_parts = false;
  for (size_t axis : cores.rows) {
    if (plan.parallel[axis].tile == 1) continue;
    ++rows;
    reduced += reduction.reduced[axis] ? 1 : 0;
    any_parts = any_parts || has_several_parts(plan, reduction, axis);
  }
  if (reduced == 0) return true;
  if (reduced < rows || any_parts) return !cores.pairs_rows && add_some_rows(plan, reduction, result);
  for (const int mask : {4, 8, 16}) result.lane_masks.push_back(mask);
  result.slots = plan.threads() / kWarp;
  return true;
}

}  // namespace

std::optional<ThreadReduction> thread_reduction(const ContractionPlan& plan, const TileReduction& reduction) {
  ThreadReduction result;
  const size_t axes = plan.parallel.size();
  result.lanes.assign(axes, 1);
  result.low.assign(axes, 1);
  result.high.assign(axes, 1);
  for (size_t a = 0; a < axes; ++a) {
    if (!reduction.reduced[a]) result.elements *= plan.parallel[a].tile;
    if (!has_several_parts(plan, reduction, a)) continue;
    if (plan.parallel[a].tile % reduction.part_extents[a] != 0) return std::nullopt;
    result.elements *= plan.parallel[a].tile / reduction.part_extents[a];
  }
  const bool has_whole_warps = plan.points_threads() % kWarp == 0;
  bool is_found = true;
  if (plan.by_warpgroups()) {
    is_found = add_warpgroup(plan, reduction, result);
  } else if (plan.tensor_cores) {
    is_found = add_lanes(plan, plan.tensor_cores->columns, 1, kQuad, reduction, result) &&
               add_lanes(plan, plan.tensor_cores->rows, kQuad, kRowLanes, reduction, result);
  } else {
    is_found = add_lanes(plan, plan.order, 1, has_whole_warps ? kWarp : 1, reduction, result);
  }
  return is_found ? std::optional(result) : std::nullopt;
}

int64_t shared_end_of_reductions(const Contraction& contraction, const ContractionPlan& plan, int64_t end) {
  for (const TileReduction& reduction : contraction.reductions) {
    const std::optional<ThreadReduction> threads = thread_reduction(plan, reduction);
    if (!threads) continue;
    const int64_t bytes = reduction.statement.accumulator.bytes();
    const auto allocate = [&](int64_t elements) {
      end = round_up(end, tile::kSharedAlignment) + round_up(elements * bytes, tile::kSharedAlignment);
    };
    if (plan.groups > 1) allocate(plan.registers() * plan.points_threads());
    if (threads->slots > 1) allocate(threads->slots * threads->elements);
  }
  return end;
}

}  // namespace tc::gpu
