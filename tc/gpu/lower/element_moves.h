#pragma once

#include <set>
#include <string>

#include "tc/tile/program.h"

namespace tc::gpu {

/// A copy of several elements as copies of one each; asynchronous ones of less than 4 bytes, of which there are none,
/// become plain.
tile::NodePtr by_elements(const tile::Move& move, int64_t element_bytes);

/// The program where some global tensors are aligned to their elements only: what it copied from or to them by vectors
/// it copies element by element. No box is of such a tensor.
///     A_shared(i, 0 to 3) = A(i, k to k + 3)   ==>   A_shared(i, 0) = A(i, k); ... A_shared(i, 3) = A(i, k + 3)
/// Other vectors stay; launches, barriers and results are the same. Before promise(), since a promise rests on the
/// widths of loads.
tile::Program element_moves(tile::Program program, const std::set<std::string>& tensors);

}  // namespace tc::gpu
