#pragma once

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// The values of a subscript in a step of a block, from the least to the greatest.
int64_t range(const Subscript& subscript, const ContractionPlan& plan);

/// The dimension from which on a step's box is one run of the tensor: it has all of the dimensions behind that one, and
/// of itself what lies within the tensor. The last dimension where there is no such, or where the tensor is read
/// elsewhere too.
size_t first_merged(const Contraction& contraction, const Operand& operand, const ContractionPlan& plan);

/// The most elements such that copies of a box that is merged from a dimension on are aligned on both sides.
int64_t merged_vector(const Contraction& contraction, const Operand& operand, size_t merged,
                      const ContractionPlan& plan);

/// How rows of a box stand in shared memory.
enum class Rows {
  kRough,  ///< right behind each other, at a tenth of the time: conflicts are not counted
  kClose,  ///< the same, with the conflicts that this has
  kApart,  ///< with room between them, so that a warp's threads meet in no bank
};

/// Chooses the strides of an operand's box in shared memory: rows of its `pitch` at least, and, where they stand apart,
/// behind each dimension as many elements more as keep the threads of a warp, which read different ones at once, from
/// meeting in a bank. After the box, the pitch and the vectors of the plan are known.
void lay_out(const Contraction& contraction, size_t operand, ContractionPlan& plan, Rows rows);

/// The same for a transposition by vectors, of an operand that is copied and whose results are stored as vectors: what
/// a thread turns into one vector it reads from rows that lie far apart, and threads beside each other from rows an odd
/// number of vectors apart. In them, 8 of a warp's 32 threads, which read 4 neighbours each, meet in no bank:
///     B(i, 4 j + s) = A(4 j + s, i)      A_shared (s, j, i) : (16 * 68, 68, 1)
/// `across` is the axis that results are stored along, by `vector` elements.
void lay_out_by_vectors(const Contraction& contraction, size_t operand, size_t across, int64_t vector,
                        ContractionPlan& plan);

}  // namespace tc::gpu
