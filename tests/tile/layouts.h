#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tc/tile/layout.h"

namespace tc::tile {

/// A random hierarchical layout; compact ones are injective.
class Layouts {
 public:
  explicit Layouts(uint32_t seed) : random_(seed) {}

  Layout any() {
    const IntTuple shape = random_shape(2);
    return Layout(shape, random_strides(shape));
  }

  /// Strides are a permutation of the column-major ones: injective and without gaps.
  Layout compact() {
    std::vector<int64_t> extents;
    for (int i = 0, n = pick(1, 4); i < n; ++i) extents.push_back(pick(1, 5));
    std::vector<size_t> order(extents.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<IntTuple> strides(extents.size());
    int64_t next = 1;
    for (size_t i : order) {
      strides[i] = next;
      next *= extents[i];
    }
    return Layout(std::vector<IntTuple>(extents.begin(), extents.end()), strides);
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

 private:
  IntTuple random_shape(int depth) {
    if (depth == 0 || pick(0, 2) == 0) return pick(1, 6);
    std::vector<IntTuple> modes;
    for (int i = 0, n = pick(1, 3); i < n; ++i) modes.push_back(random_shape(depth - 1));
    return modes;
  }
  IntTuple random_strides(const IntTuple& shape) {
    if (shape.is_leaf()) return pick(0, 12);
    std::vector<IntTuple> strides;
    for (const IntTuple& mode : shape.modes()) strides.push_back(random_strides(mode));
    return strides;
  }

  std::mt19937 random_;
};

}  // namespace tc::tile
