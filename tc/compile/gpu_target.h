#pragma once

#include "tc/cuda/arch.h"
#include "tc/cuda/device.h"
#include "tc/gpu/atoms/device.h"

namespace tc::compile {

/// A GPU as its limits: of the largest of its architecture that is sold. What is compiled without a GPU at hand is the
/// same on every machine.
gpu::Device typical_device(cuda::Arch arch);

/// The limits of a GPU of this machine.
gpu::Device device_of(const cuda::DeviceInfo& info);

/// What a compilation for a GPU is made for.
struct GpuTarget {
  cuda::Arch arch{90, 'a'};
  gpu::Device device = typical_device(arch);
  int ordinal = 0;  ///< of the device that `load` loads into
};

/// One of this machine's. Errors: no driver, no such device.
Result<GpuTarget> target_of_device(int ordinal);

/// For an architecture by its name ("sm_90a"). Errors: no such name.
Result<GpuTarget> target_of_arch(const std::string& name);

}  // namespace tc::compile
