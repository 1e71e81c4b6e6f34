#pragma once

#include <cmath>
#include <string>

#include "tc/tune/space.h"

namespace tc::tune::testing {

/// Eight parameters of eight values, as many points as 16 million.
inline Space landscape_space() {
  Space space;
  const std::vector<std::string> sizes = {"1", "2", "4", "8", "16", "32", "64", "128"};
  for (int i = 0; i < 6; ++i) space.parameters.push_back({"tile", sizes});
  space.parameters.push_back({"unroll", {"1", "2", "3", "4", "5", "6", "7", "8"}});
  space.parameters.push_back({"vector_width", {"1", "2", "4", "8", "16", "32", "64", "64"}});
  space.parameters.back().values.pop_back();
  return space;
}

/// Microseconds of a kernel that does not exist: 1 at best, more for each parameter's distance from its best value, and
/// for neighbours that do not suit each other.
inline double landscape_us(const Candidate& c) {
  constexpr int kBest[] = {3, 5, 2, 4, 6, 1, 4, 3};
  double us = 1;
  for (size_t p = 0; p < c.size(); ++p) {
    const double off = static_cast<double>(c[p]) - kBest[p];
    us *= 1 + 0.12 * std::pow(std::fabs(off), 1.3);
    if (p > 0 && std::abs(static_cast<int>(c[p]) - static_cast<int>(c[p - 1])) > 5) us *= 1.3;
  }
  return us;
}

}  // namespace tc::tune::testing
