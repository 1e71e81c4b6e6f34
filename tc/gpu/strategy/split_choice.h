#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Splits temporaries that products write (rewrite/split_temporaries.h), and cuts their dimensions as readers see them
/// (rewrite/reshape_temporaries.h), where the program then takes less time by estimate. Sizes that options give do not
/// count: these may be the ones of kernels that a split makes. Options that name a temporary keep it as it is. Of a
/// specialised Program.
ir::Program split_products(ir::Program program, const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
