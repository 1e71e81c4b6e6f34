#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tc/ir/index_expr.h"
#include "tc/ir/program.h"

/// What passes over a specialised Program ask of its statements, and make them of.
namespace tc::gpu {

using ir::begin_of;
using ir::extent_of;
using ir::index_constant;
using ir::index_variable;
using ir::make_index;
using ir::simplify_indices;

/// A new temporary that has a dimension for each index, and where an index's value stands in its dimension.
ir::Tensor temporary_over(const std::string& name, Halide::Type type, const std::vector<ir::Index>& indices);
Halide::Expr subscript_of(const ir::Index& index);

/// The subscripts of an access to a tensor in the place of given ones.
using ChangeSubscripts =
    std::function<std::vector<Halide::Expr>(const std::string& tensor, const std::vector<Halide::Expr>&)>;

/// A program in which all accesses have other subscripts: left sides, and reads in them, in values and in guards.
ir::Program with_subscripts(ir::Program program, const ChangeSubscripts& change);

/// An expression with a value, which has the tensor's type, in the place of all reads of a tensor.
Halide::Expr with_reads_as(const Halide::Expr& expr, const std::string& tensor, const Halide::Expr& value);

/// A reduction over what is left of one index behind its first `done` values; it adds to what is there.
ir::Statement left_over(ir::Statement statement, size_t index, int64_t done, const std::string& id);

/// The index of a name; null if the statement has none.
const ir::Index* index_named(const ir::Statement& statement, const std::string& name);

/// Whether two indices have the same values.
bool same_range(const ir::Index& a, const ir::Index& b);

/// Whether an expression reads a tensor that `is_it` accepts; any tensor; the tensor of a name. Whether a statement
/// does, in its value, its guard or its subscripts.
bool reads(const Halide::Expr& expr, const std::function<bool(const Halide::Internal::Call*)>& is_it);
bool reads_tensor(const ir::Program& program, const Halide::Expr& expr);
bool reads_tensor(const Halide::Expr& expr, const std::string& tensor);
bool reads_tensor(const ir::Statement& statement, const std::string& tensor);

/// Whether a read is of a row that data choose, E(I(i), k): a tensor is read in some subscript, but not in the last.
bool reads_chosen_row(const ir::Program& program, const Halide::Internal::Call* read);

/// Whether every tensor that the value reads is read again for other results: threads that have a tile of results each
/// share it (contraction_at()).
bool shares_operands(const ir::Program& program, const ir::Statement& statement);

/// The reads that see most elements: those whose indices have the most instances.
std::vector<const Halide::Internal::Call*> largest_reads(const ir::Program& program, const ir::Statement& statement);

/// Whether neighbouring instances of a reduction, not neighbouring results, read neighbours in memory. The largest
/// reads decide: of y(n) +=! x(k) * A(k, n) it is A.
bool runs_along_reduction(const ir::Program& program, const ir::Statement& statement);

}  // namespace tc::gpu
