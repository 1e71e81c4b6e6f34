#pragma once

#include <functional>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Moves what has nothing to do with a contraction from behind it to before it, if later statements go on with its
/// results, which then follow it right away:
///     C(m,n) +=! A(m,k) * B(k,n)           R(m) +=! A(m,k)
///     R(m) +=! A(m,k)                ==>   C(m,n) +=! A(m,k) * B(k,n)
///     C(m,n) = C(m,n) - R(m)               C(m,n) = C(m,n) - R(m)
/// Reductions and statements of fewer instances than results move; statements on the same points may share its kernel
/// where they are. What makes the contraction's operands stays right before it. `is_contraction` says whether a
/// statement is one by itself. Of a specialised Program.
ir::Program hoist_before_products(ir::Program program,
                                  const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction);

/// Moves rows that are made between two products, of what reductions of the first one's results leave, to behind the
/// second one and its group, if that goes on with those results and nothing of it reads the rows. Then both may share a
/// kernel:
///     total(m) +=! P(m,n)                  total(m) +=! P(m,n)
///     lse(m) = log(total(m))         ==>   O(m,e) +=! P(m,n) * V(n,e)
///     O(m,e) +=! P(m,n) * V(n,e)           lse(m) = log(total(m))
ir::Program sink_behind_chains(ir::Program program,
                               const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction);

}  // namespace tc::gpu
