#include "tc/ir/guard_factors.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tc/ir/choice.h"
#include "tc/ir/factors.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/reads.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool is_zero(const Expr& e) { return hi::is_const_zero(hi::simplify(e)); }

/// A factor, and the conditions under which it is not zero.
struct Guarded {
  Expr value;
  std::vector<Expr> conditions{};
  std::set<std::string> subscripts{};  ///< the variables of those of its read

  Expr whole() const {
    Expr condition;
    for (const Expr& part : conditions) condition = conjunction(condition, part);
    return condition.defined() ? either(condition, value, hi::make_zero(value.type())) : value;
  }
};

/// A factor, which may be a choice between a read and zero already. Without variables if it is no single read.
Guarded guarded(const Program& program, const Expr& factor) {
  Guarded result{factor};
  if (const std::optional<Choice> choice = choice_of(factor);
      choice && !choice->is_select && is_zero(choice->no) && !is_data_dependent(choice->condition)) {
    result.value = choice->yes;
    result.conditions = conjuncts_of(choice->condition);
  }
  const auto* cast = result.value.as<hi::Cast>();
  const auto* read = (cast ? cast->value : result.value).as<hi::Call>();
  if (!read || !is_tensor_read(program, read)) return result;
  for (const Expr& subscript : read->args) result.subscripts.merge(variables_of(subscript));
  return result;
}

}  // namespace

std::optional<Statement> guard_factors(const Program& program, Statement statement) {
  const std::optional<Choice> choice = choice_of(statement.value);
  if (!choice || statement.assign != Assign::kAdd || !statement.value.type().is_float()) return std::nullopt;
  if (!is_zero(choice->no) || is_data_dependent(choice->condition)) return std::nullopt;
  std::vector<Guarded> factors;
  for (const Expr& factor : factors_of(choice->yes)) factors.push_back(guarded(program, factor));
  if (factors.size() < 2) return std::nullopt;
  for (const Expr& condition : conjuncts_of(choice->condition)) {
    const std::set<std::string> variables = variables_of(condition);
    const auto is_about = [&](const Guarded& factor) {
      return std::includes(factor.subscripts.begin(), factor.subscripts.end(), variables.begin(), variables.end());
    };
    const auto factor = std::find_if(factors.begin(), factors.end(), is_about);
    if (factor == factors.end()) return std::nullopt;
    factor->conditions.push_back(condition);
  }
  Expr product;
  for (const Guarded& factor : factors) product = product.defined() ? product * factor.whole() : factor.whole();
  statement.value = product;
  statement.accesses.clear();
  return statement;
}

}  // namespace tc::ir
