#pragma once

#include <cstdint>

/// Integers rounded.
namespace tc {

/// The quotient, rounded up, of a value of zero or more by one of one or more.
constexpr int64_t ceil_div(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// The least multiple of `to`, which is one or more, that is not below a value of zero or more.
constexpr int64_t round_up(int64_t value, int64_t to) { return ceil_div(value, to) * to; }

/// The largest number up to `most` that divides `extent`, if it is more than half of `most`; else `most`.
constexpr int64_t divisor_near(int64_t extent, int64_t most) {
  for (int64_t n = most; n > most / 2; --n) {
    if (extent % n == 0) return n;
  }
  return most;
}

}  // namespace tc
