#include "tc/gpu/rewrite/gather_extremes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr size_t kMostTerms = 16;

/// The terms of which an expression is the extreme.
template <typename Extreme>
void add_terms(const Expr& e, std::vector<Expr>& terms) {
  if (const auto* op = e.as<Extreme>()) {
    add_terms<Extreme>(op->a, terms);
    add_terms<Extreme>(op->b, terms);
  } else {
    terms.push_back(e);
  }
}

/// One dimension of a read in which terms differ: by `step`, so many values.
struct Varying {
  size_t dimension = 0;
  int64_t least = 0, step = 1, count = 1;
};

/// The constants of a read's subscripts, if these are linear; the rest of a term without them.
std::optional<std::vector<ir::LinearForm>> forms_of(const hi::Call* read) {
  std::vector<ir::LinearForm> result;
  for (const Expr& subscript : read->args) {
    std::optional<ir::LinearForm> form = ir::linear_form(hi::simplify(subscript));
    if (!form) return std::nullopt;
    result.push_back(*std::move(form));
  }
  return result;
}

/// The dimensions in which reads differ, if they have each combination of values once.
std::optional<std::vector<Varying>> varying(const std::vector<std::vector<ir::LinearForm>>& reads) {
  std::vector<Varying> result;
  size_t combinations = 1;
  for (size_t d = 0; d < reads[0].size(); ++d) {
    std::set<int64_t> values;
    for (const auto& read : reads) {
      if (read[d].coefficients != reads[0][d].coefficients) return std::nullopt;
      values.insert(read[d].constant);
    }
    if (values.size() == 1) continue;
    const int64_t least = *values.begin(), step = *std::next(values.begin()) - least;
    const auto count = static_cast<int64_t>(values.size());
    if (*values.rbegin() != least + step * (count - 1)) return std::nullopt;
    for (const int64_t value : values) {
      if ((value - least) % step != 0) return std::nullopt;
    }
    result.push_back({d, least, step, count});
    combinations *= values.size();
  }
  std::set<std::vector<int64_t>> distinct;
  for (const auto& read : reads) {
    std::vector<int64_t> constants;
    for (const ir::LinearForm& form : read) constants.push_back(form.constant);
    distinct.insert(std::move(constants));
  }
  const bool has_all = distinct.size() == reads.size() && combinations == reads.size();
  return has_all && !result.empty() ? std::optional(std::move(result)) : std::nullopt;
}

/// A statement that reduces over the terms of one that lists them.
std::optional<ir::Statement> gathered(const ir::Program& program, const ir::Statement& statement,
                                      const IsOfProduct& is_of_product) {
  if (statement.assign != ir::Assign::kSet || statement.guard.defined()) return std::nullopt;
  std::vector<Expr> terms;
  const bool is_maximum = statement.value.as<hi::Max>() != nullptr;
  if (is_maximum) add_terms<hi::Max>(statement.value, terms);
  if (statement.value.as<hi::Min>() != nullptr) add_terms<hi::Min>(statement.value, terms);
  if (terms.size() < 2 || terms.size() > kMostTerms) return std::nullopt;
  std::vector<std::vector<ir::LinearForm>> reads;
  for (const Expr& term : terms) {
    const auto* read = term.as<hi::Call>();
    if (read == nullptr || !ir::is_tensor_read(program, read)) return std::nullopt;
    if (read->name != terms[0].as<hi::Call>()->name || read->name == statement.tensor) return std::nullopt;
    std::optional<std::vector<ir::LinearForm>> forms = forms_of(read);
    if (!forms) return std::nullopt;
    reads.push_back(*std::move(forms));
  }
  const auto* first = terms[0].as<hi::Call>();
  const std::optional<std::vector<Varying>> dimensions = varying(reads);
  if (!dimensions || dimensions->front().dimension + 1 == first->args.size()) return std::nullopt;
  if (first->type != program.tensor(statement.tensor).type || !is_of_product(program, first->name)) return std::nullopt;
  ir::Statement result = statement;
  ir::Names names(program);
  for (const ir::Index& index : statement.indices) names.add(index.name);
  std::vector<Expr> at = first->args;
  for (const Varying& v : *dimensions) {
    const ir::Index index = make_index(names.fresh("part"), v.count, true);
    result.indices.push_back(index);
    at[v.dimension] = hi::simplify(at[v.dimension] + index_constant(v.least - reads[0][v.dimension].constant) +
                                   index_variable(index.name) * index_constant(v.step));
  }
  result.value = hi::Call::make(first->type, first->name, at, first->call_type);
  result.assign = is_maximum ? ir::Assign::kMax : ir::Assign::kMin;
  result.initialises = true;
  result.accesses.clear();
  result.index_values.clear();
  return result;
}

}  // namespace

ir::Program gather_extremes(ir::Program program, const IsOfProduct& is_of_product) {
  for (ir::Statement& statement : program.statements) {
    if (std::optional<ir::Statement> other = gathered(program, statement, is_of_product)) {
      statement = *std::move(other);
    }
  }
  return program;
}

}  // namespace tc::gpu
