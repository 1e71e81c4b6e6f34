#include "tc/ir/gather_scatters.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/ir/choice.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/ir/single_writes.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// coarse * stride + fine + constant, of indices of one statement; fine has `stride` values at least.
struct Overlap {
  const Index* coarse = nullptr;
  const Index* fine = nullptr;
  int64_t stride = 1;
  int64_t constant = 0;
};

const Index* map_index(const Statement& s, const std::string& name) {
  const auto at = std::find_if(s.indices.begin(), s.indices.end(),
                               [&](const Index& index) { return index.name == name && !index.is_reduction; });
  return at == s.indices.end() || extent_of(*at) < 1 ? nullptr : &*at;
}

std::optional<Overlap> overlap_of(const Statement& s, size_t dimension) {
  const std::optional<LinearForm> form = linear_form(hi::simplify(s.subscripts[dimension]));
  if (!form || form->coefficients.size() != 2) return std::nullopt;
  const auto& [first, by_first] = *form->coefficients.begin();
  const auto& [second, by_second] = *std::next(form->coefficients.begin());
  Overlap result{map_index(s, first), map_index(s, second), by_first, form->constant};
  if (result.coarse == nullptr || result.fine == nullptr || by_first < 1 || by_second < 1) return std::nullopt;
  if (std::min(by_first, by_second) != 1) return std::nullopt;
  const bool is_longer = extent_of(*result.coarse) >= extent_of(*result.fine);
  if (by_first < by_second || (by_first == by_second && !is_longer)) {
    std::swap(result.coarse, result.fine);
    result.stride = by_second;
  }
  for (size_t d = 0; d < s.subscripts.size(); ++d) {
    if (d != dimension && (mentions(s.subscripts[d], first) || mentions(s.subscripts[d], second))) return std::nullopt;
  }
  return extent_of(*result.fine) < result.stride ? std::nullopt : std::optional(result);
}

/// One statement, dimension by dimension.
class Gatherer {
 public:
  Gatherer(const Program& program, Statement statement)
      : names_(Names::among_statements(program)), s_(std::move(statement)) {}

  std::optional<Statement> run() && {
    bool overlaps = false;
    for (size_t d = 0; d < s_.subscripts.size(); ++d) {
      const std::optional<Overlap> overlap = overlap_of(s_, d);
      if (!overlap) continue;
      overlaps = overlaps || extent_of(*overlap->fine) > overlap->stride;
      gather(d, *overlap);
    }
    if (!overlaps || !tells_map_indices(s_)) return std::nullopt;
    hi::Scope<hi::Interval> bounds;
    for (const Index& index : s_.indices) {
      bounds.push(index.name, hi::Interval(index.begin, hi::simplify(index.end - 1)));
    }
    s_.value = either(hi::simplify(inside_, true, bounds), simplify_indices(s_.value, s_.indices),
                      identity_of(s_.assign, s_.value.type()));
    s_.accesses.clear();
    s_.index_values.clear();
    return std::move(s_);
  }

 private:
  void gather(size_t dimension, const Overlap& overlap) {
    const Index coarse = *overlap.coarse, fine = *overlap.fine;
    const int64_t turns = (extent_of(fine) + overlap.stride - 1) / overlap.stride;
    const int64_t first = overlap.stride * begin_of(coarse) + begin_of(fine) + overlap.constant;
    Index at = coarse;
    at.name = names_.fresh(coarse.name + "_" + fine.name);
    at.begin = index_constant(first);
    at.end = index_constant(first + overlap.stride * (extent_of(coarse) - 1) + extent_of(fine));
    const Expr behind = hi::simplify(index_variable(at.name) - index_constant(first));
    if (turns <= extent_of(coarse)) {
      // The fine index is the remainder and so many strides more.
      const Index turn = make_index(names_.fresh(fine.name + "_turn"), turns, true);
      const Expr stride = index_constant(overlap.stride), turn_of = index_variable(turn.name);
      replace(dimension, at, turn, coarse, behind / stride - turn_of, fine, turn_of * stride + behind % stride);
    } else {
      Index term = make_index(names_.fresh(coarse.name + "_term"), extent_of(coarse), true);
      const Expr of_term = index_variable(term.name);
      replace(dimension, at, term, coarse, of_term, fine, behind - of_term * index_constant(overlap.stride));
    }
  }

  /// Values of the indices less their first ones are those of two others, where they lie within the ranges.
  void replace(size_t dimension, const Index& at, const Index& term, const Index& coarse, const Expr& of_coarse,
               const Index& fine, const Expr& of_fine) {
    for (const auto& [index, value] : {std::pair(coarse, of_coarse), std::pair(fine, of_fine)}) {
      inside_ = conjunction(inside_, value >= index_constant(0));
      inside_ = conjunction(inside_, value < index_constant(extent_of(index)));
    }
    s_.value =
        substitute_variables(s_.value, {{coarse.name, of_coarse + coarse.begin}, {fine.name, of_fine + fine.begin}});
    s_.subscripts[dimension] = index_variable(at.name);
    std::vector<Index> indices;
    bool has_term = false;
    for (const Index& index : s_.indices) {
      if (index.is_reduction && !has_term) indices.push_back(term);
      has_term = has_term || index.is_reduction;
      if (index.name == fine.name) continue;
      indices.push_back(index.name == coarse.name ? at : index);
    }
    if (!has_term) indices.push_back(term);
    s_.indices = std::move(indices);
  }

  Names names_;
  Statement s_;
  Expr inside_;
};

}  // namespace

Program gather_scatters(Program program, const IsGathered& is_gathered) {
  for (Statement& s : program.statements) {
    const bool may_go = s.reduces() && !s.guard.defined() && s.value.type() == s.accumulator && !tells_map_indices(s);
    if (!may_go) continue;
    const std::vector<const hi::Call*> reads = reads_in(program, s.value);
    if (std::any_of(reads.begin(), reads.end(), [&](const auto* read) { return read->name == s.tensor; })) continue;
    std::optional<Statement> gathered = Gatherer(program, s).run();
    if (gathered && is_gathered({program, s, *gathered})) s = *std::move(gathered);
  }
  return program;
}

}  // namespace tc::ir
