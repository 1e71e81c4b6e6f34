#pragma once

#include <cstdint>
#include <optional>

#include "tc/gpu/mapping/kernel.h"

namespace tc::gpu {

/// Holds in a register each element that a thread works on by itself for a while: what a reduction accumulates, and
/// what passes from one statement to the next within a thread's own iteration. A temporary that nothing else uses then
/// needs no memory.
///     bind band [i, j]                bind band [i, j]
///       sequence S0_init         ==>    promote:C
///         S0: band [k]                    sequence ...
/// With a depth, only where that many band members stand above, or less and no loop below.
/// After place_barriers(): nothing here changes which threads depend on which.
Kernel hold_in_registers(Kernel kernel, std::optional<int64_t> depth = {});

/// { [prefix] }: the iterations of the loops above in which a buffer at the node is copied. Conditions stand below the
/// copies, so nothing may be used in some of them. More iterations where these are not known.
isl::set iterations_of_loops(const isl::schedule_node& node);

/// The least number of band members above a place for registers; nothing if there is no place.
std::optional<int64_t> register_depth(const Kernel& kernel);

}  // namespace tc::gpu
