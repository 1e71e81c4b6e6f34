#include "tc/gpu/rewrite/factor_sums.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/factors.h"
#include "tc/ir/in_place.h"
#include "tc/ir/names.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr size_t kFactors = 3;

bool uses(const Expr& e, const ir::Index& index) { return hi::expr_uses_var(e, index.name); }

/// Moves one factor out of a statement's sum.
std::optional<FactoredSum> without_factor(const ir::Program& program, const ir::Statement& statement,
                                          const std::vector<Expr>& factors, size_t moved) {
  Expr rest;
  for (size_t f = 0; f < factors.size(); ++f) {
    if (f == moved) continue;
    rest = rest.defined() ? hi::Mul::make(rest, factors[f]) : factors[f];
  }
  FactoredSum result{.product = statement, .sum = statement};
  result.product.indices.clear();
  result.sum.indices.clear();
  bool any_inner = false, any_outer = false;
  std::vector<ir::Index> kept;
  for (const ir::Index& index : statement.indices) {
    const bool is_inner = index.is_reduction && !uses(factors[moved], index);
    any_inner = any_inner || is_inner;
    any_outer = any_outer || (index.is_reduction && !is_inner);
    if (is_inner) continue;
    result.sum.indices.push_back(index);
    if (!uses(rest, index)) continue;
    kept.push_back(index);
    kept.back().is_reduction = false;
  }
  if (!any_inner || !any_outer) return std::nullopt;
  result.product.indices = kept;
  for (const ir::Index& index : statement.indices) {
    if (index.is_reduction && !uses(factors[moved], index)) result.product.indices.push_back(index);
  }
  ir::Names names = ir::Names::among_statements(program);
  const std::string name = names.fresh(statement.tensor + "_products");
  result.temporary = temporary_over(name, statement.accumulator, kept);
  std::vector<Expr> at;
  for (const ir::Index& index : kept) at.push_back(subscript_of(index));
  result.product.id = names.fresh(statement.id + "_product");
  result.product.tensor = name;
  result.product.subscripts = at;
  result.product.initialises = true;
  result.product.value = rest;
  result.product.accesses.clear();
  result.product.index_values.clear();
  result.sum.value =
      hi::Mul::make(factors[moved], hi::Call::make(statement.accumulator, name, at, hi::Call::PureExtern));
  result.sum.accesses.clear();
  result.sum.index_values.clear();
  return result;
}

std::vector<FactoredSum> ways_to_factor(const ir::Program& program, const ir::Statement& statement) {
  std::vector<FactoredSum> result;
  const bool is_sum = statement.assign == ir::Assign::kAdd && statement.accumulator == Halide::Float(32);
  if (!is_sum || statement.guard.defined() || !ir::left_is_identity(statement)) return result;
  if (reads_tensor(statement.value, statement.tensor)) return result;
  for (const ir::Index& index : statement.indices) {
    if (extent_of(index) < 1) return result;
  }
  const std::vector<Expr> factors = ir::factors_of(statement.value);
  if (factors.size() != kFactors || !std::all_of(factors.begin(), factors.end(), ir::is_narrow_factor)) return result;
  for (size_t f = 0; f < factors.size(); ++f) {
    if (std::optional<FactoredSum> way = without_factor(program, statement, factors, f)) {
      result.push_back(*std::move(way));
    }
  }
  return result;
}

}  // namespace

ir::Program factor_sums(ir::Program program, const ChooseFactor& choose) {
  for (size_t at = 0; at < program.statements.size(); ++at) {
    const ir::Statement statement = program.statements[at];
    std::vector<FactoredSum> ways = ways_to_factor(program, statement);
    const std::optional<size_t> best = ways.empty() ? std::nullopt : choose(program, statement, ways);
    if (!best) continue;
    FactoredSum& way = ways[*best];
    program.tensors.push_back(std::move(way.temporary));
    // Before statements on the same tensor, so that what prepares the sum stays next to it.
    size_t place = at;
    while (place > 0 && program.statements[place - 1].tensor == statement.tensor &&
           !reads_tensor(way.product.value, statement.tensor)) {
      --place;
    }
    program.statements[at] = std::move(way.sum);
    program.statements.insert(program.statements.begin() + static_cast<long>(place), std::move(way.product));
    ++at;
  }
  return program;
}

}  // namespace tc::gpu
