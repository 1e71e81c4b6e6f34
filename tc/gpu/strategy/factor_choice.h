#pragma once

#include <optional>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/factor_sums.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// The way to factor a sum that takes the least estimated time, by a product on tensor cores whose results are reduced
/// in its kernel; nothing where no way is clearly faster than the sum as it is.
std::optional<size_t> choose_factor(const ir::Program& program, const ir::Statement& statement,
                                    const std::vector<FactoredSum>& ways, const options::MappingOptions& options,
                                    const Device& device);

}  // namespace tc::gpu
