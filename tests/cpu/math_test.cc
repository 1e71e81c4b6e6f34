#include "tc/cpu/math.h"

#include <gtest/gtest.h>
#include <math.h>
#include <quadmath.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

#include "kernels.h"
#include "tc/cpu/target.h"

namespace tc::cpu {
namespace {

using namespace Halide;
using Quad = __float128;

/// What the true value is, in quadruple precision, and where arguments are drawn from beside all bit patterns.
struct Reference {
  const char* name;
  int arguments;
  Quad (*value)(const Quad* x);
  double low, high;
};

Quad to_quad(const char* digits) { return strtoflt128(digits, nullptr); }
const Quad kQuadPi = to_quad("3.14159265358979323846264338327950288419716939937510");
const Quad kTwoOverRootPi = 2 / sqrtq(kQuadPi);

Quad quad_erfinv(Quad x) {
  if (x == 0 || isnanq(x)) return x;
  if (fabsq(x) >= 1) return fabsq(x) == 1 ? copysignq(HUGE_VALQ, x) : nanq("");
  // Bisection finds the start: nothing is shared with the code under test.
  Quad low = 0, high = 12, size = fabsq(x);
  for (int i = 0; i < 20; i++) (erfq((low + high) / 2) < size ? low : high) = (low + high) / 2;
  Quad z = (low + high) / 2;
  for (int i = 0; i < 6; i++) z -= (erfq(z) - size) / (kTwoOverRootPi * expq(-z * z));
  return copysignq(z, x);
}
Quad quad_erfcinv(Quad y) {
  if (isnanq(y) || y < 0 || y > 2) return nanq("");
  if (y == 0 || y == 2) return y == 0 ? HUGE_VALQ : -HUGE_VALQ;
  if (y > 1) return y > 1.5 ? -quad_erfcinv(2 - y) : -quad_erfinv(y - 1);
  if (y > 0.5) return quad_erfinv(1 - y);
  Quad low = 0, high = 110;
  for (int i = 0; i < 30; i++) (erfcq((low + high) / 2) > y ? low : high) = (low + high) / 2;
  Quad z = (low + high) / 2;
  for (int i = 0; i < 5; i++) z += (erfcq(z) / y - 1) * y / (kTwoOverRootPi * expq(-z * z));
  return z;
}
Quad quad_erfcx(Quad x) {
  if (isnanq(x)) return x;
  if (x < -200) return HUGE_VALQ;
  if (x < 100) return expq(x * x) * erfcq(x);
  Quad h = 1 / (2 * x * x), sum = 1, term = 1;
  for (int k = 1; k < 12; k++) sum += term *= -h * (2 * k - 1);
  return sum / (x * sqrtq(kQuadPi));
}
Quad quad_bessel_i(Quad x, int order) {
  if (isnanq(x)) return x;
  if (fabsq(x) > 800) return order == 1 ? copysignq(HUGE_VALQ, x) : HUGE_VALQ;
  Quad term = order == 1 ? x / 2 : Quad(1), sum = term;
  for (int k = 1; fabsq(term) > fabsq(sum) * Quad(1e-33); k++) sum += term *= x * x / 4 / (Quad(k) * (k + order));
  return sum;
}
Quad quad_length(std::initializer_list<Quad> x) {
  Quad sum = 0;
  bool infinite = false;
  for (Quad v : x) sum += v * v, infinite = infinite || isinfq(v);
  return infinite ? HUGE_VALQ : sqrtq(sum);
}
Quad quad_sinpi(Quad x) {
  if (!finiteq(x)) return nanq("");
  Quad r = x - 2 * rintq(x / 2);
  return r == rintq(r) ? copysignq(0, x) : sinq(kQuadPi * r);
}
Quad quad_cospi(Quad x) {
  if (!finiteq(x)) return nanq("");
  Quad r = x - 2 * rintq(x / 2);
  return fabsq(r) == Quad(0.5) ? Quad(0) : cosq(kQuadPi * r);
}

const Reference kReferences[] = {
    {"acos", 1, [](const Quad* x) { return acosq(*x); }, -1, 1},
    {"acosh", 1, [](const Quad* x) { return acoshq(*x); }, 1, 10},
    {"asin", 1, [](const Quad* x) { return asinq(*x); }, -1, 1},
    {"asinh", 1, [](const Quad* x) { return asinhq(*x); }, -10, 10},
    {"atan", 1, [](const Quad* x) { return atanq(*x); }, -10, 10},
    {"atan2", 2, [](const Quad* x) { return atan2q(x[0], x[1]); }, -10, 10},
    {"atanh", 1, [](const Quad* x) { return atanhq(*x); }, -1, 1},
    {"cbrt", 1, [](const Quad* x) { return cbrtq(*x); }, -10, 10},
    {"cos", 1, [](const Quad* x) { return cosq(*x); }, -100, 100},
    {"cosh", 1, [](const Quad* x) { return coshq(*x); }, -90, 90},
    {"cospi", 1, [](const Quad* x) { return quad_cospi(*x); }, -10, 10},
    {"cyl_bessel_i0", 1, [](const Quad* x) { return quad_bessel_i(*x, 0); }, -90, 90},
    {"cyl_bessel_i1", 1, [](const Quad* x) { return quad_bessel_i(*x, 1); }, -90, 90},
    {"erf", 1, [](const Quad* x) { return erfq(*x); }, -5, 5},
    {"erfc", 1, [](const Quad* x) { return erfcq(*x); }, -5, 12},
    {"erfcinv", 1, [](const Quad* x) { return quad_erfcinv(*x); }, 0, 2},
    {"erfcx", 1, [](const Quad* x) { return quad_erfcx(*x); }, -9, 20},
    {"erfinv", 1, [](const Quad* x) { return quad_erfinv(*x); }, -1, 1},
    {"exp", 1, [](const Quad* x) { return expq(*x); }, -104, 90},
    {"exp10", 1, [](const Quad* x) { return powq(10, *x); }, -46, 39},
    {"exp2", 1, [](const Quad* x) { return powq(2, *x); }, -150, 129},
    {"expm1", 1, [](const Quad* x) { return expm1q(*x); }, -20, 90},
    {"fmod", 2, [](const Quad* x) { return fmodq(x[0], x[1]); }, -100, 100},
    {"hypot", 2, [](const Quad* x) { return hypotq(x[0], x[1]); }, -100, 100},
    {"j0", 1, [](const Quad* x) { return j0q(*x); }, -50, 50},
    {"j1", 1, [](const Quad* x) { return j1q(*x); }, -50, 50},
    {"lgamma", 1, [](const Quad* x) { return lgammaq(*x); }, -10, 50},
    {"log", 1, [](const Quad* x) { return logq(*x); }, 0, 10},
    {"log10", 1, [](const Quad* x) { return log10q(*x); }, 0, 10},
    {"log1p", 1, [](const Quad* x) { return log1pq(*x); }, -1, 10},
    {"log2", 1, [](const Quad* x) { return log2q(*x); }, 0, 10},
    {"norm3d", 3,
     [](const Quad* x) {
       return quad_length({x[0], x[1], x[2]});
     },
     -100, 100},
    {"norm4d", 4,
     [](const Quad* x) {
       return quad_length({x[0], x[1], x[2], x[3]});
     },
     -100, 100},
    {"normcdf", 1, [](const Quad* x) { return erfcq(-*x / sqrtq(2)) / 2; }, -14, 6},
    {"normcdfinv", 1, [](const Quad* x) { return -sqrtq(2) * quad_erfcinv(2 * *x); }, 0, 1},
    {"pow", 2, [](const Quad* x) { return powq(x[0], x[1]); }, -10, 10},
    {"rcbrt", 1, [](const Quad* x) { return 1 / cbrtq(*x); }, -10, 10},
    {"remainder", 2, [](const Quad* x) { return remainderq(x[0], x[1]); }, -100, 100},
    {"rhypot", 2,
     [](const Quad* x) {
       return 1 / quad_length({x[0], x[1]});
     },
     -100, 100},
    {"rnorm3d", 3,
     [](const Quad* x) {
       return 1 / quad_length({x[0], x[1], x[2]});
     },
     -100, 100},
    {"rnorm4d", 4,
     [](const Quad* x) {
       return 1 / quad_length({x[0], x[1], x[2], x[3]});
     },
     -100, 100},
    {"rsqrt", 1, [](const Quad* x) { return 1 / sqrtq(*x); }, 0, 10},
    {"sigmoid", 1, [](const Quad* x) { return 1 / (1 + expq(-*x)); }, -104, 20},
    {"sin", 1, [](const Quad* x) { return sinq(*x); }, -100, 100},
    {"sinh", 1, [](const Quad* x) { return sinhq(*x); }, -90, 90},
    {"sinpi", 1, [](const Quad* x) { return quad_sinpi(*x); }, -10, 10},
    {"tan", 1, [](const Quad* x) { return tanq(*x); }, -100, 100},
    {"tanh", 1, [](const Quad* x) { return tanhq(*x); }, -10, 10},
    {"tgamma", 1, [](const Quad* x) { return tgammaq(*x); }, -10, 40},
    {"y0", 1, [](const Quad* x) { return y0q(*x); }, 0, 50},
    {"y1", 1, [](const Quad* x) { return y1q(*x); }, 0, 50},
};

template <typename Float>
constexpr Type type_of_float() {
  return Halide::Float(sizeof(Float) * 8);
}

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

/// out[i] = name(in0[i], ...) for `count` elements.
template <typename Float>
std::vector<Float> evaluate(const std::string& name, const std::vector<std::vector<Float>>& in, int lanes,
                            const std::string& target = "host") {
  int count = static_cast<int>(in[0].size());
  Type type = type_of_float<Float>();
  Kernel kernel{"f", {}, elementwise("out", count, lanes, [&](Expr i) {
                  std::vector<Expr> args;
                  for (size_t k = 0; k < in.size(); k++) args.push_back(load(type, "in" + std::to_string(k), i));
                  return call(type, name, args);
                })};
  std::vector<void*> arguments;
  for (size_t k = 0; k < in.size(); k++) {
    kernel.arguments.push_back(buffer_argument("in" + std::to_string(k), type, count));
    arguments.push_back(const_cast<Float*>(in[k].data()));
  }
  kernel.arguments.push_back(buffer_argument("out", type, count));
  std::vector<Float> out(count);
  arguments.push_back(out.data());
  EXPECT_EQ(build(kernel, {.target = target})->call(arguments.data()), 0);
  return out;
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

double bound_of(const std::string& name, bool is_double) {
  for (const MathAccuracy& accuracy : math_accuracies()) {
    if (accuracy.name == name) return is_double ? accuracy.ulp_f64 : accuracy.ulp_f32;
  }
  ADD_FAILURE() << "no accuracy is stated for " << name;
  return 0;
}

template <typename Float>
void check_accuracy(const Reference& reference, int count, int lanes, const std::string& target = "host") {
  std::vector<std::vector<Float>> in;
  for (int k = 0; k < reference.arguments; k++) {
    in.push_back(samples<Float>(count, reference.low, reference.high, 17 + k));
    std::shuffle(in[k].begin(), in[k].begin() + (k == 0 ? 0 : 20), std::mt19937(k));
  }
  std::vector<Float> out = evaluate(reference.name, in, lanes, target);
  double worst = 0;
  int worst_at = 0;
  for (int i = 0; i < count; i++) {
    Quad x[4] = {};
    for (int k = 0; k < reference.arguments; k++) x[k] = in[k][i];
    double error = ulp_error(out[i], reference.value(x));
    if (error > worst) worst = error, worst_at = i;
  }
  bool is_double = sizeof(Float) == 8;
  std::string at;
  for (auto& values : in) at += fmt::format(" {:a}", values[worst_at]);
  if (getenv("TC_SHOW_ULP"))
    fmt::print("{:15} f{} lanes {:2} {}: {:.3f} at{} = {:a}\n", reference.name, is_double ? 64 : 32, lanes, target,
               worst, at, out[worst_at]);
  EXPECT_LE(worst, bound_of(reference.name, is_double)) << reference.name << (is_double ? " float64" : " float32")
                                                        << ", " << lanes << " lanes, at" << at << ": " << out[worst_at];
}

class MathAccuracyOf : public testing::TestWithParam<Reference> {};
TEST_P(MathAccuracyOf, StaysWithinItsBound) {
  check_accuracy<float>(GetParam(), 3000, 1);
  check_accuracy<float>(GetParam(), 12000, 16);
  check_accuracy<double>(GetParam(), 3000, 8);
}
INSTANTIATE_TEST_SUITE_P(All, MathAccuracyOf, testing::ValuesIn(kReferences),
                         [](const auto& info) { return std::string(info.param.name); });

/// The functions of which networks are made: a million points each, on every kind of vector hardware.
struct Hot {
  const char* name;
  double (*value)(double x);
  double low, high;
};
const Hot kHot[] = {
    {"exp", ::exp, -104, 90},    {"exp2", ::exp2, -150, 129},
    {"exp10", ::exp10, -46, 39}, {"expm1", ::expm1, -20, 90},
    {"log", ::log, 0, 10},       {"log2", ::log2, 0, 10},
    {"log10", ::log10, 0, 10},   {"log1p", ::log1p, -1, 10},
    {"tanh", ::tanh, -10, 10},   {"sigmoid", [](double x) { return 1 / (1 + ::exp(-x)); }, -104, 20},
    {"erf", ::erf, -5, 5},       {"sin", ::sin, -1000, 1000},
    {"cos", ::cos, -1000, 1000},
};

double worst_error(const Hot& hot, const std::vector<float>& in, const std::vector<float>& out, float* at) {
  double worst = 0;
  for (size_t i = 0; i < in.size(); i++) {
    double error = ulp_error<float, double>(out[i], hot.value(in[i]));
    if (error > worst) worst = error, *at = in[i];
  }
  return worst;
}

class HotMath : public testing::TestWithParam<Hot> {};
TEST_P(HotMath, StaysWithinItsBoundOnAMillionPoints) {
  const Hot& hot = GetParam();
  for (const char* target : {"host", "x86-64-linux-sse41-avx-avx2-fma-f16c", "x86-64-linux-sse41", "x86-64-linux"}) {
    if (!host_can_run(*parse_target(target))) continue;
    std::vector<float> in = samples<float>(1 << 20, hot.low, hot.high, 5);
    float at = 0;
    double worst = worst_error(hot, in, evaluate<float>(hot.name, {in}, 16, target), &at);
    if (getenv("TC_SHOW_ULP")) fmt::print("{:8} {:40} {:.3f} at {:a}\n", hot.name, target, worst, at);
    EXPECT_LE(worst, bound_of(hot.name, false)) << hot.name << " at " << at << " on " << target;
  }
}
INSTANTIATE_TEST_SUITE_P(All, HotMath, testing::ValuesIn(kHot),
                         [](const auto& info) { return std::string(info.param.name); });

/// The scalar and the vector form of a function give the same bits.
TEST(Math, ScalarAndVectorFormsAgree) {
  for (const Hot& hot : kHot) {
    std::vector<float> in = samples<float>(20000, hot.low, hot.high, 9);
    std::vector<float> scalar = evaluate<float>(hot.name, {in}, 1), vector = evaluate<float>(hot.name, {in}, 16);
    for (size_t i = 0; i < in.size(); i++) {
      if (std::isnan(scalar[i]) && std::isnan(vector[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(scalar[i]), std::bit_cast<uint32_t>(vector[i])) << hot.name << " of " << in[i];
    }
  }
}

/// Everything whose accuracy is stated has a reference above, or is exact.
TEST(Math, EveryStatedAccuracyIsMeasured) {
  for (const MathAccuracy& accuracy : math_accuracies()) {
    bool measured = accuracy.ulp_f32 == 0 || accuracy.ulp_f32 == 0.5 || accuracy.name == "jn" || accuracy.name == "yn";
    for (const Reference& reference : kReferences) measured = measured || accuracy.name == reference.name;
    EXPECT_TRUE(measured) << accuracy.name;
  }
}

TEST(Math, BesselFunctionsOfAnyOrder) {
  std::vector<float> in = samples<float>(2000, 0.1, 30, 3);
  for (const char* name : {"jn", "yn"}) {
    Kernel kernel{"f",
                  {buffer_argument("in", Float(32), 2000), buffer_argument("out", Float(32), 2000)},
                  elementwise("out", 2000, 8, [&](Expr i) {
                    return call(Float(32), name, {Expr(3), load(Float(32), "in", i)});
                  })};
    std::vector<float> out(2000);
    void* arguments[] = {in.data(), out.data()};
    ASSERT_EQ(build(kernel)->call(arguments), 0);
    for (size_t i = 0; i < in.size(); i++) {
      Quad truth = name[0] == 'j' ? jnq(3, in[i]) : ynq(3, in[i]);
      EXPECT_LE(ulp_error<float>(out[i], truth), bound_of(name, false)) << name << " of " << in[i];
    }
  }
}

/// Results that C's function gives exactly, NaNs included.
template <typename Out, typename In>
void check_exact(const char* name, Out (*expected)(In)) {
  std::vector<In> in = samples<In>(4000, -100, 100, 21);
  for (int lanes : {1, 16}) {
    Type type = type_of_float<In>(), result = halide_type_of<Out>();
    Kernel kernel{"f",
                  {buffer_argument("in", type, 4000), buffer_argument("out", result, 4000)},
                  elementwise("out", 4000, lanes, [&](Expr i) { return call(result, name, {load(type, "in", i)}); })};
    std::vector<std::conditional_t<std::is_same_v<Out, bool>, uint8_t, Out>> out(4000);  // not vector<bool>
    void* arguments[] = {in.data(), out.data()};
    ASSERT_EQ(build(kernel)->call(arguments), 0);
    for (size_t i = 0; i < in.size(); i++) {
      Out want = expected(in[i]);
      bool same = Out(out[i]) == want || (want != want && out[i] != out[i]);
      ASSERT_TRUE(same && std::signbit(double(out[i])) == std::signbit(double(want)))
          << name << " of " << in[i] << " is " << +out[i] << ", not " << +want;
    }
  }
}

TEST(Math, ExactFunctionsOfOneArgument) {
  check_exact<float, float>("floor", ::floorf);
  check_exact<double, double>("floor", ::floor);
  check_exact<float, float>("ceil", ::ceilf);
  check_exact<float, float>("trunc", ::truncf);
  check_exact<float, float>("rint", ::rintf);
  check_exact<float, float>("nearbyint", ::nearbyintf);
  check_exact<float, float>("round", ::roundf);
  check_exact<double, double>("round", ::round);
  check_exact<float, float>("fabs", ::fabsf);
  check_exact<float, float>("sqrt", [](float x) { return x < 0 ? -std::nanf("") : ::sqrtf(x); });
  check_exact<float, float>("logb", ::logbf);
  check_exact<int32_t, float>("ilogb", [](float x) { return ::ilogbf(x); });
  check_exact<int64_t, float>("llrint", [](float x) { return int64_t(::llrintf(x)); });
  check_exact<int64_t, double>("llround", [](double x) { return int64_t(::llround(x)); });
  check_exact<bool, float>("isnan", [](float x) { return std::isnan(x); });
  check_exact<bool, float>("isinf", [](float x) { return std::isinf(x); });
  check_exact<bool, float>("isfinite", [](float x) { return std::isfinite(x); });
  check_exact<bool, double>("signbit", [](double x) { return std::signbit(x); });
}

}  // namespace
}  // namespace tc::cpu
