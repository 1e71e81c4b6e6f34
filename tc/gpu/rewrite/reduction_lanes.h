#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/ir/program.h"

namespace tc::gpu {

/// Gives reductions that have too few elements to keep the device busy something to do at once, as statements of their
/// own; to all passes behind they are statements like any other. First of the GPU's passes, on a specialised Program.
///     s(m) +=! x(m, k)   ==>   s_lanes(m, k_lane) +=! x(m, 256 * k_step + k_lane)      a thread each
///                              s_tree(m, k_branch) +=! s_lanes(m, 16 * k_twig + k_branch)
///                              s(m) +=! s_tree(m, k_branch)
/// A reduction to one element is spread over blocks too, by a part of the range each. For + * min max and any number of
/// reduction indices, of which the longest is split; extents need not divide. The order is changed, but the same on
/// every run: where the source's own order is asked for (strict), this pass is left out.
ir::Program reductions_in_lanes(ir::Program program, const Device& device);

}  // namespace tc::gpu
