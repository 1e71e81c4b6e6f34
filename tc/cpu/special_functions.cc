#include "tc/cpu/special_functions.h"

#include <math.h>

#include <cmath>
#include <limits>

namespace tc::cpu::special {
namespace {

constexpr long double kPi = 3.141592653589793238462643383279502884L;
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();

/// A first guess at the z with erfc(z) = y, y in (0, 1]: the leading terms of the asymptotic expansion for a
/// small y, a rational function (Abramowitz & Stegun 26.2.23, to 4.5e-4) for the rest.
long double guess_erfcinv(long double y) {
  long double t = sqrtl(-2 * logl(y / 2));
  long double z =
      t - (2.515517L + t * (0.802853L + t * 0.010328L)) / (1 + t * (1.432788L + t * (0.189269L + t * 0.001308L)));
  return z / sqrtl(2.0L);
}

/// Refines by Halley's method on erfc(z) / y - 1; each step triples the digits.
long double solve_erfcinv(long double y) {
  long double z = guess_erfcinv(y);
  for (int step = 0; step < 4; step++) {
    long double slope = -2 / sqrtl(kPi) * expl(-z * z);
    long double newton = (erfcl(z) - y) / slope;
    z -= newton / (1 + z * newton);
  }
  return z;
}

/// Sum of (x/2)^(2k) / (k! (k + order)!): all terms are positive, so nothing is lost.
long double bessel_series(long double x, int order) {
  long double quarter = x * x / 4, term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-21L; k++) {
    term *= quarter / (static_cast<long double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

/// exp(x) / sqrt(2 pi x) times the asymptotic series, which for x > 60 reaches long double's precision.
long double bessel_asymptotic(long double x, int order) {
  long double term = 1, sum = 1, mu = 4.0L * order * order;
  for (int k = 1; k < 60 && fabsl(term) > 1e-21L; k++) {
    long double odd = 2 * k - 1;
    term *= -(mu - odd * odd) / (k * 8 * x);
    sum += term;
  }
  return expl(x) / sqrtl(2 * kPi * x) * sum;
}

}  // namespace

long double sinpi(long double x) {
  if (!std::isfinite(x)) return kNan;
  long double r = x - 2 * rintl(x / 2);  // in [-1, 1], exact
  if (r > 0.5L) r = 1 - r;
  if (r < -0.5L) r = -1 - r;
  if (r == 0) return copysignl(0, x);
  return fabsl(r) <= 0.25L ? sinl(kPi * r) : copysignl(cosl(kPi * (0.5L - fabsl(r))), r);
}

long double cospi(long double x) {
  if (!std::isfinite(x)) return kNan;
  long double r = fabsl(x - 2 * rintl(x / 2));  // in [0, 1], exact
  if (r == 0.5L) return 0;
  if (r <= 0.25L) return cosl(kPi * r);
  return r < 0.75L ? sinl(kPi * (0.5L - r)) : -cosl(kPi * (1 - r));
}

long double rcbrt(long double x) { return 1 / cbrtl(x); }

long double sigmoid(long double x) {
  if (x >= 0) return 1 / (1 + expl(-x));
  long double z = expl(x);
  return z / (1 + z);
}

long double log_gamma(long double x) {
  int sign;  // lgammal would set a global
  return lgammal_r(x, &sign);
}

long double erfcx(long double x) {
  if (x < 50) {
    long double square = x * x, error = fmal(x, x, -square);
    if (square > 11000) return kInfinity;
    return expl(square) * (1 + error) * erfcl(x);
  }
  // 1/(x sqrt(pi)) (1 - 1/(2x^2) + 3/(4x^4) - 15/(8x^6) + 105/(16x^8) - ...)
  long double h = 1 / (2 * x * x);
  return (1 - h * (1 - 3 * h * (1 - 5 * h * (1 - 7 * h)))) / (x * sqrtl(kPi));
}

long double erfinv(long double x) {
  if (fabsl(x) > 1) return kNan;
  if (x == 0 || std::isnan(x)) return x;
  if (fabsl(x) == 1) return copysignl(kInfinity, x);
  if (fabsl(x) > 0.5L) return copysignl(solve_erfcinv(1 - fabsl(x)), x);
  long double z = x * sqrtl(kPi) / 2;
  for (int step = 0; step < 6; step++) {
    long double newton = (erfl(z) - x) / (2 / sqrtl(kPi) * expl(-z * z));
    z -= newton / (1 + z * newton);
  }
  return z;
}

long double erfcinv(long double y) {
  if (std::isnan(y) || y < 0 || y > 2) return kNan;
  if (y == 0) return kInfinity;
  if (y == 2) return -kInfinity;
  if (y < 0.5L) return solve_erfcinv(y);
  if (y > 1.5L) return -solve_erfcinv(2 - y);
  return erfinv(1 - y);
}

long double normcdf(long double x) { return erfcl(-x / sqrtl(2.0L)) / 2; }

long double normcdfinv(long double p) {
  if (std::isnan(p) || p < 0 || p > 1) return kNan;
  return -sqrtl(2.0L) * erfcinv(2 * p);
}

long double bessel_i0(long double x) {
  x = fabsl(x);
  if (x > 11000) return kInfinity;
  return x > 60 ? bessel_asymptotic(x, 0) : std::isnan(x) ? x : bessel_series(x, 0);
}

long double bessel_i1(long double x) {
  long double size = fabsl(x);
  if (size > 11000) return copysignl(kInfinity, x);
  if (size > 60) return copysignl(bessel_asymptotic(size, 1), x);
  return std::isnan(x) ? x : x / 2 * bessel_series(x, 1);
}

}  // namespace tc::cpu::special
