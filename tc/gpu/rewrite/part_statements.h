#pragma once

#include <optional>

#include "tc/ir/program.h"

namespace tc::gpu {

/// How a reduction index is cut into `count` parts of `chunk` iterations each: part p has
///     index = begin + p * chunk + rest              neighbours
///     index = begin + rest * count + p              cyclic: every count-th
/// They may leave iterations over, or, together, reach beyond the last.
struct Parts {
  size_t index = 0;
  int64_t count = 1;
  int64_t chunk = 1;
  bool in_front = true;  ///< parts are the first dimension of the partial results, else the last
  bool cyclic = false;
};

/// Statements in place of one, in this order.
struct PartStatements {
  ir::Statement of_parts;             ///< s_parts(m, k_part) +=! x(m, 1000 * k_part + k_rest)
  ir::Statement together;             ///< s(m) +=! s_parts(m, k_part)
  std::optional<ir::Statement> left;  ///< s(m) += x(m, 9000 + k): what is left over, if any
  std::string part, rest;             ///< names of the indices
};

/// Whether each instance of a reduction exists and knows its result's place whatever the data are.
bool may_be_cut(const ir::Program& program, const ir::Statement& statement);

/// The program gets the tensor of partial results. For a statement that may be cut.
PartStatements part_statements(ir::Program& program, const ir::Statement& statement, const Parts& parts);

}  // namespace tc::gpu
