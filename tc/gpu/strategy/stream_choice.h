#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/recompute_products.h"
#include "tc/gpu/strategy/pieces.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Whether a product that is made again (rewrite/recompute_products.h) is then streamed to the product that reads it,
/// and options ask for that chain or the whole takes less time by estimate. Where it is streamed as it is, the estimate
/// decides alone.
bool gains_by_recomputing(const ir::Program& before, const ir::Program& after, const MadeAgain& made,
                          const options::MappingOptions& options, const Device& device);

/// Whether results of products are streamed to the products that read them where they lie as they are made, `as_made`,
/// and options ask for such a chain or the whole takes less time by estimate than `ordered`, where copies of them lie
/// as tensor cores multiply them (rewrite/operand_order.h).
bool gains_by_streaming(const ir::Program& ordered, const ir::Program& as_made, const options::MappingOptions& options,
                        const Device& device);

}  // namespace tc::gpu
