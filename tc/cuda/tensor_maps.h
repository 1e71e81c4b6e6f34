#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tc/cuda/driver.h"
#include "tc/cuda/launch_plan.h"

namespace tc::cuda {

/// A CUtensorMap: what a kernel takes by value.
struct alignas(kMapBytes) EncodedMap {
  std::array<uint64_t, kMapBytes / sizeof(uint64_t)> words;
};

/// What cuTensorMapEncodeTiled takes of a map besides its numbers: enumerators of the CUDA driver API.
struct MapCodes {
  int interleave = 0;  ///< none
  int swizzle = 0;     ///< CUtensorMapSwizzle
  int promotion = 2;   ///< to lines of 128 bytes in L2; 256 takes up to 14 % longer where rows lie across lines
  int fill = 0;        ///< zeros outside of the extents
};
MapCodes codes_of(const MapArgument& map);

/// The tensor maps of a plan, each encoded for the address that it was last wanted for.
class TensorMaps {
 public:
  TensorMaps(const Driver& driver, const LaunchPlan& plan);

  /// Copies map number `index`, whose tensor or buffer is at the address. Thread-safe.
  Result<void> copy(size_t index, Address address, EncodedMap& to);

 private:
  struct Known {
    Address address = 0;
    EncodedMap map{};
  };
  Result<void> encode(size_t index, Address address, EncodedMap& to) const;

  const Driver& driver_;
  const LaunchPlan& plan_;
  std::mutex mutex_;
  std::vector<Known> known_;
};

}  // namespace tc::cuda
