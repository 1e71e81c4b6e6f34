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
