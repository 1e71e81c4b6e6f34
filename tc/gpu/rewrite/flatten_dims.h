#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Makes one dimension of two neighbours that every statement runs through together:
///     O(n,c,h,w) = I(n,c,h,w) * s(c)   ==>   O(n,c,h_w) = I(n,c,h_w) * s(c)
/// for tensors that are indexed by plain (h, w) wherever they are used, over the whole extents. Dimensions of one
/// element that every access subscripts by 0 go too:
///     O(n,f,p) +=! I(n,c,p) * W(f,c,0,0)   ==>   O(n,f,p) +=! I(n,c,p) * W(f,c)
/// Fewer loops, and longer ones along memory; tensors stay where they are, row-major. Of a specialised Program.
ir::Program flatten_dims(ir::Program program);

}  // namespace tc::gpu
