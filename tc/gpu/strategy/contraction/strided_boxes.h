#pragma once

#include "tc/gpu/strategy/contraction/contraction.h"

/// Boxes of an operand whose rows lie apart, as those of a convolution with a stride: a dimension that an axis of the
/// block moves by two has a dimension of the tensor map that counts every second element, and one for the remainder.
/// Where the dimension is the next to the last, and its elements follow each other, the remainder is in that of rows.
///     X(n, 2 * h + i, 2 * w + j, c)     map: (c + C * (x % 2), x / 2, y % 2, y / 2, n) of x = 2 * w + j, y = 2 * h + i
namespace tc::gpu {

/// By how many elements an axis of the block moves a dimension whose boxes have several of its values; 1 where it does
/// so by ones, or a map has no room for the remainders.
int64_t box_step(const Operand& operand, size_t dimension);

/// Whether the remainders of such a dimension are places in the map's first dimension.
bool has_remainders_in_rows(const Operand& operand, size_t dimension);

/// Whether some dimension has remainders.
bool has_remainders(const Operand& operand);

}  // namespace tc::gpu
