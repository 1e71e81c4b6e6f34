#pragma once

#include "tc/tile/program.h"

namespace tc::gpu {

/// The program for tensors that are aligned to their elements only: what it copied from or to the caller's memory by
/// vectors it copies element by element.
///     A_shared(i, 0 to 3) = A(i, k to k + 3)   ==>   A_shared(i, 0) = A(i, k); ... A_shared(i, 3) = A(i, k + 3)
/// Vectors between its own buffers stay. After the mapping; launches, barriers and results are the same.
tile::Program element_moves(tile::Program program);

}  // namespace tc::gpu
