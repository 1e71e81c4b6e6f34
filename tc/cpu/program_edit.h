#pragma once

#include <Halide.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tc/ir/index_expr.h"
#include "tc/ir/program.h"

/// What the passes on a specialised Program share that add statements and temporaries.
namespace tc::cpu {

using ir::begin_of;
using ir::extent_of;
using ir::index_constant;
using ir::index_variable;
using ir::make_index;

/// tensor(subscripts), read.
Halide::Expr read(const ir::Tensor& tensor, const std::vector<Halide::Expr>& subscripts);

/// True if every subscript of the left side is an index.
bool has_plain_subscripts(const ir::Statement& statement);

/// A name that nothing in the program has: `wish`, or `wish` with a number.
std::string fresh(const ir::Program& program, const std::string& wish);

/// Adds a temporary named after `wish`. The reference holds until the next tensor is added.
ir::Tensor& add_temporary(ir::Program& program, const std::string& wish, Halide::Type type,
                          std::vector<Halide::Expr> extents);

}  // namespace tc::cpu
