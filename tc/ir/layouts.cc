#include "tc/ir/layouts.h"

#include <algorithm>

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

}  // namespace tc::ir
