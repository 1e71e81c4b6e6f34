#include "tc/gpu/strategy/split_exponentials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tc/gpu/strategy/prepare.h"
#include "tc/gpu/strategy/sums_of_powers.h"
#include "tc/interp/compare.h"
#include "tc/ir/specialise.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Maxima and sums of exponentials of distances from them, in parts.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// A device on which a few thousand instances are worth a launch.
gpu::Device device_of_columns() {
  gpu::Device device;
  device.processors = 8;
  device.instances_of_launch = 512;
  return device;
}

gpu::ExponentialSplit split_of(const ir::Program& program, const gpu::Device& device = device_of_columns()) {
  return gpu::split_exponentials(program, device, [](const ir::Program&, const std::string&) { return false; });
}

/// Temporaries that split_exponentials() makes.
size_t split_temporaries_of(const ir::Program& program, const gpu::Device& device = device_of_columns()) {
  return split_of(program, device).program.tensors.size() - program.tensors.size();
}

constexpr char kColumnsText[] = R"(
def f(float(N,D) I) -> (top, total) {
  top(d) max=! I(n,d)
  total(d) +=! exp(I(n,d) - top(d))
})";

struct SumSpelling {
  const char* name;
  const char* text;
  size_t temporaries = 2;
};

class ExponentialSpelling : public ::testing::TestWithParam<SumSpelling> {};

TEST_P(ExponentialSpelling, AgreesWithTheOracle) {
  for (const auto& [n, d] : {std::array<int64_t, 2>{1024, 16}, {1009, 16}, {1024, 13}, {515, 40}}) {
    SCOPED_TRACE(fmt::format("{} x {}", n, d));
    Sizes sizes;
    for (const std::string& size : program_from(GetParam().text).sizes)
      sizes[size] = size == "N" ? n : size == "D" ? d : 3;
    const ir::Program program = specialised_from(GetParam().text, sizes);
    EXPECT_EQ(split_temporaries_of(program), GetParam().temporaries);
    EXPECT_EQ(faults_of(program, device_of_columns()), "");
  }
}
INSTANTIATE_TEST_SUITE_P(
    Programs, ExponentialSpelling,
    ::testing::Values(
        SumSpelling{"Columns", kColumnsText},
        SumSpelling{"Halves",
                    "def f(half(N,D) I) -> (O) { top(d) max=! I(n,d)  float s(d) +=! exp(float(I(n,d)) - top(d)) "
                    "O(n,d) = half(exp(float(I(n,d)) - top(d)) / s(d)) }"},
        SumSpelling{
            "Middle",
            "def f(float(B,N,D) I) -> (top, s) { top(b,d) max=! I(b,n,d)  s(b,d) +=! exp(I(b,n,d) - top(b,d)) }"},
        SumSpelling{
            "Least",
            "def f(float(N,D) I) -> (least, s) { least(d) min=! I(n,d)  s(d) +=! exp2((least(d) - I(n,d)) * 0.5) }"},
        SumSpelling{
            "Scaled",
            "def f(float(N,D) I) -> (top, s) { top(d) max=! 0.25 * I(n,d)  s(d) +=! exp(I(n,d) * 0.25 - top(d)) }"},
        SumSpelling{
            "Weighted",
            "def f(float(N,D) I, float(N,D) W) -> (top, s, a) { top(d) max=! I(n,d)  s(d) +=! exp(I(n,d) - top(d)) "
            "a(e) +=! W(m,e) * exp(I(m,e) - top(e)) }",
            3},
        SumSpelling{"OfMore",
                    "def f(float(N,D) I, float(D) b) -> (top, s) { top(d) = b(d)  top(d) max= I(n,d) "
                    "s(d) +=! exp(I(n,d) - top(d)) }"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ExponentialSplit, ReadsColumnsOnce) {
  const ir::Program program = specialised_from(kColumnsText, {{"N", 4096}, {"D", 32}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, device_of_columns());
  ASSERT_TRUE(mapping);
  tile::Report report;
  ASSERT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
  int64_t bytes = 0;
  for (const tile::Counters& counters : report.counters) bytes += counters.global_bytes_read;
  EXPECT_LE(bytes, 4096 * 32 * 4 * 9 / 8);
}

TEST(ExponentialSplit, OfFewRowsIsAlongMemory) {
  const char* rows = "def f(float(D,N) I) -> (top, s) { top(d) max=! I(d,n)  s(d) +=! exp(I(d,n) - top(d)) }";
  const ir::Program softmax = specialised_from(
      "def f(half(D,N) I) -> (half(D,N) O) { top(d) max=! I(d,n)  float E(d,n) = exp(float(I(d,n)) - top(d)) "
      "float s(d) +=! E(d,n)  O(d,n) = half(E(d,n) / s(d)) }",
      {{"N", 20'000}, {"D", 3}});
  EXPECT_EQ(mapped(softmax, {}, device_of_columns())->kernels.size(), 3U);
  EXPECT_EQ(faults_of(softmax, device_of_columns()), "");
  for (const int64_t n : {20'000, 20'011}) {
    const ir::Program program = specialised_from(rows, {{"N", n}, {"D", 3}});
    EXPECT_EQ(split_temporaries_of(program), 2U);
    EXPECT_EQ(faults_of(program, device_of_columns()), "");
  }
}

/// Of very few columns, what many parts have made is put together in parts.
TEST(ExponentialSplit, PutsManyPartsTogetherInParts) {
  for (const int64_t n : {16'384, 16'411}) {
    const ir::Program program = specialised_from(kColumnsText, {{"N", n}, {"D", 2}});
    EXPECT_EQ(split_temporaries_of(program), 4U);
    EXPECT_EQ(faults_of(program, device_of_columns()), "");
  }
}

TEST(ExponentialSplit, LeavesWhatIsNoSumOfBoundedExponentials) {
  for (const char* text :
       {"def f(float(N,D) I) -> (top, s) { top(d) max=! I(n,d)  s(d) +=! exp(top(d) - I(n,d)) }",
        "def f(float(N,D) I) -> (top, s) { top(d) min=! I(n,d)  s(d) +=! exp(I(n,d) - top(d)) }",
        "def f(float(N,D) I) -> (top, s) { top(d) max=! I(n,d)  s(d) +=! I(n,d) - top(d) }",
        "def f(float(N,D) I) -> (top, s) { top(d) max=! I(n,d)  s(d) *=! exp(I(n,d) - top(d)) }",
        "def f(float(N,D) I) -> (top, s) { top(d) max=! I(n,d)  s(d) max=! exp(I(n,d) - top(d)) }",
        "def f(float(N,D) I) -> (top, s) { top(d) max=! I(n,d)  s(d) +=! exp(I(n,d) - top(0)) where d in 0:D }",
        // The maximum, or what it is of, changes in between.
        "def f(float(N,D) I) -> (top, s) { top(d) max=! I(n,d)  top(d) = top(d) - 1  s(d) +=! exp(I(n,d) - top(d)) }",
        "def f(float(N,D) I) -> (J, top, s) { J(n,d) = I(n,d)  top(d) max=! J(n,d)  J(n,d) = I(n,d) * 0.5 "
        "s(d) +=! exp(J(n,d) - top(d)) }",
        // Some have no part in the sum.
        "def f(float(N,D) I, bool(N,D) keep) -> (top, s) { top(d) max=! keep(n,d) ? I(n,d) : -inf "
        "s(d) +=! keep(n,d) ? exp(I(n,d) - top(d)) : 0.0 }"}) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, {{"N", 1024}, {"D", 16}});
    EXPECT_EQ(split_temporaries_of(program), 0U);
    EXPECT_EQ(faults_of(program, device_of_columns()), "");
  }
  EXPECT_EQ(split_temporaries_of(specialised_from(kColumnsText, {{"N", 1024}, {"D", 8192}})), 0U) << "columns enough";
}

TEST(ExponentialSplit, IsLeftToPartsThatAreAskedForAndToStrictKernels) {
  const ir::Program program = specialised_from(kColumnsText, {{"N", 1024}, {"D", 16}});
  options::MappingOptions strict, parts;
  strict.strict = true;
  parts.split_reduction = 5;
  for (const options::MappingOptions& options : {strict, parts}) {
    const Result<gpu::Prepared> prepared = gpu::prepare(program, options, device_of_columns());
    ASSERT_TRUE(prepared);
    for (const ir::Statement& s : prepared->program.statements) EXPECT_NE(s.id, "S1_parts_1") << s.id;
    EXPECT_EQ(difference(program, options, 1, device_of_columns()), "");
  }
}

/// Columns of infinities, NaN and numbers that are far apart: what the simulator has is what the oracle has.
/// A part whose values all lie beyond what a float16 holds has a maximum like any other: columns of a mask.
TEST(ExponentialSplit, OfWideHalvesHasTheirLimits) {
  const ir::Program program = specialised_from(
      "def f(bfloat16(N,D) I) -> (top, s) { top(d) max=! I(n,d)  float s(d) +=! "
      "exp(float(I(n,d)) - float(top(d))) }",
      {{"N", 1024}, {"D", 16}});
  EXPECT_GT(split_temporaries_of(program), 0U);
  interp::Environment data = data_for(program, 1);
  for (size_t i = 0; i < data.at("I").floats.size(); ++i) data.at("I").floats[i] = i % 3 == 0 ? -131072 : -262144;
  const Result<gpu::Mapping> mapping = mapped(program, {}, device_of_columns());
  ASSERT_TRUE(mapping);
  const Result<interp::Environment> results = simulated(program, *mapping, data), oracle = interp::run(program, data);
  ASSERT_TRUE(results && oracle);
  EXPECT_EQ(results->at("s").floats, oracle->at("s").floats);
}

TEST(ExponentialSplit, OfInfinitiesAndNaNIsWhatTheSourceSays) {
  constexpr int64_t kRows = 1024, kWidth = 16;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const int64_t width : {kWidth, int64_t{8192}}) {
    SCOPED_TRACE(width);
    const int64_t rows = width == kWidth ? kRows : 64;  // in parts, or a thread for each column
    const ir::Program program = specialised_from(kColumnsText, {{"N", rows}, {"D", width}});
    const Result<gpu::Mapping> mapping = mapped(program, {}, device_of_columns());
    ASSERT_TRUE(mapping);
    interp::Environment data = data_for(program, 1);
    const auto set = [&](int64_t column, int64_t first, int64_t last, double value) {
      for (int64_t n = first; n < last; ++n)
        data.at("I").floats[static_cast<size_t>(n * width + column)] = static_cast<float>(value);
    };
    set(0, 0, rows, -inf);
    set(1, 0, rows - 1, -inf);
    set(2, 1, rows, -inf);
    set(3, 0, rows / 2, -inf);
    set(4, rows / 2, rows / 2 + 1, inf);
    set(5, 0, rows, inf);
    set(6, 0, 1, nan);
    set(7, rows - 1, rows, nan);
    set(8, 0, rows / 2, -1e30);
    set(9, 0, rows, -1e30);
    set(10, rows - 1, rows, 1e30);
    set(11, 0, 2, 3e38);
    set(12, 0, rows, -3e38);
    set(13, 0, rows, -inf);
    set(13, rows / 2, rows / 2 + 1, nan);
    const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
    const Result<interp::Environment> results = simulated(program, *mapping, data);
    ASSERT_TRUE(oracle && results);
    for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
      EXPECT_TRUE(comparison.agrees) << comparison.sentence;
      EXPECT_GT(comparison.elements, comparison.undecidable * 2) << comparison.sentence;
    }
    EXPECT_TRUE(std::isnan(results->at("total").floats[0]));
    EXPECT_EQ(results->at("total").floats[2], 1);
    EXPECT_EQ(results->at("total").floats[9], static_cast<double>(rows));
    EXPECT_TRUE(std::isnan(results->at("total").floats[13]));
  }
}

/// The functions that make powers in a statement's value.
std::string powers_in(const ir::Program& program, const std::string& tensor) {
  struct Finder : Halide::Internal::IRVisitor {
    std::string names;
    using IRVisitor::visit;
    void visit(const Halide::Internal::Call* op) override {
      if (op->name.find("exp") != std::string::npos) names += op->name + " ";
      IRVisitor::visit(op);
    }
  } finder;
  for (const ir::Statement& s : program.statements) {
    if (s.tensor == tensor) s.value.accept(&finder);
  }
  return finder.names;
}

ir::Program by_powers(const std::string& text) {
  return gpu::sums_of_powers(specialised_from(text, {{"N", 64}, {"D", 70}}),
                             [](const ir::Program&, const std::string& tensor) { return tensor == "product"; });
}

TEST(SumsOfPowers, AreOfTwoWhereNobodySeesTheDifference) {
  const std::string f = "def f(float(N,D) I) -> ", h = "def f(half(N,D) I) -> ";
  const std::string rows = "{ t(n) max=! I(n,d)  s(n) +=! exp(I(n,d) - t(n))", short_power = "tc.exp2_for_float16 ";
  EXPECT_EQ(powers_in(by_powers(f + "(t, s) " + rows + " }"), "s"), short_power);
  const ir::Program narrow =
      by_powers(h +
                "(half(N,D) O) { t(n) max=! I(n,d)  float E(n,d) = exp(float(I(n,d)) - t(n))  float s(n) +=! E(n,d)  "
                "O(n,d) = half(E(n,d) / s(n)) }");
  EXPECT_EQ(powers_in(narrow, "E"), "exp2 ");
  const ir::Program apart = by_powers(
      f + "(t, s, O) { t(d) max=! I(n,d)  s(d) +=! exp((I(n,d) - t(d)) * 3.0)  O(n,d) = exp(I(n,d) - t(d)) / s(d) }");
  EXPECT_EQ(powers_in(apart, "s"), short_power);
  EXPECT_EQ(powers_in(apart, "O"), "exp ");
  EXPECT_EQ(powers_in(by_powers(h + "(half(N,D) O) { t(d) max=! I(n,d) "
                                    "O(n,d) = half(exp(float(I(n,d)) - t(d)) * 1e-30) }"),
                      "O"),
            "exp2 ");
}

TEST(SumsOfPowers, KeepOthers) {
  const std::string f = "def f(float(N,D) I, float(N,D) w) -> ";
  const std::string rows = "{ t(n) max=! I(n,d)  s(n) +=! exp(I(n,d) - t(n))  ";
  for (const std::string& text :
       {f + "(t, s, O) " + rows + "O(n,d) = exp(I(n,d) - t(n)) / s(n) }",
        f + "(t, s) { t(n) max=! I(n,d)  s(n) +=! w(n,d) * exp(I(n,d) - t(n)) }",
        f + "(t, s) { t(n) max=! I(n,d)  s(n) +=! exp(I(n,d) - t(n)) * I(n,d) }",
        f + "(t, s) { t(n) max=! I(n,d)  s(n) +=! exp(I(n,d) - t(n)) where d in 0:60 }",
        f + "(t, s) { t(n) max=! w(n,d)  s(n) +=! exp(I(n,d) - t(n)) }",
        f + "(t, s) { t(n) max=! I(n,d)  t(n) = t(n) + 5  s(n) +=! exp(I(n,d) - t(n)) }",
        f + "(t, E, s) { t(n) max=! I(n,d)  E(n,d) = exp(I(n,d) - t(n))  s(n) +=! E(n,d) }",
        f + "(t, s) { product(n,d) = I(n,d)  t(n) max=! product(n,d)  s(n) +=! exp(product(n,d) - t(n)) }"}) {
    SCOPED_TRACE(text);
    const ir::Program program = by_powers(text);
    EXPECT_EQ(powers_in(program, "E") + powers_in(program, "s"), "exp ");
  }
}

/// Real numbers that are far apart, too, are within the oracle's bound.
TEST(SumsOfPowers, AreWithinTheBound) {
  for (const char* text :
       {"def f(half(N,D) I) -> (half(N,D) O) { t(n) max=! I(n,d)  float E(n,d) = exp(float(I(n,d)) - t(n)) "
        "float s(n) +=! E(n,d)  O(n,d) = half(E(n,d) / s(n)) }",
        "def f(half(N,D) I) -> (half(N,D) O) { t(d) max=! I(n,d)  float E(n,d) = exp(float(I(n,d)) - t(d)) "
        "float s(d) +=! E(n,d)  O(n,d) = half(E(n,d) / s(d)) }",
        "def f(float(N,D) I) -> (t, s) { t(d) max=! I(n,d)  s(d) +=! exp(I(n,d) - t(d)) }",
        "def f(float(N,D) I) -> (t, s) { t(n) max=! I(n,d)  s(n) +=! exp((I(n,d) - t(n)) * 0.7) }",
        "def f(bfloat16(N,D) I) -> (bfloat16(N,D) O) { t(d) max=! I(n,d) "
        "O(n,d) = bfloat16(exp(float(I(n,d)) - t(d))) }"}) {
    for (const double range : {1.0, 20.0, 100.0}) {
      SCOPED_TRACE(fmt::format("{} {}", text, range));
      const ir::Program program = specialised_from(text, {{"N", 515}, {"D", 40}});
      const Result<gpu::Mapping> mapping = mapped(program, {}, device_of_columns());
      ASSERT_TRUE(mapping);
      interp::Environment data = data_for(program, 1);
      std::mt19937_64 random(7);
      std::uniform_real_distribution<double> draw(-range, range);
      const bool narrow = program.tensor("I").type.bits() == 16;
      for (double& value : data.at("I").floats) {
        value = narrow ? std::round(draw(random) * 8) / 8 : static_cast<float>(draw(random));
        if (narrow && std::fabs(value) > 16) value = std::round(value);
      }
      const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
      const Result<interp::Environment> results = simulated(program, *mapping, data);
      ASSERT_TRUE(oracle && results);
      for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
        EXPECT_TRUE(comparison.agrees) << comparison.sentence;
      }
    }
  }
}

struct ColumnCase {
  const char* name;
  const char* text;
  Sizes sizes;
  double passes;  ///< over the input, results counted
};

class ColumnTimes : public ::testing::TestWithParam<ColumnCase> {};

/// By estimate, whatever the extents: a little more than what memory takes, and 2 us for each of a few launches.
TEST_P(ColumnTimes, TakeAboutAsLongAsMemory) {
  const ColumnCase& c = GetParam();
  const ir::Program program = specialised_from(c.text, c.sizes);
  const Result<gpu::Mapping> mapping = mapped(program);
  ASSERT_TRUE(mapping);
  double bytes = program.tensor("I").type.bytes();
  for (const int64_t extent : ir::constant_shape(program.tensor("I"))) bytes *= static_cast<double>(extent);
  EXPECT_LE(gpu::estimated_us(*mapping), 1.45 * c.passes * bytes / gpu::Device{}.memory_bytes_per_us + 10)
      << gpu::report(*mapping);
}

constexpr char kSoftmaxText[] = R"(
def f(half(N,D) I) -> (half(N,D) O) {
  top(d) max=! I(n,d)
  float E(n,d) = exp(float(I(n,d)) - top(d))
  total(d) +=! E(n,d)
  O(n,d) = half(E(n,d) / total(d))
})";
constexpr char kSumText[] = "def f(float(N,D) I) -> (s) { s(d) +=! I(n,d) }";
constexpr char kLogText[] = R"(
def f(float(N,D) I) -> (L) {
  top(d) max=! I(n,d)
  total(d) +=! exp(I(n,d) - top(d))
  L(d) = log(total(d)) + top(d)
})";

INSTANTIATE_TEST_SUITE_P(
    Sizes, ColumnTimes,
    ::testing::Values(ColumnCase{"Softmax", kSoftmaxText, {{"N", 32768}, {"D", 4096}}, 3},
                      ColumnCase{"SoftmaxOfOddColumns", kSoftmaxText, {{"N", 32771}, {"D", 4099}}, 3},
                      ColumnCase{"SoftmaxOfFewColumns", kSoftmaxText, {{"N", 1'000'003}, {"D", 64}}, 3},
                      ColumnCase{"SoftmaxOfManyColumns", kSoftmaxText, {{"N", 64}, {"D", 1'000'000}}, 3},
                      ColumnCase{"SoftmaxOfFewElements", kSoftmaxText, {{"N", 1009}, {"D", 33}}, 3},
                      ColumnCase{"SoftmaxOfFewLongRows",
                                 "def f(half(D,N) I) -> (half(D,N) O) { top(d) max=! I(d,n) "
                                 "float E(d,n) = exp(float(I(d,n)) - top(d))  total(d) +=! E(d,n) "
                                 "O(d,n) = half(E(d,n) / total(d)) }",
                                 {{"N", 1'000'000}, {"D", 16}},
                                 3},
                      ColumnCase{"Logarithm", kLogText, {{"N", 8192}, {"D", 8192}}, 1},
                      ColumnCase{"LogarithmOfFewElements", kLogText, {{"N", 1000}, {"D", 33}}, 1},
                      ColumnCase{"LogarithmOfFewColumns", kLogText, {{"N", 4000}, {"D", 33}}, 1},
                      ColumnCase{"Sum", kSumText, {{"N", 1'000'000}, {"D", 64}}, 1},
                      ColumnCase{"SumOfOddColumns", kSumText, {{"N", 1'000'003}, {"D", 64}}, 1},
                      ColumnCase{"SumOfHalves",
                                 "def f(half(N,D) I) -> (float(D) s) { s(d) +=! float(I(n,d)) }",
                                 {{"N", 32768}, {"D", 4096}},
                                 1}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::testing
