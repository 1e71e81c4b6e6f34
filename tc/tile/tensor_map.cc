#include "tc/tile/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tc::tile {
namespace {

constexpr size_t kMaxRank = 5;
constexpr int64_t kMaxBox = 256;
constexpr int64_t kMaxExtent = int64_t{1} << 32;
constexpr int64_t kStrideLimit = int64_t{1} << 40;  // bytes

class Checker {
 public:
  explicit Checker(const Kernel& kernel) : kernel_(kernel) {}

  std::vector<std::string> check() {
    for (const TensorMap& map : kernel_.maps) check(map);
    return std::move(faults_);
  }

 private:
  template <typename... Args>
  void fault(const TensorMap& map, fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format("{}: the tensor map '{}' {}", kernel_.name, map.name,
                                  fmt::format(format, std::forward<Args>(args)...)));
  }

  void check(const TensorMap& map) {
    const auto tensor = std::ranges::find(kernel_.tensors, map.tensor, &Tensor::name);
    if (tensor == kernel_.tensors.end()) return fault(map, "is of '{}', which is no global tensor", map.tensor);
    const size_t rank = map.extents.size();
    if (rank < 1 || rank > kMaxRank || map.strides.size() != rank || map.box.size() != rank) {
      return fault(map, "has {} extents, {} strides and a box of {}; each must be 1 to {}, and the same", rank,
                   map.strides.size(), map.box.size(), kMaxRank);
    }
    const int64_t bytes = element_bytes(tensor->type);
    for (size_t d = 0; d < rank; ++d) check_dimension(map, d, bytes);
    check_rows(map, bytes);
    check_place(map, *tensor);
  }

  void check_dimension(const TensorMap& map, size_t d, int64_t bytes) {
    if (map.extents[d] < 1 || map.extents[d] > kMaxExtent) {
      fault(map, "has an extent of {} in dimension {}, which must be 1 to {}", map.extents[d], d, kMaxExtent);
    }
    if (map.box[d] < 1 || map.box[d] > kMaxBox) {
      fault(map, "has a box of {} in dimension {}, which must be 1 to {}", map.box[d], d, kMaxBox);
    }
    if (d == 0) {
      if (map.strides[0] != 1) fault(map, "has a stride of {} in dimension 0, which must be 1", map.strides[0]);
      return;
    }
    if (map.strides[d] < 0 || map.strides[d] >= kStrideLimit / bytes || map.strides[d] * bytes % kMapAlignment != 0) {
      fault(map, "has a stride of {} elements in dimension {}; it must be a multiple of {} bytes below 2^40",
            map.strides[d], d, kMapAlignment);
    }
  }

  void check_rows(const TensorMap& map, int64_t bytes) {
    const int64_t row = map.box[0] * bytes;
    if (row % kMapAlignment != 0) {
      fault(map, "has rows of {} bytes in its box, which is no multiple of {}", row, kMapAlignment);
    }
    if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128) {
      return fault(map, "swizzles {} bytes; 0, 32, 64 and 128 are possible", map.swizzle);
    }
    if (map.swizzle != 0 && row > map.swizzle) {
      fault(map, "has rows of {} bytes in its box, but swizzles {}", row, map.swizzle);
    }
  }

  void check_place(const TensorMap& map, const Tensor& tensor) {
    if (map.offset * element_bytes(tensor.type) % kMapAlignment != 0) {
      fault(map, "begins at element {}, which is no multiple of {} bytes", map.offset, kMapAlignment);
    }
    int64_t last = map.offset;
    for (size_t d = 0; d < map.extents.size(); ++d) last += (map.extents[d] - 1) * map.strides[d];
    if (map.offset < 0 || last >= tensor.elements()) {
      fault(map, "reaches from element {} to {} of '{}', which has {}", map.offset, last, tensor.name,
            tensor.elements());
    }
  }

  const Kernel& kernel_;
  std::vector<std::string> faults_;
};

}  // namespace

std::optional<Swizzle> swizzle_of(int64_t row, int64_t bytes) {
  if (row == 0) return {};
  const auto exponent = [](int64_t value) { return std::countr_zero(static_cast<uint64_t>(value)); };
  return Swizzle{.bits = exponent(row) - 4, .base = 4 - exponent(bytes), .shift = 3};
}

std::vector<std::string> tensor_map_faults(const Kernel& kernel) { return Checker(kernel).check(); }

}  // namespace tc::tile
