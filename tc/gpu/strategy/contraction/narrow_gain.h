#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/narrow_products.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Whether tensor cores take all products of `instead`, and whether these take less time than the statement: with the
/// launches of operands that no kernel of a product computes itself.
bool gains_by_tensor_cores(const ir::Program& program, const ir::Statement& statement, const NarrowProducts& instead,
                           const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
