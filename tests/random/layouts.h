#pragma once

#include <cstdint>

#include "tc/ir/layouts.h"

/// Random strides of a caller's tensors.
namespace tc::testing {

/// Returns strides for some of a specialised program's inputs, results and in-outs: dimensions in another order, room
/// between rows (often so that rows begin at multiples of 16 bytes), elements apart. Dimensions of inputs may repeat
/// the same elements (a stride of 0), or overlap as sliding windows do.
ir::Layouts random_layouts(const ir::Program& program, uint64_t seed);

}  // namespace tc::testing
