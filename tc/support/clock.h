#pragma once

#include <chrono>

namespace tc {

using Clock = std::chrono::steady_clock;

/// Microseconds.
inline double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace tc
