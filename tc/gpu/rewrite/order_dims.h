#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Brings the dimensions of strided tensors into the order in which they lie in memory:
///     C(m,n) +=! A(m,k) * B(k,n)     A: 64 x 96, strides (1, 64); B: 96 x 32, strides (40, 1); C: strides (0, 1)
/// ==> C(m,n) +=! A(k,m) * B(k,n)     A: 96 x 64, dense;           B: 96 x 32, strides (40, 1)
/// Afterwards the strides of each tensor fall from dimension to dimension, each dimension reaches no further than the
/// stride before it, and the last stride is 1. So what knows dense tensors needs to ask for the strides of rows alone.
///   - Dimensions of stride 0 go, with their subscripts. Those of one element come first.
///   - Where neighbours lie apart, a last dimension of one element is added.
///   - Dimensions that overlap, as those of sliding windows do, become one: A(i,j) of strides (1, 1) is A(i + j).
///   - Indices of a statement follow the left side, and temporaries follow the statements that read them, so a kernel
///     for a transposed result is that of the transposed text.
/// Only inputs may have overlapping or repeated elements. First of all passes over a specialised Program.
ir::Program order_dims(ir::Program program);

}  // namespace tc::gpu
