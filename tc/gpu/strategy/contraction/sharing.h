#pragma once

#include <optional>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// The product with most to do: 0 for the contraction itself, then its further ones. Options speak of its plan, which
/// those of the others follow.
size_t largest_product(const Contraction& contraction);

/// Plans of a contraction and its further products, in order, with the same tiles, threads and groups, so that they
/// share a kernel; of least estimated time. None if they do not fit together, or if kernels of their own are estimated
/// to take less time.
std::optional<std::vector<ContractionPlan>> plan_together(const Contraction& contraction,
                                                          const options::MappingOptions& options, const Device& device);

/// Whether two products' operands, each with its namesake by order, have the same boxes in shared memory: then they
/// take turns in them.
bool take_turns(const Contraction& a, const ContractionPlan& plan_a, const Contraction& b,
                const ContractionPlan& plan_b);

}  // namespace tc::gpu
