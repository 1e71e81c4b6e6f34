#pragma once

#include <vector>

#include "tc/gpu/strategy/contraction/stream.h"

namespace tc::gpu {

/// A plan of a streamed chain, and what its kernel takes by estimate.
struct StreamPlan {
  ChainPlan plan;
  double cycles = 0;
};

/// Instructions of a thread in a slab for each of the first product's results, of which `instructions` are its own. A
/// reduction that points read has to be that of whole rows, and what was made with an earlier one is corrected.
double instructions_of_slab(const Chain& chain, const ContractionPlan& first, const ContractionPlan& second,
                            double instructions);

/// Plans by products of warpgroups, whose operands `a` are in registers, with all that options may ask for: none where
/// the device has no such products, or where boxes do not bring the other operands. `options.first` say no sizes.
/// `instructions` are those of a thread for one result of the first product.
std::vector<StreamPlan> streams_by_warpgroups(const Chain& chain, const StreamOptions& options, double instructions,
                                              const Device& device);

}  // namespace tc::gpu
