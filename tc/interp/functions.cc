#include "tc/interp/functions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "tc/interp/scalar.h"
#include "tc/interp/tf32_factors.h"

namespace tc::interp {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// sin(pi x) and cos(pi x) with the argument reduced before it is rounded.
double sin_pi(double x) {
  const double r = std::remainder(x, 2.0);  // exact, in [-1, 1]
  if (std::fabs(r) == 0 || std::fabs(r) == 1) return std::copysign(0.0, x);
  if (std::fabs(r) <= 0.25) return std::sin(kPi * r);
  if (r > 0.75) return std::sin(kPi * (1 - r));
  if (r < -0.75) return -std::sin(kPi * (1 + r));
  return std::copysign(std::cos(kPi * (std::fabs(r) - 0.5)), r);
}

double cos_pi(double x) {
  const double r = std::fabs(std::remainder(x, 2.0));
  if (r == 0.5) return 0;
  if (r <= 0.25) return std::cos(kPi * r);
  if (r >= 0.75) return -std::cos(kPi * (1 - r));
  return std::sin(kPi * (0.5 - r));
}

// exp(x^2) erfc(x). Far out, erfc underflows before exp overflows: there the continued fraction converges fast.
double scaled_erfc(double x) {
  if (x < -30) return INFINITY;
  const long double wide = x;
  if (wide < 4) {
    // x^2 in two parts, since exp multiplies its argument's error.
    const long double square = wide * wide, rest = std::fma(wide, wide, -square);
    return static_cast<double>(std::exp(square) * std::exp(rest) * std::erfc(wide));
  }
  if (std::isinf(x)) return 0;
  long double fraction = wide;
  for (int n = 60; n >= 1; --n) fraction = wide + (n / 2.0L) / fraction;
  return static_cast<double>(1 / (fraction * std::sqrt(std::numbers::pi_v<long double>)));
}

// Newton's iteration on erf, or on log(erfc) in the tail, where erf is flat.
long double erfc_inverse_upper(long double y);

long double erf_inverse_wide(long double y) {
  if (std::fabs(y) > 0.5L) {
    const long double x = erfc_inverse_upper(1 - std::fabs(y));
    return std::copysign(x, y);
  }
  long double x = y * std::sqrt(std::numbers::pi_v<long double>) / 2;
  for (int i = 0; i < 60; ++i) {
    const long double slope = 2 / std::sqrt(std::numbers::pi_v<long double>) * std::exp(-x * x);
    const long double step = (std::erf(x) - y) / slope;
    x -= step;
    if (std::fabs(step) <= 1e-19L * std::fabs(x)) break;
  }
  return x;
}

// For 0 < y <= 0.5.
long double erfc_inverse_upper(long double y) {
  long double x = std::sqrt(-std::log(y));
  for (int i = 0; i < 60; ++i) {
    const long double value = std::erfc(x);
    const long double log_slope = -2 / std::sqrt(std::numbers::pi_v<long double>) * std::exp(-x * x) / value;
    const long double step = (std::log(value) - std::log(y)) / log_slope;
    x -= step;
    if (std::fabs(step) <= 1e-18L * x) break;
  }
  return x;
}

/// 10 bits of fraction with float32's exponents.
double round_to_tf32(double x) {
  if (!std::isfinite(x)) return x;
  const int last_bit = std::max(x == 0 ? -126 : std::ilogb(x), -126) - 10;
  const double rounded = std::ldexp(std::round(std::ldexp(x, -last_bit)), last_bit);
  return std::fabs(rounded) < 0x1p128 ? rounded : std::copysign(INFINITY, x);
}

double erf_inverse(double y) {
  if (std::isnan(y) || std::fabs(y) > 1) return kNaN;
  if (std::fabs(y) == 1) return std::copysign(INFINITY, y);
  return y == 0 ? y : static_cast<double>(erf_inverse_wide(y));
}

double erfc_inverse(double y) {
  if (std::isnan(y) || y < 0 || y > 2) return kNaN;
  if (y == 0) return INFINITY;
  if (y == 2) return -INFINITY;
  if (y <= 0.5) return static_cast<double>(erfc_inverse_upper(y));
  if (y < 1.5) return static_cast<double>(erf_inverse_wide(1 - static_cast<long double>(y)));
  return static_cast<double>(-erfc_inverse_upper(2 - static_cast<long double>(y)));
}

double normal_cdf(double x) { return static_cast<double>(0.5L * std::erfc(-x / std::numbers::sqrt2_v<long double>)); }
double normal_cdf_inverse(double p) { return -std::numbers::sqrt2 * erfc_inverse(2 * p); }

// The modified Bessel functions by their power series, or asymptotically where the series is long.
double bessel_i(int order, double x) {
  const long double z = std::fabs(static_cast<long double>(x));
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return order == 1 ? x : INFINITY;
  long double sum = 0;
  long double term = order == 0 ? 1 : z / 2;
  if (z <= 60) {
    for (int k = 0; k < 400 && term > 1e-22L * sum; ++k) {
      sum += term;
      term *= (z / 2) * (z / 2) / (static_cast<long double>(k + 1) * (k + 1 + order));
    }
  } else {
    const long double mu = 4.0L * order * order;
    term = 1;
    for (int k = 1; k < 40 && std::fabs(term) > 1e-20L; ++k) {
      sum += term;
      term *= -(mu - (2.0L * k - 1) * (2.0L * k - 1)) / (k * 8 * z);
    }
    sum *= std::exp(z) / std::sqrt(2 * std::numbers::pi_v<long double> * z);
  }
  return static_cast<double>(order == 1 && x < 0 ? -sum : sum);
}

double sign(double x) { return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : x; }
double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

// In long double, whose exponents leave room for the length of the longest vector of doubles.
long double hypot4(const double* a) {
  return std::hypot(std::hypot(static_cast<long double>(a[0]), static_cast<long double>(a[1])),
                    std::hypot(static_cast<long double>(a[2]), static_cast<long double>(a[3])));
}
long double hypot3(const double* a) {
  const double padded[] = {a[0], a[1], a[2], 0};
  return hypot4(padded);
}
long double hypot2(double x, double y) {
  const double padded[] = {x, y, 0, 0};
  return hypot4(padded);
}

#define TC_UNARY(name, shape, rounding, expression)                                        \
  RealFunction {                                                                           \
    name, 1, Shape::shape, Rounding::rounding, [](ScalarType, const double* a) -> double { \
      const double x = a[0];                                                               \
      return expression;                                                                   \
    }                                                                                      \
  }
#define TC_BINARY(name, shape, rounding, expression)                                       \
  RealFunction {                                                                           \
    name, 2, Shape::shape, Rounding::rounding, [](ScalarType, const double* a) -> double { \
      const double x = a[0];                                                               \
      const double y = a[1];                                                               \
      return expression;                                                                   \
    }                                                                                      \
  }

const RealFunction kRealFunctions[] = {
    TC_UNARY("acos", kMonotone, kUlp, std::acos(x)),
    TC_UNARY("acosh", kMonotone, kUlp, std::acosh(x)),
    TC_UNARY("asin", kMonotone, kUlp, std::asin(x)),
    TC_UNARY("asinh", kMonotone, kUlp, std::asinh(x)),
    TC_UNARY("atan", kMonotone, kUlp, std::atan(x)),
    TC_UNARY("atanh", kMonotone, kUlp, std::atanh(x)),
    TC_UNARY("cbrt", kMonotone, kUlp, std::cbrt(x)),
    TC_UNARY("ceil", kMonotone, kExact, std::ceil(x)),
    TC_UNARY("cos", kLipschitz, kUlp, std::cos(x)),
    TC_UNARY("cosh", kSmooth, kUlp, std::cosh(x)),
    TC_UNARY("cospi", kPi, kUlp, cos_pi(x)),
    TC_UNARY("cyl_bessel_i0", kSmooth, kUlp, bessel_i(0, x)),
    TC_UNARY("cyl_bessel_i1", kMonotone, kUlp, bessel_i(1, x)),
    TC_UNARY("erf", kMonotone, kUlp, std::erf(x)),
    TC_UNARY("erfc", kMonotone, kUlp, std::erfc(x)),
    TC_UNARY("erfcinv", kMonotone, kUlp, erfc_inverse(x)),
    TC_UNARY("erfcx", kMonotone, kUlp, scaled_erfc(x)),
    TC_UNARY("erfinv", kMonotone, kUlp, erf_inverse(x)),
    TC_UNARY("exp", kMonotone, kUlp, std::exp(x)),
    TC_UNARY("exp10", kMonotone, kUlp, static_cast<double>(std::pow(10.0L, static_cast<long double>(x)))),
    TC_UNARY("exp2", kMonotone, kUlp, std::exp2(x)),
    TC_UNARY("expm1", kMonotone, kUlp, std::expm1(x)),
    TC_UNARY("abs", kLipschitz, kExact, std::fabs(x)),
    TC_UNARY("fabs", kLipschitz, kExact, std::fabs(x)),
    TC_UNARY("floor", kMonotone, kExact, std::floor(x)),
    TC_UNARY("j0", kLipschitz, kUlp, static_cast<double>(::j0l(x))),
    TC_UNARY("j1", kLipschitz, kUlp, static_cast<double>(::j1l(x))),
    TC_UNARY("lgamma", kWavy, kUlp, std::lgamma(x)),
    TC_UNARY("log", kMonotone, kUlp, std::log(x)),
    TC_UNARY("log10", kMonotone, kUlp, std::log10(x)),
    TC_UNARY("log1p", kMonotone, kUlp, std::log1p(x)),
    TC_UNARY("log2", kMonotone, kUlp, std::log2(x)),
    TC_UNARY("logb", kSmooth, kExact, std::logb(x)),
    TC_UNARY("nearbyint", kMonotone, kExact, std::nearbyint(x)),
    TC_UNARY("normcdf", kMonotone, kUlp, normal_cdf(x)),
    TC_UNARY("normcdfinv", kMonotone, kUlp, normal_cdf_inverse(x)),
    TC_UNARY("rcbrt", kSmooth, kUlp, static_cast<double>(1 / std::cbrt(static_cast<long double>(x)))),
    TC_UNARY("rint", kMonotone, kExact, std::rint(x)),
    TC_UNARY("round", kMonotone, kExact, std::round(x)),
    TC_UNARY("rsqrt", kMonotone, kUlp, 1 / std::sqrt(x)),
    TC_UNARY("sigmoid", kMonotone, kUlp, sigmoid(x)),
    TC_UNARY("sign", kMonotone, kExact, sign(x)),
    TC_UNARY("sin", kLipschitz, kUlp, std::sin(x)),
    TC_UNARY("sinh", kMonotone, kUlp, std::sinh(x)),
    TC_UNARY("sinpi", kPi, kUlp, sin_pi(x)),
    TC_UNARY("sqrt", kMonotone, kCorrect, std::sqrt(x)),
    TC_UNARY("tan", kWavy, kUlp, std::tan(x)),
    TC_UNARY("tanh", kMonotone, kUlp, std::tanh(x)),
    TC_UNARY("tgamma", kWavy, kUlp, std::tgamma(x)),
    TC_UNARY("tf32", kMonotone, kExact, round_to_tf32(x)),
    TC_UNARY(kAboutTf32, kLipschitz, kTf32, x),  // of with_tf32_factors() alone
    TC_UNARY("trunc", kMonotone, kExact, std::trunc(x)),
    TC_UNARY("y0", kWavy, kUlp, static_cast<double>(::y0l(x))),
    TC_UNARY("y1", kWavy, kUlp, static_cast<double>(::y1l(x))),
    TC_BINARY("atan2", kSmooth, kUlp, std::atan2(x, y)),
    TC_BINARY("copysign", kSmooth, kExact, std::copysign(x, y)),
    TC_BINARY("fdim", kMonotone, kCorrect, std::fdim(x, y)),
    TC_BINARY("fdivide", kSmooth, kUlp, x / y),
    TC_BINARY("fmax", kMonotone, kExact, std::fmax(x, y)),
    TC_BINARY("fmin", kMonotone, kExact, std::fmin(x, y)),
    TC_BINARY("fmod", kSawtooth, kExact, std::fmod(x, y)),
    TC_BINARY("hypot", kSmooth, kUlp, std::hypot(x, y)),
    TC_BINARY("pow", kSmooth, kUlp, std::pow(x, y)),
    TC_BINARY("remainder", kSawtooth, kExact, std::remainder(x, y)),
    TC_BINARY("rhypot", kSmooth, kUlp, static_cast<double>(1 / hypot2(x, y))),
    {"nextafter", 2, Shape::kSmooth, Rounding::kExact,
     [](ScalarType type, const double* a) { return next_after(type, a[0], a[1]); }},
    {"fma", 3, Shape::kSmooth, Rounding::kCorrect,
     [](ScalarType, const double* a) { return std::fma(a[0], a[1], a[2]); }},
    {"norm3d", 3, Shape::kSmooth, Rounding::kUlp,
     [](ScalarType, const double* a) { return static_cast<double>(hypot3(a)); }},
    {"rnorm3d", 3, Shape::kSmooth, Rounding::kUlp,
     [](ScalarType, const double* a) { return static_cast<double>(1 / hypot3(a)); }},
    {"norm4d", 4, Shape::kSmooth, Rounding::kUlp,
     [](ScalarType, const double* a) { return static_cast<double>(hypot4(a)); }},
    {"rnorm4d", 4, Shape::kSmooth, Rounding::kUlp,
     [](ScalarType, const double* a) { return static_cast<double>(1 / hypot4(a)); }},
};

#undef TC_UNARY
#undef TC_BINARY

const RealPredicate kRealPredicates[] = {
    {"isnan", [](double x) { return int64_t{std::isnan(x)}; }, false},
    {"isinf", [](double x) { return int64_t{std::isinf(x)}; }, false},
    {"isfinite", [](double x) { return int64_t{std::isfinite(x)}; }, false},
    {"signbit", [](double x) { return int64_t{std::signbit(x)}; }, true},
    // As float_to_integer() treats what does not fit, and as C's ilogb() zero, infinity and NaN.
    {"ilogb", [](double x) { return int64_t{std::ilogb(x)}; }, false},
    {"lround", [](double x) { return float_to_integer(ScalarType::kInt64, std::round(x)); }, true},
    {"llround", [](double x) { return float_to_integer(ScalarType::kInt64, std::round(x)); }, true},
    {"lrint", [](double x) { return float_to_integer(ScalarType::kInt64, std::rint(x)); }, true},
    {"llrint", [](double x) { return float_to_integer(ScalarType::kInt64, std::rint(x)); }, true},
};

int64_t sign_of(ScalarType type, int64_t x) { return x == 0 ? 0 : less(type, x, 0) ? -1 : 1; }

uint64_t bits_in(ScalarType type, int64_t x) {
  return static_cast<uint64_t>(x) & (~uint64_t{0} >> (64 - bits_of(type)));
}

const IntegerFunction kIntegerFunctions[] = {
    {"abs", 1, [](ScalarType t, const int64_t* a) { return less(t, a[0], 0) ? subtract(t, 0, a[0]) : a[0]; }},
    {"sign", 1, [](ScalarType t, const int64_t* a) { return sign_of(t, a[0]); }},
    {"popcount", 1, [](ScalarType t, const int64_t* a) { return int64_t{std::popcount(bits_in(t, a[0]))}; }},
    {"bitwise_not", 1, [](ScalarType t, const int64_t* a) { return wrap(t, ~a[0]); }},
    {"bitwise_and", 2, [](ScalarType, const int64_t* a) { return a[0] & a[1]; }},
    {"bitwise_or", 2, [](ScalarType, const int64_t* a) { return a[0] | a[1]; }},
    {"bitwise_xor", 2, [](ScalarType, const int64_t* a) { return a[0] ^ a[1]; }},
    {"shift_left", 2, [](ScalarType t, const int64_t* a) { return shift_left(t, a[0], a[1]); }},
    {"shift_right", 2, [](ScalarType t, const int64_t* a) { return shift_right(t, a[0], a[1]); }},
    {"tc.floor_div", 2, [](ScalarType t, const int64_t* a) { return floor_divide(t, a[0], a[1]); }},
    {"tc.floor_mod", 2, [](ScalarType t, const int64_t* a) { return floor_modulo(t, a[0], a[1]); }},
};

double scale(double x, int64_t n) { return std::scalbn(x, static_cast<int>(std::clamp<int64_t>(n, -5000, 5000))); }

const MixedFunction kMixedFunctions[] = {
    {"ldexp", false, Rounding::kCorrect, scale},
    {"scalbn", false, Rounding::kCorrect, scale},
    {"scalbln", false, Rounding::kCorrect, scale},
    {"jn", true, Rounding::kUlp,
     [](double x, int64_t n) { return static_cast<double>(::jnl(static_cast<int>(n), x)); }},
    {"yn", true, Rounding::kUlp,
     [](double x, int64_t n) { return static_cast<double>(::ynl(static_cast<int>(n), x)); }},
};

template <typename Function, size_t count>
const Function* find(const Function (&table)[count], const std::string& name) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [&](const Function& f) { return name == f.name; });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace

const RealFunction* find_real_function(const std::string& name) { return find(kRealFunctions, name); }
const RealPredicate* find_real_predicate(const std::string& name) { return find(kRealPredicates, name); }
const IntegerFunction* find_integer_function(const std::string& name) { return find(kIntegerFunctions, name); }
const MixedFunction* find_mixed_function(const std::string& name) { return find(kMixedFunctions, name); }

}  // namespace tc::interp
