#include "tc/api/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "tc/ir/layouts.h"

namespace tc::api {

std::vector<int64_t> dense_strides(std::span<const int64_t> shape) { return ir::row_major_strides(shape); }

std::optional<int64_t> element_count(std::span<const int64_t> shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::optional<Reach> reach_of(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return Reach{};
  Reach reach{0, 0};
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t step = 0;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &step)) return std::nullopt;
    int64_t& end = step < 0 ? reach.low : reach.high;
    if (__builtin_add_overflow(end, step, &end)) return std::nullopt;
  }
  return reach;
}

bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (strides.size() != shape.size()) return false;
  int64_t expected = 1;
  bool dense = true;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 0) return true;
    if (shape[d] != 1 && strides[d] != expected) dense = false;
    if (__builtin_mul_overflow(expected, shape[d], &expected)) return dense && d == 0;
  }
  return dense;
}

bool elements_are_apart(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  struct Dimension {
    int64_t stride;
    int64_t extent;
  };
  if (strides.size() != shape.size()) return false;
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return true;
    if (strides[d] == INT64_MIN) return false;
    if (shape[d] > 1) dimensions.push_back({std::abs(strides[d]), shape[d]});
  }
  std::ranges::sort(dimensions, {}, &Dimension::stride);
  int64_t reach = 0;  // the largest offset that the dimensions so far reach together
  for (const Dimension& dimension : dimensions) {
    if (dimension.stride <= reach) return false;
    int64_t step = 0;
    if (__builtin_mul_overflow(dimension.stride, dimension.extent - 1, &step)) return false;
    if (__builtin_add_overflow(reach, step, &reach)) return false;
  }
  return true;
}

TensorSpec with_strides(TensorSpec spec) {
  if (!spec.strides.empty() && spec.strides.size() != spec.shape.size()) return spec;
  const std::vector<int64_t> dense = dense_strides(spec.shape);
  if (spec.strides.empty() || is_dense(spec.shape, spec.strides)) {
    spec.strides = dense;
    return spec;
  }
  for (size_t d = 0; d < spec.shape.size(); ++d) {
    if (spec.shape[d] == 1) spec.strides[d] = dense[d];
  }
  return spec;
}

std::string tuple_text(std::span<const int64_t> values) { return fmt::format("({})", fmt::join(values, ", ")); }

}  // namespace tc::api
