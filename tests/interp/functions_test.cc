#include "tc/interp/functions.h"
#include "tc/interp/bounded.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/common/math_reference.h"

namespace tc::interp {
namespace {

using testing::MathReference;
using testing::Quad;

/// How far the oracle may be from the truth, in units of float64's last place: nothing beside a float32's.
constexpr double kBound = 4;

class OracleFunction : public ::testing::TestWithParam<MathReference> {};

TEST_P(OracleFunction, AgreesWithQuadruplePrecision) {
  const MathReference& reference = GetParam();
  const RealFunction* function = find_real_function(reference.name);
  ASSERT_NE(function, nullptr);
  ASSERT_EQ(function->arity, reference.arguments);
  constexpr int kCount = 20000;
  std::vector<std::vector<double>> in;
  for (int k = 0; k < reference.arguments; ++k) {
    in.push_back(testing::samples<double>(kCount, reference.low, reference.high, 31 + k));
    std::shuffle(in[k].begin(), in[k].begin() + (k == 0 ? 0 : 20), std::mt19937(k));
  }
  double worst = 0;
  std::string at;
  for (int i = 0; i < kCount; ++i) {
    Quad wide[4] = {};
    double narrow[4] = {};
    for (int k = 0; k < reference.arguments; ++k) wide[k] = narrow[k] = in[k][i];
    const double got = function->compute(ScalarType::kFloat64, narrow);
    const double error = testing::ulp_error<double>(got, reference.value(wide));
    if (error <= worst) continue;
    worst = error;
    at = fmt::format("{:a} {:a} gives {:a}", narrow[0], narrow[1], got);
  }
  if (std::getenv("TC_SHOW_ULP")) fmt::print("{:15} {:.3f} at {}\n", reference.name, worst, at);
  EXPECT_LE(worst, kBound) << at;
}

/// Where an interval spans whole waves, its ends and its middle may all have one value.
TEST(Bounded, WavesBetweenTheEndsOfAnIntervalCount) {
  const auto bound = [](const char* name, Bounded x, Bounded y = {}) {
    const Bounded arguments[] = {x, y, {}, {}};
    return bounded::call(*find_real_function(name), ScalarType::kFloat64, arguments, default_accuracy);
  };
  EXPECT_GE(bound("sinpi", {0x1p33, 16}).error, 1);
  EXPECT_LE(bound("sinpi", {0x1p33, 0x1p-10}).error, 0.01);
  EXPECT_GE(bound("cospi", {0.5, 2}).error, 1);
  EXPECT_FALSE(bound("tan", {1, 4}).known());
  EXPECT_TRUE(bound("tan", {1, 0.01}).known());
  EXPECT_FALSE(bound("tgamma", {-2.5, 2}).known());
  EXPECT_FALSE(bound("fmod", {10, 6}, {2, 0}).known());
  EXPECT_FALSE(bound("remainder", {10, 6}, {2, 0}).known());
  EXPECT_FALSE(bound("fmod", {10, 0}, {0.5, 1}).known());
  EXPECT_EQ(bound("fmod", {10.5, 0}, {4, 0}).error, 0);
  EXPECT_TRUE(bound("fmod", {10.5, 0.125}, {4, 0}).known());
  const MixedFunction& bessel = *find_mixed_function("jn");
  EXPECT_FALSE(bounded::call(bessel, ScalarType::kFloat64, {9, 7}, {1, true}, default_accuracy).known());
  EXPECT_FALSE(bound("log", {-0x1p-20, 0x1p-10}).known()) << "a NaN, or none";
}

INSTANTIATE_TEST_SUITE_P(All, OracleFunction, ::testing::ValuesIn(testing::math_references()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::interp
