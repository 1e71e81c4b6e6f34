#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Whether all of a number of statements, at these places of a program, become products of boxes.
using AreProducts = std::function<bool(const ir::Program&, const std::vector<size_t>& places)>;

/// Products whose terms zeros hide, and those whose indices are divided, as products of boxes of their operands:
///     O(y) +=! inside(y + r) ? I(y + r) * W(r) : 0   ==>   O(y) +=! (inside(y + r) ? I(y + r) : 0) * W(r)
///     O(y) +=! ((y - r) % 2 == 0 ? I((y - r) / 2) : 0) * W(r)
///         ==>   O(2 * y) +=! I(y - r) * W(2 * r)
///               O(2 * y + 1) +=! I(y - r) * W(2 * r + 1)
/// There is a statement for each residue of the map indices that are divided, and what reads the sums at these indices
/// alone follows each of them. `are_products` is asked first of the statement with guards on its factors, then of all
/// its parts. Not for strict kernels (guard_factors()). Of a specialised Program.
ir::Program split_residues(ir::Program program, const AreProducts& are_products);

/// Whether zeros hide terms of a sum in another way than around an operand's box: the value as a whole is a choice, or
/// zeros are where an index has no remainder.
bool has_hidden_terms(const ir::Statement& statement);

}  // namespace tc::gpu
