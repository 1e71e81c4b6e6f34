#pragma once

#include "tc/gpu/cost/estimate.h"
#include "tc/gpu/mapping/kernel.h"

namespace tc::gpu {

/// What the recipe of a kernel knows of the time that its code takes.
inline Expected expected_of(const Kernel& kernel) {
  Expected result{.planned_us = kernel.planned_us, .in_passes = kernel.in_memory, .asked_again = kernel.asked_again};
  if (kernel.selects_slices) result.unknown_trips = 1;
  return result;
}

}  // namespace tc::gpu
