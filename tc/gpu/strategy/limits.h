#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/tile/verify.h"

namespace tc::gpu {

/// What tile::verify() holds the programs for a device to.
inline tile::Limits limits_of(const Device& device) {
  return {.threads = device.threads_per_block,
          .block = device.block,
          .grid = device.grid,
          .shared_bytes = device.shared_bytes,
          .architecture = device.architecture,
          .accelerated = device.accelerated};
}

}  // namespace tc::gpu
