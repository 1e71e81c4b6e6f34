#include "tc/ir/layouts.h"

#include <algorithm>
#include <numeric>

#include "tc/ir/specialise.h"
#include "tc/support/check.h"

namespace tc::ir {

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    // Overflow wraps: whoever asks has counted the elements, or has none of them.
    strides[d - 1] =
        static_cast<int64_t>(static_cast<uint64_t>(strides[d]) * static_cast<uint64_t>(std::max<int64_t>(1, shape[d])));
  }
  return strides;
}

std::vector<int64_t> strides_of(const Tensor& tensor) {
  return tensor.strides.empty() ? row_major_strides(constant_shape(tensor)) : tensor.strides;
}

int64_t pitch_of(const std::vector<int64_t>& strides, bool at_any_address) {
  int64_t pitch = at_any_address ? 1 : 0;
  for (size_t d = 0; d + 1 < strides.size(); ++d) pitch = std::gcd(pitch, strides[d]);
  return pitch;
}

int64_t pitch_of(const Tensor& tensor) { return pitch_of(strides_of(tensor), tensor.at_any_address); }

int64_t row_divisor(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides, bool at_any_address) {
  return extents.empty() ? 0 : std::gcd(extents.back(), pitch_of(strides, at_any_address));
}

int64_t row_divisor(const Tensor& tensor) {
  return row_divisor(constant_shape(tensor), strides_of(tensor), tensor.at_any_address);
}

Program with_layouts(Program program, const Layouts& layouts) {
  for (Tensor& tensor : program.tensors) {
    const auto found = layouts.find(tensor.name);
    if (found == layouts.end()) continue;
    TC_CHECK(found->second.size() == tensor.extents.size(), "'{}' has {} dimensions but {} strides", tensor.name,
             tensor.extents.size(), found->second.size());
    tensor.strides = found->second;
  }
  return program;
}

}  // namespace tc::ir
