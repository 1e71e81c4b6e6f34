#pragma once

#include <Halide.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tc/ir/program.h"

/// What the passes on a specialised Program share that add statements and temporaries.
namespace tc::cpu {

Halide::Expr index_constant(int64_t value);
Halide::Expr index_variable(const std::string& name);

/// tensor(subscripts), read.
Halide::Expr read(const ir::Tensor& tensor, const std::vector<Halide::Expr>& subscripts);

/// An index over [0, extent).
ir::Index make_index(const std::string& name, int64_t extent, bool is_reduction);

int64_t begin_of(const ir::Index& index);
int64_t extent_of(const ir::Index& index);

/// True if every subscript of the left side is an index.
bool has_plain_subscripts(const ir::Statement& statement);

/// A name that nothing in the program has: `wish`, or `wish` with a number.
std::string fresh(const ir::Program& program, const std::string& wish);

/// Adds a temporary named after `wish`. The reference holds until the next tensor is added.
ir::Tensor& add_temporary(ir::Program& program, const std::string& wish, Halide::Type type,
                          std::vector<Halide::Expr> extents);

}  // namespace tc::cpu
