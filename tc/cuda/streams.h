#pragma once

#include "tc/cuda/device.h"

namespace tc::cuda {

/// Whether what is launched on a stream goes into a graph. Never of the default stream. In the stream's context.
Result<bool> is_captured(const Driver& driver, Stream stream);

/// Lets what comes on a stream wait for what is on another one by now.
Result<void> follow(const Context& context, Stream stream, Stream other);

}  // namespace tc::cuda
