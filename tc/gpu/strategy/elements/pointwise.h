#pragma once

#include <string>

#include "tc/gpu/strategy/elements/plan.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Code for a part whose results are its shared members' iterations: pointwise statements, and reductions that one
/// thread runs through in order. All that the part writes is held in registers from the first statement to the last,
/// read before and written after as vectors where that is aligned. Threads do not meet.
///     block (32, 8):  unrolled repeats
///                       v = In[row, 4 * x ..]; r = f(v); Out[row, 4 * x ..] = r
tile::Kernel pointwise(const FusedGroup& part, const ElementsPlan& plan, const Device& device, const std::string& name);

}  // namespace tc::gpu
