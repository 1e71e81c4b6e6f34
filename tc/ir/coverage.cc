#include "tc/ir/coverage.h"

#include <isl/set.h>

#include <algorithm>

#include "tc/ir/index_expr.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool is_from_reads(const RangeEnd& by) {
  return by.rule == RangeRule::kReads || by.rule == RangeRule::kGuardedReads || by.rule == RangeRule::kBesideGuards;
}

/// True for an index over all of a dimension, as the texts of both say.
bool is_whole(const Index& index, const Expr& extent) {
  return hi::is_const_zero(index.begin) && hi::is_const_zero(hi::simplify(index.end - extent));
}

/// Whether a range that was inferred decides which part of a dimension a statement writes. Into which elements a
/// reducing operator combines, an expression on its left says, as data do for a scatter.
bool is_inferred(const Statement& s, const Expr& subscript, const Expr& extent) {
  if (s.reduces() && !subscript.as<hi::Variable>()) return false;
  const std::set<std::string> used = variables_of(subscript);
  return std::any_of(s.indices.begin(), s.indices.end(), [&](const Index& index) {
    if (!used.contains(index.name) || !(is_from_reads(index.begin_by) || is_from_reads(index.end_by))) return false;
    return !subscript.as<hi::Variable>() || !is_whole(index, extent);
  });
}

isl::set only_dimension(const isl::set& elements, int d) {
  const unsigned rank = elements.tuple_dim();
  isl_set* upto = isl_set_project_out(elements.copy(), isl_dim_set, static_cast<unsigned>(d) + 1,
                                      rank - static_cast<unsigned>(d) - 1);
  return isl::manage(isl_set_project_out(upto, isl_dim_set, 0, static_cast<unsigned>(d)));
}

}  // namespace

std::vector<InferredDimension> inferred_dimensions(const Program& program, const Tensor& tensor) {
  std::vector<InferredDimension> result;
  for (size_t s = 0; s < program.statements.size(); ++s) {
    const Statement& statement = program.statements[s];
    if (statement.tensor != tensor.name) continue;
    for (int d = 0; d < tensor.rank(); ++d) {
      if (is_data_dependent(statement.subscripts[d])) return {};
      if (is_inferred(statement, statement.subscripts[d], tensor.extents[d])) result.push_back({s, d});
    }
  }
  return result;
}

std::optional<Verdict> written_in_full(Prover& prover, const Program& program, const Tensor& tensor,
                                       const std::vector<InferredDimension>& inferred) {
  return prover.attempt([&] {
    const isl::set& context = prover.context();
    const isl::set all = prover.elements(tensor.extents);
    isl::set missing = all;
    for (const Statement& s : program.statements) {
      if (s.tensor == tensor.name) missing = missing.subtract(prover.written(s));
    }
    isl::set dimensions_whole = context;
    for (const InferredDimension& part : inferred) {
      const isl::set written = prover.written(program.statements[part.statement]);
      const isl::set lacking = prover.elements({tensor.extents[part.dimension]})
                                   .subtract(only_dimension(written, part.dimension))
                                   .intersect_params(all.params());
      dimensions_whole = dimensions_whole.subtract(lacking.params());
    }
    return prover.verdict_of(context.subtract(missing.params()).unite(dimensions_whole).coalesce());
  });
}

}  // namespace tc::ir
