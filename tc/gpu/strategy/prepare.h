#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/parts.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// What from_ir() is to see of a Program on a GPU: with dimensions in memory order, temporaries recomputed,
/// contractions right before what goes on with their results, parts of a range joined, dimensions collapsed and
/// reductions in parts; where the options choose the loops, as it was written, with reductions in lanes; as it is if
/// they are strict. `element_aligned`: tensors are aligned to their elements only. Errors: as of split_into_parts().
Result<Prepared> prepare(ir::Program program, const options::MappingOptions& options, const Device& device,
                         bool element_aligned = false);

/// What a device does with tensors of that alignment: boxes begin at multiples of 16 bytes.
Device device_at(Device device, bool element_aligned);

}  // namespace tc::gpu
