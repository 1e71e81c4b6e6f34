#pragma once

#include <quadmath.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

/// The functions of mathematics once more, in quadruple precision: what the oracle and the backends are measured by.
namespace tc::testing {

using Quad = __float128;

/// A function's true value, and where arguments are drawn from beside all bit patterns.
struct MathReference {
  const char* name;
  int arguments;
  Quad (*value)(const Quad* x);
  double low, high;
};

/// Sorted by name.
std::span<const MathReference> math_references();

/// The distance of `got` from the true value in units of Float's last place there; infinite where a NaN or an
/// infinity is missing or too many.
template <typename Float, typename True>
double ulp_error(Float got, True truth) {
  using Limits = std::numeric_limits<Float>;
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (truth != truth || got != got) return truth != truth && got != got ? 0 : kWrong;
  Float rounded = static_cast<Float>(truth);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // One of the two is infinite, and the other may be the largest number when the truth lies between them.
    Float largest = std::copysign(Limits::max(), rounded);
    return truth != True(rounded) && (got == largest || rounded == largest) ? 1 : kWrong;
  }
  int exponent = Limits::min_exponent - 1;
  if (rounded != 0) exponent = std::max(exponent, std::ilogb(rounded));
  True unit = static_cast<True>(std::ldexp(1.0L, exponent - Limits::digits + 1));
  True error = (static_cast<True>(got) - truth) / unit;
  return static_cast<double>(error < 0 ? -error : error);
}

/// Numbers from the whole line of bit patterns (NaNs, infinities and subnormals among them), from an interval, and
/// the special ones.
template <typename Float>
std::vector<Float> samples(int count, double low, double high, uint64_t seed) {
  using Bits = std::conditional_t<sizeof(Float) == 4, uint32_t, uint64_t>;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> inside(low, high);
  std::vector<Float> x = {0, Float(-0.0), 1, -1, 0.5, -0.5, 2, -2, Float(low), Float(high)};
  using Limits = std::numeric_limits<Float>;
  for (Float v : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min()}) {
    x.push_back(v);
    x.push_back(-v);
  }
  while (static_cast<int>(x.size()) < count) {
    x.push_back(static_cast<Float>(inside(random)));
    x.push_back(std::bit_cast<Float>(static_cast<Bits>(random())));
    x.push_back(std::ldexp(static_cast<Float>(inside(random)), -static_cast<int>(random() % 30)));
  }
  x.resize(count);
  return x;
}

}  // namespace tc::testing
