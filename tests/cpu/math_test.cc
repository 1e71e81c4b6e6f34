#include "tc/cpu/math.h"

#include <gtest/gtest.h>
#include <math.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

#include "kernels.h"
#include "tc/cpu/target.h"
#include "tests/common/math_reference.h"

namespace tc::cpu {
namespace {

using namespace Halide;
using testing::MathReference;
using testing::Quad;
using testing::samples;
using testing::ulp_error;

template <typename Float>
Type type_of_float() {
  return Halide::Float(sizeof(Float) * 8);
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

double bound_of(const std::string& name, bool is_double) {
  for (const MathAccuracy& accuracy : math_accuracies()) {
    if (accuracy.name == name) return is_double ? accuracy.ulp_f64 : accuracy.ulp_f32;
  }
  ADD_FAILURE() << "no accuracy is stated for " << name;
  return 0;
}

template <typename Float>
void check_accuracy(const MathReference& reference, int count, int lanes, const std::string& target = "host") {
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

class MathAccuracyOf : public ::testing::TestWithParam<MathReference> {};
TEST_P(MathAccuracyOf, StaysWithinItsBound) {
  check_accuracy<float>(GetParam(), 3000, 1);
  check_accuracy<float>(GetParam(), 12000, 16);
  check_accuracy<double>(GetParam(), 3000, 8);
}
INSTANTIATE_TEST_SUITE_P(All, MathAccuracyOf, ::testing::ValuesIn(tc::testing::math_references()),
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

class HotMath : public ::testing::TestWithParam<Hot> {};
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
INSTANTIATE_TEST_SUITE_P(All, HotMath, ::testing::ValuesIn(kHot),
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
    for (const MathReference& reference : testing::math_references())
      measured = measured || accuracy.name == reference.name;
    EXPECT_TRUE(measured) << accuracy.name;
  }
}

/// docs/language.md says of every function what the code says.
TEST(Math, TheDocumentationStatesTheseAccuracies) {
  std::ifstream file(TC_SOURCE_DIR "/docs/language.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const MathAccuracy& accuracy : math_accuracies()) {
    const std::string row = fmt::format("\n| `{}` | {} | {} | ", accuracy.name, accuracy.ulp_f32, accuracy.ulp_f64);
    EXPECT_NE(text.find(row), std::string::npos) << "docs/language.md lacks" << row;
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
