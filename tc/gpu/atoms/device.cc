#include "tc/gpu/atoms/device.h"

namespace tc::gpu {
namespace {

/// "CUDA C++ Programming Guide", table "Technical Specifications per Compute Capability"; multiprocessors, boost clock
/// and bytes of memory by the data sheet of the largest product.
struct ArchLimits {
  int number;
  int64_t shared_bytes;
  int64_t processors;
  double gigahertz;
  double terabytes_per_s;
  int64_t cache_megabytes;
  double tensor_products;     ///< of 16-bit floats by mma.sync, of a processor in a cycle
  double warpgroup_products;  ///< likewise, by wgmma
};
constexpr ArchLimits kArchitectures[] = {
    {75, 65536, 72, 1.77, 0.67, 6, 0, 0},         {80, 166912, 108, 1.41, 2.04, 40, 1024, 0},
    {86, 101376, 84, 1.74, 0.70, 6, 512, 0},      {87, 166912, 16, 1.30, 0.20, 4, 1024, 0},
    {89, 101376, 142, 2.52, 0.86, 96, 512, 0},    {90, 232448, 132, 1.98, 4.80, 50, 1280, 1900},
    {100, 232448, 148, 1.85, 8.00, 126, 1024, 0}, {120, 101376, 188, 2.60, 1.79, 128, 512, 0},
};
constexpr double kReached = 0.885;  ///< of the data sheet's memory rate, by copies on an H200

}  // namespace

Device device_of_architecture(int number) {
  Device device;
  device.architecture = number;
  for (const ArchLimits& limits : kArchitectures) {
    if (limits.number > number) break;
    device.shared_bytes = limits.shared_bytes;
    device.processors = limits.processors;
    device.gigahertz = limits.gigahertz;
    device.memory_bytes_per_us = limits.terabytes_per_s * 1e6 * kReached;
    device.cache_bytes = limits.cache_megabytes << 20;
    device.tensor_products = limits.tensor_products;
    device.warpgroup_products = limits.warpgroup_products;
  }
  return device;
}

}  // namespace tc::gpu
