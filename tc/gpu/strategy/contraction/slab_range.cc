#include "tc/gpu/strategy/contraction/slab_range.h"

#include <fmt/format.h>
#include <isl/aff.h>
#include <isl/map.h>
#include <isl/set.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tc/gpu/strategy/contraction/stream.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/isl_loops.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// Whether points are idle at some values along an axis only.
bool depends_on(const isl::set& points, const Axis& axis, size_t number) {
  const auto at = static_cast<unsigned>(number);
  isl::set all = isl::manage(isl_set_eliminate(points.copy(), isl_dim_set, at, 1));
  all = isl::manage(isl_set_lower_bound_si(all.release(), isl_dim_set, at, static_cast<int>(axis.begin)));
  const isl::val last = poly::make_val(points.ctx(), axis.begin + axis.extent - 1);
  all = isl::manage(isl_set_upper_bound_val(all.release(), isl_dim_set, at, last.copy()));
  return !all.is_subset(points);
}

int64_t at(const Expr& e, const std::map<std::string, Expr>& blocks) {
  return *ir::constant_int(hi::simplify(hi::substitute(blocks, e)));
}

/// Whether the second product's terms are made of elements that a thread can read one by one.
bool reads_plainly(const Chain& chain) {
  const Contraction& second = chain.products[1];
  std::set<std::string> read = ir::variables_of(second.update.value);
  for (size_t i = 0; i < second.operands.size(); ++i) {
    const Operand& o = second.operands[i];
    read.erase(o.placeholder);
    if (i != chain.links[0].operand && (o.chosen_row || o.computed || !o.inside.empty() || o.selected)) return false;
  }
  return read.empty() && !second.selection && second.further.empty();
}

class RangeFinder {
 public:
  RangeFinder(const IdlePoints& idle, const Contraction& first, const ContractionPlan& plan, size_t slab_axis)
      : idle_(idle), c_(first), plan_(plan), slab_axis_(slab_axis) {
    for (size_t i = 0; i < c_.parallel.size(); ++i) {
      result_.depends.push_back(i != slab_axis && plan.parallel[i].blocks > 1 &&
                                depends_on(idle.points, c_.parallel[i], i));
    }
  }

  std::optional<SlabRange> run() {
    const isl::set slabs = slabs_of_block();
    const std::optional<Expr> least = bound(slabs, false), greatest = bound(slabs, true);
    if (!least || !greatest) return std::nullopt;
    result_.first = *least;
    result_.count = hi::simplify(*greatest - *least + 1);
    sample();
    return result_.share < 1 ? std::optional(std::move(result_)) : std::nullopt;
  }

 private:
  int64_t count() const { return ceil_div(c_.parallel[slab_axis_].extent, plan_.parallel[slab_axis_].tile); }

  /// [blocks] -> { [slab] }: with points that count.
  isl::set slabs_of_block() const {
    std::string from, parameters, where;
    for (size_t i = 0; i < c_.parallel.size(); ++i) {
      from += fmt::format("{}a{}", i > 0 ? ", " : "", i);
      const int64_t begin = c_.parallel[i].begin, end = begin + c_.parallel[i].extent, tile = plan_.parallel[i].tile;
      where += fmt::format("{}{} <= a{} < {}", i > 0 ? " and " : "", begin, i, end);
      if (!result_.depends[i] && i != slab_axis_) continue;
      const std::string block = i == slab_axis_ ? "s" : block_variable(i);
      where += fmt::format(" and {0} <= a{1} - {2} * {3} < {4}", begin, i, tile, block, begin + tile);
      if (i == slab_axis_) continue;
      parameters += (parameters.empty() ? "" : ", ") + block;
      where += fmt::format(" and 0 <= {} < {}", block, plan_.parallel[i].blocks);
    }
    const std::string text = fmt::format("[{}] -> {{ [{}] -> [s] : {} }}", parameters, from, where);
    const isl::map slabs = isl::manage(isl_map_read_from_str(idle_.points.ctx().get(), text.c_str()));
    return slabs.subtract(slabs.intersect_domain(idle_.points)).range().coalesce();
  }

  /// The first or last of a block's slabs; the first of all where it has none.
  std::optional<Expr> bound(const isl::set& slabs, bool greatest) const {
    constexpr int kMostPieces = 4;
    isl::pw_aff value = isl::manage(greatest ? isl_set_dim_max(slabs.copy(), 0) : isl_set_dim_min(slabs.copy(), 0));
    std::string parameters, where = "true";
    poly::Iterators variables;
    for (size_t i = 0; i < c_.parallel.size(); ++i) {
      if (!result_.depends[i]) continue;
      const std::string block = block_variable(i);
      const int64_t last = plan_.parallel[i].blocks - 1;
      parameters += (parameters.empty() ? "" : ", ") + block;
      where += fmt::format(" and 0 <= {} <= {}", block, last);
      variables[block] = poly::ranged(hi::Variable::make(Halide::Int(32), block), 0, last);
    }
    const isl::set blocks = isl::manage(
        isl_set_read_from_str(slabs.ctx().get(), fmt::format("[{}] -> {{ : {} }}", parameters, where).c_str()));
    const isl::set none = blocks.subtract(value.domain());
    if (!none.is_empty()) {
      isl::pw_aff zero = isl::manage(
          isl_pw_aff_read_from_str(slabs.ctx().get(), fmt::format("[{}] -> {{ [(0)] }}", parameters).c_str()));
      value = value.union_add(zero.intersect_domain(none));
    }
    value = isl::manage(isl_pw_aff_coalesce(isl_pw_aff_gist(value.release(), blocks.copy())));
    if (isl_pw_aff_n_piece(value.get()) > kMostPieces) return std::nullopt;
    return hi::simplify(poly::as_int32(poly::to_ranged(poly::loop_expr(value), variables)));
  }

  /// The average, and the direction, by some of the blocks.
  void sample() {
    constexpr int64_t kSamples = 8;
    std::map<std::string, Expr> middle;
    for (size_t i = 0; i < c_.parallel.size(); ++i) {
      const auto half = static_cast<int>(plan_.parallel[i].blocks / 2);
      if (result_.depends[i]) middle[block_variable(i)] = half;
    }
    double sum = 0, samples = 0;
    if (middle.empty()) sum = static_cast<double>(at(result_.count, middle)), samples = 1;
    for (size_t i = 0; i < c_.parallel.size(); ++i) {
      result_.is_ascending.push_back(false);
      if (!result_.depends[i]) continue;
      const int64_t blocks = plan_.parallel[i].blocks;
      std::map<std::string, Expr> blocks_at = middle;
      std::vector<int64_t> counts;
      for (int64_t k = 0; k < kSamples; ++k) {
        blocks_at[block_variable(i)] = static_cast<int>((2 * k + 1) * blocks / (2 * kSamples));
        counts.push_back(at(result_.count, blocks_at));
        sum += static_cast<double>(counts.back()), samples += 1;
      }
      result_.is_ascending.back() = counts.back() > counts.front();
    }
    result_.share = sum / samples / static_cast<double>(count());
  }

  const IdlePoints& idle_;
  const Contraction& c_;
  const ContractionPlan& plan_;
  const size_t slab_axis_;
  SlabRange result_;
};

}  // namespace

std::string block_variable(size_t axis) { return fmt::format("block_{}", axis); }

std::optional<SlabRange> slab_range(const Chain& chain, const ContractionPlan& plan) {
  if (!chain.idle || (chain.idle->mask && !reads_plainly(chain))) return std::nullopt;
  return RangeFinder(*chain.idle, chain.products[0], plan, slab_axis_of(chain.links[0])).run();
}

double SlabShares::of(const ContractionPlan& plan) {
  if (!chain_.idle) return 1;
  std::vector<int64_t> tiles;
  for (const AxisPlan& axis : plan.parallel) tiles.push_back(axis.tile);
  const auto [found, is_new] = known_.try_emplace(std::move(tiles), 1);
  if (!is_new) return found->second;
  const std::optional<SlabRange> range = slab_range(chain_, plan);
  if (range) found->second = range->share;
  return found->second;
}

}  // namespace tc::gpu
