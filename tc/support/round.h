#pragma once

#include <cstdint>

/// Integers rounded up.
namespace tc {

/// The quotient, rounded up, of a value of zero or more by one of one or more.
constexpr int64_t ceil_div(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// The least multiple of `to`, which is one or more, that is not below a value of zero or more.
constexpr int64_t round_up(int64_t value, int64_t to) { return ceil_div(value, to) * to; }

}  // namespace tc
