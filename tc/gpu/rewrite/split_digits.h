#pragma once

#include <functional>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Cuts dimensions in two, and indices that run along them, where that makes a contraction of a product:
///     S(h,i,j) +=! Q(h,i,d) * K(h / 4,j,d)       ==>   S(h,h_rest,i,j) +=! Q(h,h_rest,i,d) * K(h,j,d)
///     Y(o,2 * h + i) +=! X(c,h) * W(c,o,i)       ==>   Y(o,h,i) +=! X(c,h) * W(c,o,i)
/// Tensors lie in memory as before; statements that share a dimension are cut alike. `is_contraction` says whether a
/// statement is one by itself. Those that are stay so. Of a specialised Program.
ir::Program split_digits(ir::Program program,
                         const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction);

}  // namespace tc::gpu
