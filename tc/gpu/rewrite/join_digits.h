#pragma once

#include <functional>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Makes one index of those whose multiples a left side adds in its last dimension, as digits of a number:
///     O(b,t,64 * h + d) = X(b,h,t,d)   ==>   O(b,t,h_d) = X(b,h_d / 64,t,h_d % 64)       h_d in 0:64 * H
/// Statements that set all residues between them become one:
///     O(n,2 * j) = a(n,j)
///     O(n,2 * j + 1) = b(n,j)          ==>   O(n,j) = j % 2 == 0 ? a(n,j / 2) : b(n,j / 2)
/// Then threads write along one loop. Of statements that set elements and that `is_free` accepts: those beside products
/// are stored where their sums are. Of a specialised Program, after split_digits().
ir::Program join_digits(ir::Program program,
                        const std::function<bool(const ir::Program&, const ir::Statement&)>& is_free);

}  // namespace tc::gpu
