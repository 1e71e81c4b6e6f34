#pragma once

#include "tc/gpu/strategy/pieces.h"

namespace tc::gpu {

/// Microseconds that a piece takes with its launches, estimated before it is mapped: contractions by their plans,
/// others by the bytes of the tensors that they touch.
double estimated_us(const Piece& piece, const Device& device);

}  // namespace tc::gpu
