#pragma once

#include "tc/gpu/kernel.h"
#include "tc/options/mapping.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// Holds when the options are valid, their threads and blocks within the device's limits, and none asks for what the
/// mapping does not do; the error names each value that is not.
Result<void> check_limits(const options::MappingOptions& options, const Device& device);

/// Whether nothing but the compiler's own estimate says how loops are cut and dealt out.
bool chooses_freely(const options::MappingOptions& options);

}  // namespace tc::gpu
