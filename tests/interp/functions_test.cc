#include "tc/interp/functions.h"

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

INSTANTIATE_TEST_SUITE_P(All, OracleFunction, ::testing::ValuesIn(testing::math_references()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::interp
