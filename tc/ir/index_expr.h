#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/ir/program.h"

/// Small verbs on expressions of index_type().
namespace tc::ir {

Halide::Expr index_constant(int64_t value);
Halide::Expr index_variable(const std::string& name);

/// Of an index of a specialised program.
int64_t begin_of(const Index& index);
int64_t extent_of(const Index& index);
/// How many instances a statement of a specialised program has, or results; INT64_MAX where there are more.
int64_t instance_count(const Statement& statement);
int64_t result_count(const Statement& statement);
/// An index with the values [0, extent).
Index make_index(const std::string& name, int64_t extent, bool is_reduction);

/// A scalar that is not compiled in (C11): of any value of its type, so that its arithmetic wraps as that of data.
Halide::Expr scalar_variable(Halide::Type type, const std::string& name);

/// The name of the variable that stands for the extent of a dimension that only the caller's tensor gives: "H.0".
std::string extent_variable(const std::string& tensor, int dimension);

/// The value of a constant integer expression, after simplification.
std::optional<int64_t> constant_value(const Halide::Expr& expr);

using Substitution = std::map<std::string, Halide::Expr>;
/// Replaces variables by name. Undefined stays undefined.
Halide::Expr substitute_variables(const Halide::Expr& expr, const Substitution& replacements);

/// Halide's simplifier, told that `sizes` are not negative. For index arithmetic and conditions over it only.
Halide::Expr simplify_index(const Halide::Expr& expr, const std::vector<std::string>& sizes);

/// Simplifies index arithmetic that no data decide: indices are in their constant ranges.
Halide::Expr simplify_indices(const Halide::Expr& expr, const std::vector<Index>& indices);

/// Names of all variables.
std::set<std::string> variables_of(const Halide::Expr& expr);
bool mentions(const Halide::Expr& expr, const std::string& variable);

/// True where the value depends on a tensor's elements, or on a scalar that is not compiled in (C8).
bool is_data_dependent(const Halide::Expr& expr);

/// The conjuncts of a condition; none for an undefined one.
std::vector<Halide::Expr> conjuncts_of(const Halide::Expr& condition);
/// a && b, where undefined stands for true.
Halide::Expr conjunction(const Halide::Expr& a, const Halide::Expr& b);

/// Applies a function to every expression of a statement: subscripts, ranges, guard, value, accesses, index values.
void transform_expressions(Statement& statement, const std::function<Halide::Expr(const Halide::Expr&)>& function);

/// Folds the calls "tc.floor_div" and "tc.floor_mod" whose divisors have become constants.
Halide::Expr fold_divisions(const Halide::Expr& expr);

/// Floor division and remainder by R8: of constants folded, by a positive constant Div and Mod, otherwise the calls
/// "tc.floor_div" and "tc.floor_mod".
Halide::Expr floor_div(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr floor_mod(const Halide::Expr& a, const Halide::Expr& b);

}  // namespace tc::ir
