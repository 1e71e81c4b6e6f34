#pragma once

#include <array>
#include <cstdint>

namespace tc::gpu {

/// What a GPU offers to one launch.
struct Device {
  int64_t threads_per_block = 1024;
  std::array<int64_t, 3> block = {1024, 1024, 64};
  std::array<int64_t, 3> grid = {2147483647, 65535, 65535};
  int64_t shared_bytes = 48 * 1024;
  int64_t processors = 132;
  double gigahertz = 1.63;              ///< of a processor's clock, while it computes
  double memory_bytes_per_us = 4.25e6;  ///< that copies reach
  int64_t cache_bytes = 50 << 20;       ///< of the L2
  int architecture = 90;                ///< as 80 for sm_80
  bool accelerated = true;              ///< code is for this one architecture, with instructions of its own: sm_90a
  double tensor_products = 1280;        ///< of 16-bit floats by mma.sync, of a processor in a cycle; 0: it has none
  double warpgroup_products = 1900;     ///< likewise, by wgmma, where code is for this one architecture; 0: none; twice
                                        ///< as many of 8-bit floats
  double blocks_per_us = 810;           ///< that it starts, one after the other, as an H100 does
  int64_t instances_of_launch = 1 << 18;  ///< instances of statements that take about as long as a launch does
};

/// The processors, if a kernel may start while the one before it on the stream runs ("Programmatic Dependent Launch").
inline int64_t processors_that_start_early(const Device& device) {
  return device.architecture >= 90 ? device.processors : 0;
}

/// The largest GPU of an architecture that is sold, by the architecture's number: 90 is sm_90. One between two that are
/// known is like the older.
Device device_of_architecture(int number);

}  // namespace tc::gpu
