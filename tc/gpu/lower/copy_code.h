#pragma once

#include <array>
#include <functional>
#include <string>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/mapping/kernel.h"

namespace tc::gpu {

/// A copy between a buffer and the tensor (or the buffer) around it, as all threads of a block run it: thread t moves
/// the vectors t, t + threads, ... of the buffer's box, counted along rows; those beyond the tensor are left out.
/// `name` makes a name that is free. In a few unrolled rounds, or in a loop.
tile::NodePtr cooperative_copy(const Copy& copy, const Place& buffer, const Place& outer, const Kernel& kernel,
                               const std::function<std::string(const std::string&)>& name);

}  // namespace tc::gpu
