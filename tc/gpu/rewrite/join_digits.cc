#include "tc/gpu/rewrite/join_digits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// An index and what it is multiplied with: the product of the extents of all faster digits.
using Digit = std::pair<std::string, int64_t>;

/// The digits of a subscript, the fastest first; nothing if it is no number of several digits.
std::optional<std::vector<Digit>> digits_of(const ir::Statement& s, const ir::LinearForm& form) {
  std::vector<Digit> digits(form.coefficients.begin(), form.coefficients.end());
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.second < b.second; });
  int64_t below = 1;
  for (const auto& [name, by] : digits) {
    if (by != below || !index_named(s, name)) return std::nullopt;
    below *= extent_of(*index_named(s, name));
  }
  return digits.size() > 1 && below > 0 ? std::optional(std::move(digits)) : std::nullopt;
}

/// Nothing where the left side's other dimensions have one of the digits.
std::optional<ir::Statement> joined(const ir::Program& program, const ir::Statement& s) {
  if (s.assign != ir::Assign::kSet || s.guard.defined() || s.subscripts.empty()) return std::nullopt;
  if (!program.tensor(s.tensor).strides.empty()) return std::nullopt;
  const std::optional<ir::LinearForm> form = ir::linear_form(s.subscripts.back());
  const auto digits = form ? digits_of(s, *form) : std::nullopt;
  if (!digits) return std::nullopt;
  ir::Names names(program);
  for (const ir::Index& index : s.indices) names.add(index.name);
  std::string wish;
  int64_t extent = 1, first = form->constant;
  for (const auto& [name, by] : *digits) {
    const bool is_elsewhere = std::any_of(s.subscripts.begin(), s.subscripts.end() - 1,
                                          [&, digit = name](const Expr& e) { return ir::mentions(e, digit); });
    if (is_elsewhere) return std::nullopt;
    wish = wish.empty() ? name : name + "_" + wish;
    extent *= extent_of(*index_named(s, name));
    first += by * begin_of(*index_named(s, name));
  }
  const std::string name = names.fresh(wish);
  const Expr number = index_variable(name);
  ir::Substitution values;
  for (size_t i = 0; i < digits->size(); ++i) {
    const auto& [digit, by] = (*digits)[i];
    const ir::Index& index = *index_named(s, digit);
    Expr value = by == 1 ? number : number / index_constant(by);
    if (i + 1 < digits->size()) value = value % index_constant(extent_of(index));
    values[digit] = hi::simplify(value + index.begin);
  }
  ir::Statement result = s;
  const auto is_digit = [&](const ir::Index& index) { return values.count(index.name) > 0; };
  std::erase_if(result.indices, is_digit);
  result.indices.push_back(make_index(name, extent, false));
  result.value = simplify_indices(ir::substitute_variables(s.value, values), result.indices);
  result.subscripts.back() = hi::simplify(number + index_constant(first));
  result.accesses.clear();
  result.index_values.clear();
  return result;
}

/// What a statement sets in every so many elements of the last dimension: element = by * index + rest.
struct Residue {
  std::string index;
  int64_t by = 1, rest = 0;
  std::vector<std::string> others;  ///< the indices of the other dimensions
};

std::optional<Residue> residue_of(const ir::Program& program, const ir::Statement& s) {
  if (s.assign != ir::Assign::kSet || s.guard.defined() || s.indices.size() != s.subscripts.size()) return std::nullopt;
  if (s.subscripts.empty() || !program.tensor(s.tensor).strides.empty() || reads_tensor(s.value, s.tensor)) {
    return std::nullopt;
  }
  const std::optional<ir::LinearForm> form = ir::linear_form(s.subscripts.back());
  if (!form || form->coefficients.size() != 1) return std::nullopt;
  Residue result{form->coefficients.begin()->first, form->coefficients.begin()->second, form->constant, {}};
  constexpr int64_t kMost = 4;
  if (result.by < 2 || result.by > kMost || result.rest < 0 || result.rest >= result.by) return std::nullopt;
  if (!index_named(s, result.index)) return std::nullopt;
  for (size_t d = 0; d + 1 < s.subscripts.size(); ++d) {
    const auto* variable = s.subscripts[d].as<hi::Variable>();
    if (!variable || variable->name == result.index || !index_named(s, variable->name)) return std::nullopt;
    result.others.push_back(variable->name);
  }
  return result;
}

/// One statement for those from `at` on that set all residues between them; nothing if they do not.
///     O(n,2 * j) = a(n,j)
///     O(n,2 * j + 1) = b(n,j)   ==>   O(n,j) = j % 2 == 0 ? a(n,j / 2) : b(n,j / 2)
std::optional<ir::Statement> interleaved(const ir::Program& program, size_t at) {
  const ir::Statement& first = program.statements[at];
  const std::optional<Residue> of_first = residue_of(program, first);
  if (!of_first || at + static_cast<size_t>(of_first->by) > program.statements.size()) return std::nullopt;
  const ir::Index& along = *index_named(first, of_first->index);
  const Expr number = index_variable(of_first->index);
  const Expr quotient = number / index_constant(of_first->by);
  std::vector<Expr> values(static_cast<size_t>(of_first->by));
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::Statement& s = program.statements[at + i];
    const std::optional<Residue> own = s.tensor == first.tensor ? residue_of(program, s) : std::nullopt;
    if (!own || own->by != of_first->by || !same_range(*index_named(s, own->index), along)) return std::nullopt;
    ir::Substitution names = {{own->index, quotient}};
    for (size_t d = 0; d < own->others.size(); ++d) {
      if (!same_range(*index_named(s, own->others[d]), *index_named(first, of_first->others[d]))) return std::nullopt;
      names[own->others[d]] = index_variable(of_first->others[d]);
    }
    Expr& value = values[static_cast<size_t>(own->rest)];
    if (value.defined()) return std::nullopt;
    value = ir::substitute_variables(s.value, names);
  }
  ir::Statement result = first;
  result.value = values.back();
  for (size_t rest = values.size() - 1; rest-- > 0;) {
    const Expr is_it = number % index_constant(of_first->by) == index_constant(static_cast<int64_t>(rest));
    result.value = hi::Select::make(is_it, values[rest], result.value);
  }
  for (ir::Index& index : result.indices) {
    if (index.name != of_first->index) continue;
    index.begin = index_constant(begin_of(along) * of_first->by);
    index.end = index_constant((begin_of(along) + extent_of(along)) * of_first->by);
  }
  result.subscripts.back() = number;
  result.value = simplify_indices(result.value, result.indices);
  result.accesses.clear();
  result.index_values.clear();
  return result;
}

}  // namespace

ir::Program join_digits(ir::Program program,
                        const std::function<bool(const ir::Program&, const ir::Statement&)>& is_free) {
  std::vector<ir::Statement>& all = program.statements;
  for (size_t s = 0; s < all.size(); ++s) {
    if (!is_free(program, all[s])) continue;
    if (std::optional<ir::Statement> one = joined(program, all[s])) {
      all[s] = *std::move(one);
    } else if (std::optional<ir::Statement> together = interleaved(program, s)) {
      const auto parts = static_cast<long>(residue_of(program, all[s])->by);
      const auto begin = all.begin() + static_cast<long>(s);
      if (!std::all_of(begin, begin + parts, [&](const ir::Statement& part) { return is_free(program, part); }))
        continue;
      all[s] = *std::move(together);
      all.erase(begin + 1, begin + parts);
    }
  }
  return program;
}

}  // namespace tc::gpu
