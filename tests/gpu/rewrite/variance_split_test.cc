#include "tc/gpu/rewrite/variance_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tc/gpu/strategy/prepare.h"
#include "tc/interp/compare.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Sums of squares of distances from a mean, in parts that blocks hold.
namespace tc::testing {
namespace {

constexpr char kMoments[] = R"(
def moments(float(N,K) I) -> (mean, var) {
  mean(n) +=! I(n,k)
  mean(n) = mean(n) / K
  var(n) +=! (I(n,k) - mean(n)) * (I(n,k) - mean(n))
  var(n) = var(n) / K
})";

/// A device on which a few thousand instances are worth a launch.
gpu::Device small_device() {
  gpu::Device device;
  device.processors = 8;
  device.instances_of_launch = 512;
  return device;
}

/// Temporaries that split_variances() makes.
size_t temporaries_of(const ir::Program& program, const gpu::Device& device = small_device()) {
  return gpu::split_variances(program, device).program.tensors.size() - program.tensors.size();
}

TEST(Moments, OfRowsThatNoBlockHoldsReadThemOnce) {
  for (const int64_t k : {8192, 12000, 20011}) {
    SCOPED_TRACE(k);
    const ir::Program program = specialised_from(kMoments, {{"N", 3}, {"K", k}});
    EXPECT_EQ(temporaries_of(program), 4U);
    EXPECT_EQ(faults_of(program, small_device()), "");
  }
  const ir::Program program = specialised_from(kMoments, {{"N", 3}, {"K", 12000}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, small_device());
  ASSERT_TRUE(mapping);
  tile::Report report;
  ASSERT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
  int64_t bytes = 0;
  for (const tile::Counters& counters : report.counters) bytes += counters.global_bytes_read;
  EXPECT_LE(bytes, 3 * 12000 * 4 + 1000);
}

TEST(Moments, AreFoundHoweverTheyAreWritten) {
  for (const char* text :
       {"def f(float(N,K) I) -> (m, v) { m(n) +=! I(n,k)  m(n) = m(n) / K  v(n) +=! pow(m(n) - I(n,k), 2.0) }",
        "def f(half(N,K) I) -> (v) { float m(i) +=! I(i,j)  m(n) = m(n) / K  v(a) +=! d * d where d = I(a,b) - m(a) }",
        "def f(double(N,K) I) -> (m, v) { m(n) += I(n,k)  v(n) += pow(I(n,k) - m(n) / K, 2.0) }",
        "def f(float(N,K) I, float(N) s) -> (m, v) { m(n) +=! I(n,k) * s(n)  m(n) = m(n) / K "
        "v(n) +=! (I(n,k) * s(n) - m(n)) * (I(n,k) * s(n) - m(n)) }",
        "def f(float(N,K) I) -> (s, m, v) { s(n) +=! I(n,k)  m(n) = 0.0001 * s(n)  v(n) +=! pow(I(n,k) - m(n), 2.0) }",
        "def f(half(N,K) I) -> (m, h, v) { float m(n) +=! I(n,k)  h(n) = half(m(n) / K)  "
        "float v(n) +=! pow(float(I(n,k)) - h(n), 2.0) }"}) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, {{"N", 1}, {"K", 9000}});
    EXPECT_EQ(temporaries_of(program), 4U);
    EXPECT_EQ(faults_of(program, small_device()), "");
  }
}

TEST(Moments, OverSeveralDimensions) {
  const std::string text = R"(
    def batchnorm(float eps, float(N,C,H,W) I, float(C) gamma) -> (O, mean, var) {
      mean(c) +=! I(nn,c,hh,ww)
      mean(c) = mean(c) / (N * H * W)
      centered(n,c,h,w) = I(n,c,h,w) - mean(c)
      var(c) +=! centered(nn,c,hh,ww) * centered(nn,c,hh,ww)
      var(c) = var(c) / (N * H * W)
      O(n,c,h,w) = centered(n,c,h,w) * rsqrt(var(c) + eps) * gamma(c)
    })";
  for (const auto& [n, h, w] : {std::array<int64_t, 3>{5, 40, 40}, {1, 72, 90}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", n, h, w));
    const ir::Program program = specialised_from(text, {{"N", n}, {"C", 2}, {"H", h}, {"W", w}});
    const Result<gpu::Prepared> prepared = gpu::prepare(program, {}, small_device());
    ASSERT_TRUE(prepared);
    EXPECT_NE(prepared->program.find_tensor("mean_center"), nullptr);
    EXPECT_EQ(faults_of(program, small_device()), "");
  }
}

TEST(Moments, OfALargeBatchAreUsedByALaunchOfElementsFromTheEnd) {
  const std::string text = R"(
    def f(float(N,C,K) I) -> (O, m, v) {
      m(c) +=! I(nn,c,kk)
      m(c) = m(c) / (N * K)
      v(c) +=! (I(nn,c,kk) - m(c)) * (I(nn,c,kk) - m(c))
      O(n,c,k) = (I(n,c,k) - m(c)) * rsqrt(v(c))
    })";
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, {{"N", 32}, {"C", 256}, {"K", 3136}}));
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->kernels.size(), 3U);
  EXPECT_EQ(mapping->kernels[2].recipe, gpu::Recipe::kElements);
  EXPECT_NE(tile::to_text(mapping->program.kernels[2]).find("31 - block_z"), std::string::npos)
      << tile::to_text(mapping->program.kernels[2]);
}

TEST(Moments, AreLeftWhereTheyAreSomethingElse) {
  for (const char* text :
       {// Integers, other values, another range, a product of different factors, no sum.
        "def f(int32(N,K) I) -> (m, v) { m(n) +=! I(n,k)  m(n) = m(n) / K  v(n) +=! (I(n,k)-m(n)) * (I(n,k)-m(n)) }",
        "def f(float(N,K) I) -> (m, v) { m(n) +=! I(n,k)  v(n) +=! (2.0*I(n,k) - m(n)) * (2.0*I(n,k) - m(n)) }",
        "def f(float(N,K) I) -> (m, v) { m(n) +=! I(n,k)  v(n) +=! pow(I(n,k) - m(n), 2.0) where k in 1:K }",
        "def f(float(N,K) I) -> (m, v) { m(n) +=! I(n,k)  v(n) +=! (I(n,k) - m(n)) * (I(n,k) + m(n)) }",
        "def f(float(N,K) I) -> (m, v) { m(n) max=! I(n,k)  v(n) +=! (I(n,k) - m(n)) * (I(n,k) - m(n)) }",
        // What is subtracted does not follow the sum: an input, a clamped mean, one of another sign, of one row for
        // all, of some rows only, or with an input's sign.
        "def f(float(N,K) I, float(N) c) -> (m, v) { m(n) +=! I(n,k)  v(n) +=! (I(n,k) - c(n)) * (I(n,k) - c(n)) }",
        "def f(float(N,K) I) -> (m, v) { m(n) +=! I(n,k)  m(n) = min(m(n) / K, 100.0)  v(n) +=! pow(I(n,k) - m(n), "
        "2.0) }",
        "def f(float(N,K) I) -> (m, v) { m(n) +=! I(n,k)  m(n) = m(n) * -0.5  v(n) +=! pow(I(n,k) - m(n), 2.0) }",
        "def f(float(N,K) I) -> (m, v) { m(n) +=! I(n,k)  v(n) +=! pow(I(n,k) - m(0), 2.0) where n in 0:N }",
        "def f(float(N,K) I) -> (s, m, v) { s(n) +=! I(n,k)  m(n) = 0 where n in 0:N  m(n) = s(n) where n in 1:N  "
        "v(n) +=! pow(I(n,k) - m(n), 2.0) }",
        "def f(float(N,K) I, float(N) c) -> (m, v) { m(n) +=! I(n,k)  m(n) = m(n) / c(n)  "
        "v(n) +=! pow(I(n,k) - m(n), 2.0) }",
        // What is subtracted is another for each value.
        "def f(float(N,K) I, float(K) c) -> (m, v) { m(n) +=! I(n,k)  v(n) +=! pow(I(n,k) - c(k), 2.0) }",
        // The values change in between.
        "def f(float(N,K) I) -> (J, m, v) { J(n,k) = I(n,k) * 2  m(n) +=! J(n,k)  J(n,k) = I(n,k) + 1 "
        "v(n) +=! (J(n,k) - m(n)) * (J(n,k) - m(n)) }"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(temporaries_of(specialised_from(text, {{"N", 3}, {"K", 12000}})), 0U);
  }
  // A block holds the rows, and there are enough; there is too little to do; the reduction does not run along memory.
  EXPECT_EQ(temporaries_of(specialised_from(kMoments, {{"N", 8}, {"K", 12000}})), 0U);
  EXPECT_EQ(temporaries_of(specialised_from(kMoments, {{"N", 3}, {"K", 12000}}), gpu::Device{}), 0U);
  EXPECT_EQ(temporaries_of(specialised_from(
                "def f(float(K,N) I) -> (m, v) { m(n) +=! I(k,n)  v(n) +=! (I(k,n) - m(n)) * (I(k,n) - m(n)) }",
                {{"N", 3}, {"K", 12000}})),
            0U);
}

TEST(Moments, AreLeftAloneByStrictKernelsAndByPartsThatAreAskedFor) {
  const ir::Program program = specialised_from(kMoments, {{"N", 3}, {"K", 12000}});
  options::MappingOptions strict, parts;
  strict.strict = true;
  parts.split_reduction = 5;
  for (const options::MappingOptions& options : {strict, parts}) {
    const Result<gpu::Prepared> prepared = gpu::prepare(program, options, small_device());
    ASSERT_TRUE(prepared);
    EXPECT_EQ(prepared->program.find_tensor("mean_center"), nullptr);
  }
}

/// A text's results of one row of values: what is wrong on the simulator in comparison with the oracle.
struct Outcome {
  std::string wrong;
  double mean = 0, variance = 0;
};

Outcome run_on(const std::vector<double>& values, const char* text = kMoments) {
  const ir::Program program = specialised_from(text, {{"N", 1}, {"K", static_cast<int64_t>(values.size())}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, small_device());
  if (!mapping) return {mapping.error().to_string()};
  interp::Environment data = data_for(program, 1);
  for (size_t i = 0; i < values.size(); ++i) data.at("I").floats[i] = static_cast<float>(values[i]);
  const auto oracle = interp::run_bounded(program, data);
  const auto results = simulated(program, *mapping, data);
  if (!oracle || !results) return {(oracle ? results.error() : oracle.error()).to_string()};
  Outcome run;
  for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
    if (!comparison.agrees) run.wrong += comparison.sentence + "\n";
  }
  run.mean = results->at("mean").floats[0];
  run.variance = results->at("var").floats[0];
  return run;
}

std::vector<double> normal(double mean, double deviation, size_t size) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> draw(mean, deviation);
  std::vector<double> values(size);
  for (double& v : values) v = static_cast<float>(draw(random));
  return values;
}

TEST(Moments, OfInfinitiesAndNaNsAreWhatTheSourceSays) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<size_t, double>> cases[] = {
      {{5000, std::nan("")}}, {{0, kInfinity}}, {{9000, -kInfinity}}, {{3, kInfinity}, {9000, -kInfinity}}};
  for (const auto& special : cases) {
    std::vector<double> values = normal(0, 1, 12000);
    for (const auto& [at, value] : special) values[at] = value;
    const Outcome run = run_on(values);
    EXPECT_EQ(run.wrong, "");
    EXPECT_TRUE(std::isnan(run.variance)) << special[0].second;
  }
  // Sums that overflow: of all, and already of parts.
  for (const double large : {1e35, 3e38}) {
    const Outcome run = run_on(std::vector<double>(12000, large));
    EXPECT_EQ(run.wrong, "");
    EXPECT_EQ(run.mean, kInfinity);
    EXPECT_EQ(run.variance, kInfinity);
  }
  // Distances from what stays finite.
  std::vector<double> values = normal(0, 1, 12000);
  values[5000] = kInfinity;
  for (const char* text :
       {"def f(float(N,K) I, float(N) c) -> (mean, var) { mean(n) +=! I(n,k)  "
        "var(n) +=! (I(n,k) - c(n)) * (I(n,k) - c(n)) }",
        "def f(float(N,K) I) -> (mean, var) { mean(n) +=! I(n,k)  mean(n) = min(mean(n) / K, 100.0)  "
        "var(n) +=! pow(I(n,k) - mean(n), 2.0) }"}) {
    const Outcome run = run_on(values, text);
    EXPECT_EQ(run.wrong, "");
    EXPECT_EQ(run.variance, kInfinity) << text;
  }
}

/// The variance of floats by Welford's recurrence in float, and exactly.
float welford(const std::vector<double>& values) {
  float mean = 0, squares = 0, count = 0;
  for (const double v : values) {
    const auto x = static_cast<float>(v);
    const float before = x - mean;
    mean += before / ++count;
    squares += before * (x - mean);
  }
  return squares / count;
}

double exact(const std::vector<double>& values) {
  long double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const long double mean = sum / static_cast<long double>(values.size());
  for (const double v : values) squares += (v - mean) * (v - mean);
  return static_cast<double>(squares / static_cast<long double>(values.size()));
}

TEST(Moments, AreAtLeastAsAccurateAsWelfords) {
  std::vector<double> outlier = normal(0, 1, 12000), steps = normal(0, 1, 12000);
  outlier[0] = 1e6;
  for (size_t i = 0; i < steps.size(); ++i) steps[i] += i < 6000 ? 1e4 : -1e4;
  for (const auto& values : {normal(1e4, 1, 12000), normal(1e6, 1, 12000), normal(0, 1e-3, 12000), outlier, steps}) {
    const Outcome run = run_on(values);
    EXPECT_EQ(run.wrong, "");
    const double truth = exact(values);
    // The source takes distances from a mean in float: its rounding is allowed.
    const double rounding = std::pow(run.mean * 0x1p-24, 2) + 1e-6 * truth;
    EXPECT_LE(std::fabs(run.variance - truth), std::max(std::fabs(welford(values) - truth), rounding)) << truth;
  }
}

}  // namespace
}  // namespace tc::testing
