#include "tc/gpu/strategy/contraction/stream.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/powers_of_two.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/ir/reads.h"
#include "tc/support/check.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

std::vector<std::string> names_of(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) names.push_back(axis.name);
  return names;
}

/// Whether a reduction goes along all of an axis, and keeps all others.
bool reduces_along(const TileReduction& reduction, size_t axis) {
  for (size_t a = 0; a < reduction.reduced.size(); ++a) {
    if (reduction.reduced[a] != (a == axis) || !reduction.part[a].empty()) return false;
  }
  return true;
}

/// Whether a read of the second product is at its row of what a reduction of the first one's results leaves.
bool is_at_row(const hi::Call& read, const TileReduction& reduction, const Contraction& first,
               const Contraction& second, const ChainLink& link) {
  const poly::Statement& s = reduction.statement;
  for (size_t d = 0; d < s.subscripts.size(); ++d) {
    const std::optional<ShiftedIndex> made = shifted(hi::simplify(s.subscripts[d]), s.indices);
    const std::optional<ShiftedIndex> own = shifted(hi::simplify(read.args[d]), names_of(second.parallel));
    if (!made || !own) return false;
    const auto index = std::find(reduction.index.begin(), reduction.index.end(), s.indices[made->index]);
    if (index == reduction.index.end()) return false;
    const auto axis = static_cast<size_t>(index - reduction.index.begin());
    const std::optional<size_t> row = row_of_second(link, axis);
    if (row != own->index) return false;
    const int64_t apart = second.parallel[*row].begin - first.parallel[axis].begin;
    if (own->constant != made->constant - reduction.shift[axis] - apart) return false;
  }
  return true;
}

/// Whether the second product reads what is reduced at its own rows alone.
bool reads_own_rows(const poly::Scop& scop, const Contraction& first, const Contraction& second,
                    const ChainLink& link) {
  for (const auto* statements : {&second.before, &second.after}) {
    for (const poly::Statement& s : *statements) {
      for (const hi::Call* read : reads_in(*scop.program, s.value)) {
        for (const TileReduction& reduction : first.reductions) {
          if (read->name == reduction.statement.tensor && !is_at_row(*read, reduction, first, second, link)) {
            return false;
          }
        }
      }
    }
  }
  return true;
}

}  // namespace

size_t slab_axis_of(const ChainLink& link) {
  for (const ChainLink::Dimension& d : link.dimensions) {
    if (!d.is_row) return d.made_by;
  }
  TC_CHECK(false, "the link by '{}' has no columns", link.tensor);
}

std::optional<size_t> row_of_second(const ChainLink& link, size_t axis_of_first) {
  for (const ChainLink::Dimension& d : link.dimensions) {
    if (d.is_row && d.made_by == axis_of_first) return d.read_by;
  }
  return std::nullopt;
}

bool is_stored(const poly::Scop& scop, const Chain& chain, const std::string& tensor) {
  if (scop.program->tensor(tensor).role != ir::Role::kTemporary) return true;
  Contraction all;
  all.first = chain.products.front().first;
  all.last = chain.products.back().last;
  return is_read_beyond(scop, all, tensor);
}

namespace {

/// The contraction by itself, without the statements before it whose results its blocks would compute.
std::optional<Contraction> without_computed_operands(const poly::Scop& scop, const Contraction& c) {
  const auto is_computed = [](const Operand& operand) { return operand.computed.has_value(); };
  if (std::none_of(c.operands.begin(), c.operands.end(), is_computed)) return c;
  for (size_t s = c.first; s < c.last; ++s) {
    std::optional<Contraction> alone = contraction_at(scop, s);
    if (alone && alone->update.id == c.update.id) return alone->last == c.last ? alone : std::nullopt;
  }
  return std::nullopt;
}

/// What all that stands behind a maximum that goes on reads it in, if that is one difference.
std::optional<Difference> difference_behind(const Contraction& c, const OnlineReduction& online) {
  const Difference result = {online.kept, c.reductions[online.reduction].statement.tensor};
  const auto is_all = [&](const Expr& value) { return reads_but_difference(value, result); };
  for (size_t p = online.points_before; p < c.after.size(); ++p) {
    if (!is_all(c.after[p].value)) return std::nullopt;
  }
  for (size_t r = 0; r < c.reductions.size(); ++r) {
    if (!online.before[r] && !is_all(c.reductions[r].value)) return std::nullopt;
  }
  return result;
}

/// What is an exponential of a maximum that goes on as a power of two.
void make_powers_of_two(Chain& chain) {
  Contraction& first = chain.products[0];
  const std::optional<Difference> difference = difference_behind(first, *chain.online);
  const auto change = [&](Expr& value, const std::set<std::string>& tensors) {
    const Expr kept = with_powers_of_two(value, tensors);
    value = with_powers_of_two(value, tensors, difference);
    chain.online->is_subtracted = chain.online->is_subtracted || !hi::equal(kept, value);
  };
  std::set<std::string> of_extreme = {first.reductions[chain.online->reduction].statement.tensor};
  for (poly::Statement& point : first.after) {
    const auto is_read = [&](const std::string& tensor) { return reads_tensor(point.value, tensor); };
    const bool depends = std::any_of(of_extreme.begin(), of_extreme.end(), is_read);
    change(point.value, of_extreme);
    if (depends) of_extreme.insert(point.tensor);
  }
  for (TileReduction& reduction : first.reductions) change(reduction.value, of_extreme);
}

}  // namespace

std::optional<Chain> streamed_chain(const poly::Scop& scop, const Contraction& maker, const Contraction& reader) {
  const std::optional<Contraction> makes = without_computed_operands(scop, maker);
  const std::optional<Contraction> alone = without_computed_operands(scop, reader);
  if (!makes || !alone) return std::nullopt;
  const Contraction &first = *makes, &second = *alone;
  std::optional<ReducedProduct> made = reduced_product(scop, first, second);
  if (!made) return std::nullopt;
  std::set<std::string> of_rows;
  for (const TileReduction& reduction : made->product.reductions) of_rows.insert(reduction.statement.tensor);
  // Chains take products without reductions, which are this one's own.
  std::vector<TileReduction> reductions = std::exchange(made->product.reductions, {});
  std::optional<ChainLink> link = link_between(scop, made->product, second, of_rows);
  const auto is_column = [](const ChainLink::Dimension& d) { return !d.is_row; };
  if (!link || second.reduction.size() != 1 ||
      std::count_if(link->dimensions.begin(), link->dimensions.end(), is_column) != 1) {
    return std::nullopt;
  }
  link->streamed = true;
  for (const TileReduction& reduction : reductions) {
    if (!reduces_along(reduction, slab_axis_of(*link))) return std::nullopt;
  }
  made->product.reductions = std::move(reductions);
  Chain chain{{std::move(made->product), second}, {*std::move(link)}, std::move(made->online)};
  for (const std::string& tensor : written_tensors(chain.products[0])) {
    if (is_stored(scop, chain, tensor)) return std::nullopt;
  }
  if (!reads_own_rows(scop, chain.products[0], second, chain.links[0])) return std::nullopt;
  chain.idle = idle_points(scop, first, second);
  if (chain.online) make_powers_of_two(chain);
  return chain;
}

}  // namespace tc::gpu
