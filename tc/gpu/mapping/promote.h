#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/kernel.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// A kernel whose blocks hold what they use again in shared memory.
struct Promoted {
  Kernel kernel;
  int tensors = 0;       ///< held, one for each place
  bool crowded = false;  ///< something was worth it and did not fit
};

/// Holds tensors in shared memory by what it saves (paper 2018, section 5.4): what threads touch several times for each
/// element of its box, or not along rows, and temporaries whose values stay within a block, which then need no memory
/// elsewhere. At the innermost place above the regions where no element is copied twice, most accesses first, as far as
/// max_shared_memory (48 KiB if absent) goes. Without use_shared_memory these are temporaries alone: whether
/// caches serve the others as well has not been measured. shared_depth names the place: that below so many band
/// members. After bind(), before place_barriers().
Promoted hold_in_shared(const Kernel& kernel, const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
