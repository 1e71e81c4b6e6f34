#include "tc/compile/gpu_target.h"

#include "tc/support/result.h"

namespace tc::compile {

gpu::Device typical_device(cuda::Arch arch) {
  gpu::Device device = gpu::device_of_architecture(arch.number);
  device.accelerated = arch.variant == 'a';
  return device;
}

gpu::Device device_of(const cuda::DeviceInfo& info) {
  gpu::Device device = typical_device(info.arch());
  device.threads_per_block = info.threads_per_block;
  device.block = info.block_limits;
  device.grid = info.grid_limits;
  device.shared_bytes = info.shared_bytes_per_block;
  device.processors = info.multiprocessors;
  return device;
}

Result<GpuTarget> target_of_device(int ordinal) {
  TC_TRY(devices, cuda::devices());
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) {
    return fail("there is no GPU {}; this machine has {}", ordinal, devices.size());
  }
  const cuda::DeviceInfo& info = devices[static_cast<size_t>(ordinal)];
  return GpuTarget{.arch = info.arch(), .device = device_of(info), .ordinal = ordinal};
}

Result<GpuTarget> target_of_arch(const std::string& name) {
  TC_TRY(arch, cuda::parse_arch(name));
  return GpuTarget{.arch = arch, .device = typical_device(arch), .ordinal = 0};
}

}  // namespace tc::compile
