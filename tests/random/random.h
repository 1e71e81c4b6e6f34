#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace tc::testing {

/// SplitMix64: a small generator whose numbers are the same everywhere, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL) {}

  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  /// In [0, count).
  uint64_t below(uint64_t count) { return bits() % count; }
  /// In [first, last].
  int64_t range(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(below(static_cast<uint64_t>(last - first) + 1));
  }
  bool chance(int percent) { return below(100) < static_cast<uint64_t>(percent); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

 private:
  uint64_t state_;
};

}  // namespace tc::testing
