#pragma once

#include <string>

#include "tc/gpu/mapping/kernel.h"
#include "tc/poly/band_ref.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// Holds in registers of each thread the part of a tensor that this thread alone uses below a node above the regions:
/// a tile of results that several regions work on, one after the other.
///     promote:C                     each thread: 4 x 4 registers
///       sequence
///         bind: S0_init
///         band [k_outer]
///           bind: S0
/// Loops that subscripts of the tile depend on must be unrolled. After place_barriers(): threads depend on each other
/// as before. Errors: no box of constant size; elements that several threads use; elements of a thread's box that it
/// does not use itself; elements to be copied that hold nothing yet.
Result<Kernel> hold_in_threads_at(const Kernel& kernel, const poly::NodeRef& node, const std::string& tensor);

}  // namespace tc::gpu
