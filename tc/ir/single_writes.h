#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tc/ir/program.h"
#include "tc/ir/prover.h"

/// C7: a statement with `=` writes no element twice.
namespace tc::ir {

/// True where the subscripts of the left side tell the values of all indices, one after the other: each index stands in
/// one of them with a constant factor and, apart from it, only with indices that are told already. So no element is
/// written twice, whatever the ranges.
bool tells_all_indices(const Statement& statement);

/// The same of a reduction's map indices. Reduction indices and data decide nothing about the element then.
bool tells_map_indices(const Statement& statement);

/// True for a statement that sets elements, and of which a proof is needed that it sets none twice.
bool may_set_twice(const Statement& statement);

/// "writes O(1) twice, for i = 0, j = 1 and for i = 1, j = 0, where N is 2 and M is 2". Of no collision: "may write an
/// element twice".
std::string collision_text(const Statement& statement, const std::optional<Collision>& collision);

/// The error that a statement, whose left side reads `left`, writes an element twice.
std::string written_twice(std::string_view left, const Statement& statement, const std::optional<Collision>& collision);

}  // namespace tc::ir
