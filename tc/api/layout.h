#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tc/api/tensor.h"

/// Arithmetic on shapes and strides.
namespace tc::api {

/// Dense, row-major, in elements. Dimensions after one without elements count as one element.
std::vector<int64_t> dense_strides(std::span<const int64_t> shape);

/// Elements of a shape; nothing if they do not fit int64.
std::optional<int64_t> element_count(std::span<const int64_t> shape);

/// The offsets in elements that a tensor touches, from its element (0, ..., 0): [low, high]. Empty (low > high) for a
/// tensor without elements; nothing if they do not fit int64.
struct Reach {
  int64_t low = 0;
  int64_t high = -1;
};
std::optional<Reach> reach_of(std::span<const int64_t> shape, std::span<const int64_t> strides);

/// Whether the strides are the dense ones wherever that makes a difference: dimensions of one element, and all
/// dimensions of a tensor without elements, do not count.
bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides);

/// Whether no two elements share an address. True only for strides that nest: sorted by size, each reaches beyond all
/// smaller ones together; that is every layout made by slicing, transposing and reversing a dense tensor.
bool elements_are_apart(std::span<const int64_t> shape, std::span<const int64_t> strides);

/// The spec with strides filled in, and those of dimensions of one element made dense.
TensorSpec with_strides(TensorSpec spec);

/// "(128, 64)"; "(5)"; "()".
std::string tuple_text(std::span<const int64_t> values);

}  // namespace tc::api
