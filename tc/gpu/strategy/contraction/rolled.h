#pragma once

#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/contraction/plan.h"

/// Results that are finished in rolled loops, whose text is short: NVRTC takes half the time for 192 results of a
/// thread with a gelu. A thread's sums are in registers, which no loop's variable selects. So an iteration copies the
/// sums of its piece first, chosen by tests of the iteration's number.
namespace tc::gpu {

/// Groups of neighbours along the columns that an iteration finishes; 0: the text lays out all results. Rolled loops
/// are slower: their sums keep their registers to the end. So they are for teams that take turns, where products of the
/// other team take longer than what a tile ends with.
int64_t rolled_groups(const Contraction& contraction, const ContractionPlan& plan, const Device& device);

}  // namespace tc::gpu
