#pragma once

#include <optional>
#include <vector>

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
  std::string part, rest;             ///< names of the indices of the first cut
};

/// Whether each instance of a reduction exists and knows its result's place whatever the data are.
bool may_be_cut(const ir::Program& program, const ir::Statement& statement);

/// Cuts one reduction index or several. Each cut adds a dimension to the tensor of partial results, which the program
/// gets; the first cut's `in_front` holds for all of them. Only one cut may leave iterations over. For a statement that
/// may be cut.
///     s() +=! x(i, k)   ==>   s_parts(i_part, k_part) +=! x(2 * i_part + i_rest, 500 * k_part + k_rest)
///                             s() +=! s_parts(i_part, k_part)
PartStatements part_statements(ir::Program& program, const ir::Statement& statement, const std::vector<Parts>& cuts);

}  // namespace tc::gpu
