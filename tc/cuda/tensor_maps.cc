#include "tc/cuda/tensor_maps.h"

#include <algorithm>

namespace tc::cuda {
namespace {

/// A CUtensorMapSwizzle.
int swizzle_code(int bytes) {
  switch (bytes) {
    case 32:
      return 1;
    case 64:
      return 2;
    case 128:
      return 3;
    default:
      return 0;
  }
}

const std::string& name_of(const KernelArgument& argument, const LaunchPlan& plan) {
  const auto index = static_cast<size_t>(argument.index);
  return argument.kind == KernelArgument::Kind::kTensor ? plan.tensors[index].name : plan.workspace[index].name;
}

}  // namespace

MapCodes codes_of(const MapArgument& map) { return {.swizzle = swizzle_code(map.swizzle)}; }

TensorMaps::TensorMaps(const Driver& driver, const LaunchPlan& plan)
    : driver_(driver), plan_(plan), known_(plan.maps.size()) {}

Result<void> TensorMaps::copy(size_t index, Address address, EncodedMap& to) {
  Known& known = known_[index];
  const std::lock_guard<std::mutex> lock(mutex_);
  if (known.address != address) [[unlikely]] {
    EncodedMap encoded;
    TC_TRY_VOID(encode(index, address, encoded));
    known = {address, encoded};
  }
  to = known.map;
  return {};
}

Result<void> TensorMaps::encode(size_t index, Address address, EncodedMap& to) const {
  const MapArgument& map = plan_.maps[index];
  const size_t rank = map.extents.size();
  std::array<uint64_t, kMaxMapRank> extents{}, byte_strides{};
  std::array<unsigned, kMaxMapRank> box{}, steps{};
  std::ranges::copy(map.extents, extents.begin());
  std::ranges::copy(map.byte_strides, byte_strides.begin());
  std::ranges::transform(map.box, box.begin(), [](int64_t extent) { return static_cast<unsigned>(extent); });
  steps.fill(1);
  void* const first = reinterpret_cast<void*>(address + static_cast<Address>(map.byte_offset));
  const MapCodes codes = codes_of(map);
  const Driver::Status status =
      driver_.encode_map(&to, map.type, static_cast<unsigned>(rank), first, extents.data(), byte_strides.data(),
                         box.data(), steps.data(), codes.interleave, codes.swizzle, codes.promotion, codes.fill);
  return driver_.check(status, fmt::format("making a tensor map of '{}'", name_of(map.of, plan_)));
}

}  // namespace tc::cuda
