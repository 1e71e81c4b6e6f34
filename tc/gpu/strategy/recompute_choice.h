#pragma once

#include <set>
#include <string>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/strategy/pieces.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Whether a product that is made again (rewrite/recompute_products.h) is then streamed to the product that reads it,
/// and options ask for that chain or the whole takes less time by estimate.
bool gains_by_recomputing(const ir::Program& before, const ir::Program& after, const std::set<std::string>& again,
                          const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
