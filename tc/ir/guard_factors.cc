#include "tc/ir/guard_factors.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tc/ir/choice.h"
#include "tc/ir/factors.h"
#include "tc/ir/guarded_read.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool is_zero(const Expr& e) { return hi::is_const_zero(hi::simplify(e)); }

/// A factor, and the conditions under which it is not zero.
struct Guarded {
  Expr value;
  std::vector<Expr> conditions{};
  const hi::Call* read = nullptr;

  Expr whole() const {
    Expr condition;
    for (const Expr& part : conditions) condition = conjunction(condition, part);
    return condition.defined() ? either(condition, value, hi::make_zero(value.type())) : value;
  }
};

/// A factor, which may be a choice between a read and zero already. Without a read if it is none.
Guarded guarded(const Program& program, const Expr& factor) {
  Guarded result{factor};
  if (const std::optional<Choice> choice = choice_of(factor);
      choice && !choice->is_select && is_zero(choice->no) && !is_data_dependent(choice->condition)) {
    result.value = choice->yes;
    result.conditions = conjuncts_of(choice->condition);
  }
  const auto* cast = result.value.as<hi::Cast>();
  const auto* read = (cast ? cast->value : result.value).as<hi::Call>();
  if (read && is_tensor_read(program, read)) result.read = read;
  return result;
}

/// Whether what is at least 0 says that a read is on one side of its tensor's first element, or of its last one.
bool is_edge(const Program& program, const LinearForm& slack, const hi::Call* read) {
  const Shape extents = constant_shape(program.tensor(read->name));
  for (size_t d = 0; d < extents.size(); ++d) {
    const std::optional<LinearForm> at = linear_form(read->args[d]);
    if (!at || at->coefficients.empty()) continue;
    const LinearForm last = difference({{}, extents[d] - 1}, *at);
    for (const LinearForm& edge : {*at, last}) {
      if (edge.coefficients == slack.coefficients && edge.constant == slack.constant) return true;
    }
  }
  return false;
}

/// Gives a reduction index the range that a condition on it alone leaves it; false if it is no such condition.
bool narrow(Statement& s, const LinearForm& slack) {
  if (slack.coefficients.size() != 1) return false;
  const std::string& name = slack.coefficients.begin()->first;
  const int64_t coefficient = slack.coefficients.begin()->second;
  const auto index = std::find_if(s.indices.begin(), s.indices.end(),
                                  [&](const Index& i) { return i.name == name && i.is_reduction; });
  if (index == s.indices.end() || (coefficient != 1 && coefficient != -1)) return false;
  const int64_t begin = begin_of(*index), end = begin + extent_of(*index);
  if (coefficient == 1) {
    index->begin = index_constant(std::min(end, std::max(begin, -slack.constant)));
  } else {
    index->end = index_constant(std::max(begin, std::min(end, slack.constant + 1)));
  }
  return true;
}

/// Whether it is at least 0 for all values of the indices.
bool holds_always(const Statement& s, const LinearForm& slack) {
  int64_t least = slack.constant;
  for (const auto& [name, coefficient] : slack.coefficients) {
    const auto index =
        std::find_if(s.indices.begin(), s.indices.end(), [&, &name = name](const Index& i) { return i.name == name; });
    if (index == s.indices.end() || extent_of(*index) < 1) return false;
    const int64_t first = begin_of(*index);
    least += coefficient * (coefficient > 0 ? first : first + extent_of(*index) - 1);
  }
  return least >= 0;
}

/// Whether all that a factor reads exists where its conditions hold.
bool reads_inside(const Program& program, const Statement& s, const Guarded& factor) {
  for (const hi::Call* read : reads_in(program, factor.value)) {
    const Shape extents = constant_shape(program.tensor(read->name));
    for (size_t d = 0; d < extents.size(); ++d) {
      const std::optional<LinearForm> at = linear_form(read->args[d]);
      if (!at) return false;
      for (const LinearForm& edge : {*at, difference({{}, extents[d] - 1}, *at)}) {
        const auto says_so = [&](const Expr& condition) {
          const std::optional<LinearForm> least = slack(condition);
          return least && least->coefficients == edge.coefficients && least->constant <= edge.constant;
        };
        const bool is_said = std::any_of(factor.conditions.begin(), factor.conditions.end(), says_so);
        if (!is_said && !holds_always(s, edge)) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<Statement> guard_factors(const Program& program, Statement statement) {
  const std::optional<Choice> choice = choice_of(statement.value);
  if (!choice || statement.assign != Assign::kAdd || !is_zero(choice->no)) return std::nullopt;
  std::vector<Guarded> factors;
  for (const Expr& factor : factors_of(choice->yes)) factors.push_back(guarded(program, factor));
  if (factors.size() < 2) return std::nullopt;
  for (const Expr& condition : conjuncts_of(choice->condition)) {
    const std::optional<LinearForm> least = slack(condition);
    if (!least) return std::nullopt;
    if (holds_always(statement, *least) || narrow(statement, *least)) continue;
    bool is_edge_of_any = false;
    for (Guarded& factor : factors) {
      if (!factor.read || !is_edge(program, *least, factor.read)) continue;
      factor.conditions.push_back(condition);
      is_edge_of_any = true;
    }
    if (!is_edge_of_any) return std::nullopt;
  }
  const auto is_empty = [](const Index& index) { return extent_of(index) < 1; };
  if (std::any_of(statement.indices.begin(), statement.indices.end(), is_empty)) return std::nullopt;
  const auto is_inside = [&](const Guarded& factor) { return reads_inside(program, statement, factor); };
  if (!std::all_of(factors.begin(), factors.end(), is_inside)) return std::nullopt;
  Expr product;
  for (const Guarded& factor : factors) product = product.defined() ? product * factor.whole() : factor.whole();
  statement.value = product;
  statement.accesses.clear();
  return statement;
}

}  // namespace tc::ir
