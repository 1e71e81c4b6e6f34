#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/parts.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Returns what from_ir() is to see of a Program on a GPU. Dimensions are in memory order. Temporaries are recomputed,
/// contractions stand right before what goes on with their results, parts of a range are joined, dimensions collapsed,
/// and reductions are in parts. Where the options choose the loops, reductions are in lanes, and all else is as it was
/// written; where they are strict, reductions are, too. `element_aligned`: tensors are aligned to their elements only.
/// Errors: as of split_into_parts().
Result<Prepared> prepare(ir::Program program, const options::MappingOptions& options, const Device& device,
                         bool element_aligned = false);

}  // namespace tc::gpu
