#pragma once

#include <string>

#include "tc/ir/program.h"

/// What the passes that add statements share.
namespace tc::ir {

/// `wanted`, with underscores added until no size, scalar or tensor has that name.
std::string fresh_name(const Program& program, std::string wanted);

/// tensor(d0, d1, ...) = <value to be filled in>, over the whole tensor. Ranges stay undefined where the extents are.
Statement whole_tensor_set(const Program& program, const Tensor& tensor, SourceRange range);

/// Adds the read of `tensor` at `subscripts` to the statement's accesses, and returns it.
Halide::Expr read_in(Statement& statement, const Tensor& tensor, const std::vector<Halide::Expr>& subscripts);

}  // namespace tc::ir
