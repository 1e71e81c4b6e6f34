#include "tc/interp/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tc/interp/scalar.h"
#include "tc/interp/tf32_factors.h"
#include "tests/interp/builder.h"

namespace tc::testing {
namespace {

using interp::Bounded;
using interp::BoundedValue;
using interp::Comparison;
using interp::Environment;
using interp::Value;
using ir::Assign;
constexpr ScalarType kF32 = ScalarType::kFloat32;
constexpr ScalarType kF16 = ScalarType::kFloat16;
constexpr ScalarType kI32 = ScalarType::kInt32;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

const Expr i = index("i");
const Expr k = index("k");

BoundedValue oracle_of(const ir::Program& program, const Environment& inputs, const std::string& name) {
  auto results = interp::run_bounded(program, inputs);
  EXPECT_TRUE(results) << results.error().to_string();
  return results->at(name);
}

/// O(i) = value over A(i), i in [0, extent).
BoundedValue pointwise(ProgramBuilder b, ScalarType type, int64_t extent, const Expr& value,
                       const Environment& inputs) {
  return oracle_of(b.result(type, "O", {extent}).set("O", {i}, {map("i", extent)}, value).program(), inputs, "O");
}

ProgramBuilder matmul_row(int64_t terms) {
  ProgramBuilder b;
  b.input(kF32, "A", {terms}).input(kF32, "B", {terms}).result(kF32, "O", {});
  b.statement("O", {}, Assign::kAdd, true, {reduced("k", terms)}, b.read("A", {k}) * b.read("B", {k}));
  return b;
}

Environment random_row(int64_t terms, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Environment inputs = {{"A", Value::zeros(kF32, {terms})}, {"B", Value::zeros(kF32, {terms})}};
  for (auto& [name, value] : inputs) {
    for (double& x : value.floats) x = static_cast<float>(normal(engine));
  }
  return inputs;
}

TEST(Bounds, AreZeroForSmallIntegersAsFloats) {
  Environment inputs = {{"A", Value::zeros(kF32, {100})}, {"B", Value::zeros(kF32, {100})}};
  for (int n = 0; n < 100; ++n) inputs["A"].floats[n] = inputs["B"].floats[n] = n % 17 - 8;
  EXPECT_EQ(oracle_of(matmul_row(100).program(), inputs, "O").errors, std::vector<double>{0});
  // One term that float32 cannot hold beside the others, and the sum is no longer exact in every order.
  inputs["A"].floats[0] = inputs["B"].floats[0] = 4097;
  EXPECT_GT(oracle_of(matmul_row(100).program(), inputs, "O").errors[0], 0);
}

/// T5: parts of 128 products of 8-bit floats keep 13 bits behind the leading one.
TEST(Bounds, OfProductsOfFloat8AreThoseOfTheirParts) {
  constexpr ScalarType kF8 = ScalarType::kFloat8E4M3;
  ProgramBuilder b;
  b.input(kF8, "A", {1000}).input(kF8, "B", {1000}).result(kF32, "O", {});
  const auto read = [&](const char* name) { return Halide::cast<float>(b.read(name, {k})); };
  b.statement("O", {}, Assign::kAdd, true, {reduced("k", 1000)}, read("A") * read("B"));
  Environment inputs = {{"A", Value::zeros(kF8, {1000})}, {"B", Value::zeros(kF8, {1000})}};
  for (int n = 0; n < 1000; ++n) inputs["A"].floats[n] = inputs["B"].floats[n] = n % 17 - 8;
  EXPECT_EQ(oracle_of(b.program(), inputs, "O").errors, std::vector<double>{0});
  // A float32 has the sum exactly, but 13 bits behind the leading one of a part are too few.
  inputs["A"].floats[0] = inputs["B"].floats[0] = 1.25;
  const BoundedValue oracle = oracle_of(b.program(), inputs, "O");
  EXPECT_GT(oracle.errors[0], oracle.value.floats[0] / 100);
  EXPECT_LT(oracle.errors[0], oracle.value.floats[0] / 50);
}

/// T5, with the option `tf32`: each factor may lose its last 13 bits.
TEST(Bounds, OfTf32FactorsHoldWhatTheyLose) {
  const auto part = [](double x) {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & 0xffffe000U);
  };
  const ir::Program program = matmul_row(300).program(), lossy = interp::with_tf32_factors(program);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Environment inputs = random_row(300, seed);
    for (double& x : inputs["A"].floats) x = std::fabs(x);
    if (seed % 2 == 0) inputs["B"] = inputs["A"];
    if (seed == 0) inputs["A"].floats[0] = 0x1p-140, inputs["B"].floats[0] = 0x1p120;
    double sum = 0;
    for (size_t n = 0; n < 300; ++n) {
      sum += static_cast<double>(part(inputs["A"].floats[n])) * part(inputs["B"].floats[n]);
    }
    const Value result = floats(kF32, {}, {static_cast<float>(sum)});
    const Comparison c = compare("O", result, oracle_of(lossy, inputs, "O"));
    EXPECT_TRUE(c.agrees) << c.sentence;
    if (seed % 2 == 0) EXPECT_FALSE(compare("O", result, oracle_of(program, inputs, "O")).agrees) << seed;
    // Half a percent is more than they lose.
    const Value wrong = floats(kF32, {}, {static_cast<float>(sum * 0.995)});
    if (seed % 2 == 0) EXPECT_FALSE(compare("O", wrong, oracle_of(lossy, inputs, "O")).agrees) << seed;
  }
  Environment integers = random_row(300, 1);
  for (size_t n = 0; n < 300; ++n) {
    integers["A"].floats[n] = integers["B"].floats[n] = static_cast<double>(n % 17) - 8;
  }
  EXPECT_EQ(oracle_of(lossy, integers, "O").errors, std::vector<double>{0});
}

TEST(Bounds, HoldForEveryOrderOfAFloat32Sum) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const int64_t terms = 1 + static_cast<int64_t>(seed) * 13;
    Environment inputs = random_row(terms, seed);
    const BoundedValue oracle = oracle_of(matmul_row(terms).program(), inputs, "O");
    std::vector<int64_t> order(terms);
    for (int64_t n = 0; n < terms; ++n) order[n] = n;
    for (int trial = 0; trial < 8; ++trial) {
      std::shuffle(order.begin(), order.end(), std::mt19937_64(seed * 8 + trial));
      float sum = 0;
      float fused = 0;
      for (int64_t n : order) {
        const auto a = static_cast<float>(inputs["A"].floats[n]);
        const auto b = static_cast<float>(inputs["B"].floats[n]);
        sum += a * b;
        fused = std::fma(a, b, fused);
      }
      for (double result : {sum, fused}) {
        const Comparison c = compare("O", floats(kF32, {}, {result}), oracle);
        EXPECT_TRUE(c.agrees) << c.sentence;
      }
    }
  }
}

TEST(Bounds, AreNotMuchLargerThanTheErrors) {
  // A product lost from a sum of 1000 is noticed, and so is a sum in float16.
  Environment inputs = random_row(1000, 7);
  const BoundedValue oracle = oracle_of(matmul_row(1000).program(), inputs, "O");
  EXPECT_LT(oracle.errors[0], 1e-1);
  const double sum = oracle.value.floats[0];
  const double lost = sum - inputs["A"].floats[3] * inputs["B"].floats[3];
  EXPECT_FALSE(compare("O", floats(kF32, {}, {lost}), oracle).agrees);
}

TEST(Bounds, HoldForFloat32Arithmetic) {
  // exp((a - b) / (a * a + 1)) * a, against float32 arithmetic on this machine.
  ProgramBuilder b;
  b.input(kF32, "A", {500}).input(kF32, "B", {500});
  const Expr a = b.read("A", {i});
  const Expr one = constant(kF32, 1);
  const Expr value = call(kF32, "exp", {(a - b.read("B", {i})) / (a * a + one)}) * a;
  std::mt19937_64 engine(3);
  std::normal_distribution<float> normal;
  Environment inputs = {{"A", Value::zeros(kF32, {500})}, {"B", Value::zeros(kF32, {500})}};
  Value result = Value::zeros(kF32, {500});
  for (int n = 0; n < 500; ++n) {
    const float x = normal(engine);
    const float y = normal(engine);
    inputs["A"].floats[n] = x;
    inputs["B"].floats[n] = y;
    result.floats[n] = std::exp((x - y) / (x * x + 1)) * x;
  }
  const BoundedValue oracle = pointwise(b, kF32, 500, value, inputs);
  const Comparison c = compare("O", result, oracle);
  EXPECT_TRUE(c.agrees) << c.sentence;
  EXPECT_EQ(c.undecidable, 0);
  EXPECT_GT(c.largest_share, 0.02) << "a bound this far above the errors would not notice a wrong result";
  result.floats[17] *= 1 + 1e-4;
  EXPECT_FALSE(compare("O", result, oracle).agrees);
}

TEST(Bounds, DiscontinuitiesAreUndecidableWhereRoundingDecides) {
  // floor(a * 0.1f): where the product is within rounding of a whole number.
  ProgramBuilder b;
  b.input(kF32, "A", {3});
  const Expr product = b.read("A", {i}) * constant(kF32, 0.1f);
  const Environment inputs = {{"A", floats(kF32, {3}, {10, 15, 20})}};
  const BoundedValue integers = pointwise(b, kI32, 3, Halide::cast<int32_t>(product), inputs);
  EXPECT_EQ(integers.errors, (std::vector<double>{kInf, 0, kInf}));
  EXPECT_EQ(integers.value.integers[1], 1);
  const BoundedValue compared = pointwise(b, ScalarType::kBool, 3, product < constant(kF32, 2), inputs);
  EXPECT_EQ(compared.errors, (std::vector<double>{0, 0, kInf}));
  const Comparison c = compare("O", testing::integers(kI32, {3}, {0, 1, 2}), integers);
  EXPECT_TRUE(c.agrees);
  EXPECT_EQ(c.undecidable, 2);
  EXPECT_EQ(c.sentence, "'O' agrees exactly: 3 elements, 2 not compared because rounding decides");
  const Comparison wrong = compare("O", testing::integers(kI32, {3}, {0, 7, 2}), integers);
  EXPECT_EQ(wrong.sentence,
            "'O' differs in 1 of 3 elements, 2 not compared because rounding decides: at (1) it is 7, the oracle has 1 "
            "with a bound of 0");
}

TEST(Bounds, WhereRoundingDecidesEveryElementNothingIsCompared) {
  ProgramBuilder b;
  b.input(kF32, "A", {2});
  const Expr product = b.read("A", {i}) * constant(kF32, 0.1f);
  const Environment inputs = {{"A", floats(kF32, {2}, {10, 20})}};
  const BoundedValue oracle = pointwise(b, kI32, 2, Halide::cast<int32_t>(product), inputs);
  const Comparison c = compare("O", testing::integers(kI32, {2}, {1, 2}), oracle);
  EXPECT_EQ(c.undecidable, 2);
  EXPECT_EQ(c.worst, std::vector<int64_t>{});
  EXPECT_EQ(c.sentence, "'O' is not compared: rounding decides every one of its elements (2)");
}

TEST(Bounds, AChoiceThatRoundingDecidesIsEither) {
  // max(x, 0) written as x > 0 ? x : 0 is continuous: its bound stays small.
  ProgramBuilder b;
  b.input(kF32, "A", {1});
  const Expr x = b.read("A", {i}) * constant(kF32, 0.1f) - constant(kF32, 1);
  const Expr value = Halide::Internal::Select::make(x > constant(kF32, 0), x, constant(kF32, 0));
  const BoundedValue oracle = pointwise(b, kF32, 1, value, {{"A", floats(kF32, {1}, {10})}});
  EXPECT_LT(oracle.errors[0], 1e-6);
  EXPECT_GT(oracle.errors[0], 0);
}

TEST(Bounds, AChoiceBetweenANanAndANumberIsUnknown) {
  ProgramBuilder b;
  b.input(kF32, "A", {7}).input(kF32, "B", {7}).input(kF32, "C", {1});
  const Expr is_less = b.read("C", {integer(0)}) * constant(kF32, 0.1f) < constant(kF32, 1);  // rounding decides
  const Expr value = Halide::Internal::Select::make(is_less, b.read("A", {i}), b.read("B", {i}));
  const Environment inputs = {{"A", floats(kF32, {7}, {kNaN, 2, kNaN, kInf, 2, kInf, kInf})},
                              {"B", floats(kF32, {7}, {2, kNaN, kNaN, 2, kInf, -kInf, kInf})},
                              {"C", floats(kF32, {1}, {10})}};
  const std::vector<double> errors = {kInf, kInf, 0, kInf, kInf, kInf, 0};
  EXPECT_EQ(pointwise(b, kF32, 7, value, inputs).errors, errors);
  EXPECT_EQ(pointwise(b, ScalarType::kBool, 7, call(ScalarType::kBool, "isnan", {value}), inputs).errors, errors);
}

TEST(Bounds, AReadOutOfBoundsInABranchThatRoundingDecidesIsUnknown) {
  ProgramBuilder b;
  b.input(kF32, "A", {1});
  const Expr x = b.read("A", {i}) * constant(kF32, 0.1f);
  const Expr value = Halide::Internal::Select::make(x < constant(kF32, 1), b.read("A", {i - integer(1)}), x);
  EXPECT_EQ(pointwise(b, kF32, 1, value, {{"A", floats(kF32, {1}, {10})}}).errors[0], kInf);
  EXPECT_LT(pointwise(b, kF32, 1, value, {{"A", floats(kF32, {1}, {11})}}).errors[0], 1e-6);
}

TEST(Bounds, ArgmaxOverEqualCandidatesIsUndecidable) {
  ProgramBuilder b;
  b.input(kF32, "A", {2}).result(kF32, "M", {}).result(kI32, "O", {});
  const Expr x = b.read("A", {k}) * constant(kF32, 0.1f);
  b.statement("M", {}, Assign::kMax, true, {reduced("k", 2)}, x);
  const Expr is_largest = x == b.read("M", {});
  b.statement("O", {}, Assign::kMax, true, {reduced("k", 2)},
              Halide::Internal::Select::make(is_largest, Halide::cast<int32_t>(k), Expr(int32_t{-1})));
  EXPECT_EQ(oracle_of(b.program(), {{"A", floats(kF32, {2}, {3, 1})}}, "O").errors[0], kInf);
  const BoundedValue maximum = oracle_of(b.program(), {{"A", floats(kF32, {2}, {3, 1})}}, "M");
  EXPECT_LT(maximum.errors[0], 1e-7);
}

TEST(Bounds, NansAndInfinitiesAreCertain) {
  ProgramBuilder b;
  b.input(kF32, "A", {4});
  const Environment inputs = {{"A", floats(kF32, {4}, {kInf, kNaN, -kInf, 1000})}};
  const BoundedValue oracle = pointwise(b, kF32, 4, call(kF32, "exp", {b.read("A", {i})}), inputs);
  EXPECT_TRUE(compare("O", floats(kF32, {4}, {kInf, kNaN, 0, kInf}), oracle).agrees);
  EXPECT_FALSE(compare("O", floats(kF32, {4}, {0, kNaN, 0, kInf}), oracle).agrees);
  EXPECT_FALSE(compare("O", floats(kF32, {4}, {kInf, 0, 0, kInf}), oracle).agrees);
  EXPECT_FALSE(compare("O", floats(kF32, {4}, {kInf, kNaN, kNaN, kInf}), oracle).agrees);
  EXPECT_FALSE(compare("O", floats(kF32, {4}, {kInf, kNaN, 0, 3e38}), oracle).agrees);
}

TEST(Bounds, APowerOfANanMayBeOne) {
  ProgramBuilder b;
  b.input(kF32, "A", {2});
  const Environment inputs = {{"A", floats(kF32, {2}, {10, kNaN})}};
  const Expr about_one = b.read("A", {integer(0)}) * constant(kF32, 0.1f), nan = b.read("A", {integer(1)});
  const auto power = [&](const Expr& x, const Expr& y) {
    return pointwise(b, kF32, 1, call(kF32, "pow", {x, y}), inputs);
  };
  EXPECT_EQ(power(about_one, nan).errors[0], kInf);
  EXPECT_EQ(power(nan, about_one - constant(kF32, 1)).errors[0], kInf);
  EXPECT_EQ(power(nan, constant(kF32, 2)).errors[0], 0);
  EXPECT_TRUE(std::isnan(power(nan, constant(kF32, 2)).value.floats[0]));
}

TEST(Bounds, OverflowOfASumDependsOnItsOrder) {
  ProgramBuilder b;
  b.input(kF32, "A", {3}).result(kF32, "O", {});
  b.statement("O", {}, Assign::kAdd, true, {reduced("k", 3)}, b.read("A", {k}));
  EXPECT_EQ(oracle_of(b.program(), {{"A", floats(kF32, {3}, {3e38, 3e38, -3e38})}}, "O").errors[0], kInf);
}

TEST(Bounds, ProductsInAnyOrder) {
  ProgramBuilder b;
  b.input(kF32, "A", {4}).result(kF32, "O", {});
  b.statement("O", {}, Assign::kMul, true, {reduced("k", 4)}, b.read("A", {k}));
  const auto bound = [&](std::vector<double> factors) {
    return oracle_of(b.program(), {{"A", floats(kF32, {4}, std::move(factors))}}, "O");
  };
  EXPECT_EQ(bound({3, -5, 7, 2}).errors[0], 0);
  EXPECT_EQ(bound({3, -5, 0, 2}).errors[0], 0);
  EXPECT_GT(bound({1.1f, 1.3f, 1.7f, 1.9f}).errors[0], 0);
  EXPECT_LT(bound({1.1f, 1.3f, 1.7f, 1.9f}).errors[0], 1e-5);
  EXPECT_EQ(bound({1e30f, 1e30f, 1e-30f, 1e-30f}).errors[0], kInf);
  EXPECT_EQ(bound({kInf, 2, 2, -2}).value.floats[0], -kInf);
  EXPECT_TRUE(std::isnan(bound({kInf, 2, 0, -2}).value.floats[0]));
  // 1e-30 * 1e-30 is zero in float32: the product is only known to the size of what it is multiplied by after.
  EXPECT_GT(bound({1e-30f, 1e-30f, 1e30f, 1}).errors[0], 1e-16);
}

TEST(Bounds, NarrowResultsAreRoundedOnce) {
  ProgramBuilder b;
  b.input(kF32, "A", {1});
  const BoundedValue oracle =
      pointwise(b, kF16, 1, Halide::cast(Halide::Float(16), b.read("A", {i})), {{"A", floats(kF32, {1}, {2049.5})}});
  EXPECT_TRUE(compare("O", floats(kF16, {1}, {2050}), oracle).agrees);
  EXPECT_FALSE(compare("O", floats(kF16, {1}, {2048}), oracle).agrees) << "that would be truncation";
  const BoundedValue large =
      pointwise(b, kF16, 1, Halide::cast(Halide::Float(16), b.read("A", {i})), {{"A", floats(kF32, {1}, {1e6})}});
  EXPECT_TRUE(compare("O", floats(kF16, {1}, {kInf}), large).agrees);
  EXPECT_FALSE(compare("O", floats(kF16, {1}, {65504}), large).agrees);
}

TEST(Compare, SaysWhereAndHowMuch) {
  const BoundedValue oracle = {floats(kF32, {2, 2}, {1, 2, 3, 4}), {0, 0, 1e-6, 1e-6}};
  Comparison c = compare("O", floats(kF32, {2, 2}, {1, 2, 3 + 0x1p-22, 4}), oracle);
  EXPECT_TRUE(c.agrees);
  EXPECT_EQ(c.max_ulp, 1);
  EXPECT_EQ(c.worst, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(c.sentence, "'O' agrees: 4 elements, largest error 0.238 of the bound at (1, 0): 1 ULP, 7.95e-08 relative");
  c = compare("O", floats(kF32, {2, 2}, {1, 2.5, 3, 4.1}), oracle);
  EXPECT_FALSE(c.agrees);
  EXPECT_EQ(c.mismatches, 2);
  EXPECT_EQ(c.sentence, "'O' differs in 2 of 4 elements: at (0, 1) it is 2.5, the oracle has 2 with a bound of 0");
  const BoundedValue whole = {testing::integers(ScalarType::kUInt64, {1}, {-1}), {0}};
  c = compare("H", testing::integers(ScalarType::kUInt64, {1}, {-2}), whole);
  EXPECT_EQ(c.sentence,
            "'H' differs in 1 of 1 element: at (0) it is 18446744073709551614, the oracle has 18446744073709551615 "
            "with a bound of 0");
  EXPECT_EQ(compare("E", Value::zeros(kF32, {0, 3}), {Value::zeros(kF32, {0, 3}), {}}).sentence,
            "'E' agrees exactly: 0 elements");
}

/// As scaling to an integer does, of any size.
TEST(Scalar, RoundsNumbersOfAllSizes) {
  std::mt19937_64 random(1);
  for (const ScalarType type : {ScalarType::kFloat8E4M3, ScalarType::kFloat8E5M2, kF16, ScalarType::kBFloat16}) {
    const int bits = interp::significand_bits(type), lowest = std::ilogb(interp::smallest_subnormal(type));
    const double largest = interp::largest_finite(type);
    const bool saturates = is_float8(type);
    for (int n = 0; n < 20000; ++n) {
      // Few bits, so that ties are frequent.
      const double fraction = 1 + std::ldexp(static_cast<double>(random() % 4096), -12);
      const double value = std::ldexp(random() % 2 ? fraction : -fraction, static_cast<int>(random() % 300) - 150);
      const int quantum = std::max(std::ilogb(value) - (bits - 1), lowest);
      const double scaled = std::ldexp(std::rint(std::ldexp(value, -quantum)), quantum);
      const double expected = std::fabs(scaled) <= largest ? scaled : std::copysign(saturates ? largest : kInf, value);
      const double rounded = interp::round_to(type, value);
      ASSERT_EQ(rounded, expected) << name_of(type) << " " << value;
      ASSERT_EQ(std::signbit(rounded), std::signbit(value)) << name_of(type) << " " << value;
    }
    EXPECT_EQ(interp::round_to(type, 1e300), saturates ? largest : kInf);
  }
}

TEST(Scalar, RoundsToNearestEven) {
  EXPECT_EQ(interp::round_to(kF16, 2049), 2048);
  EXPECT_EQ(interp::round_to(kF16, 2051), 2052);
  EXPECT_EQ(interp::round_to(kF16, 65519.999), 65504);
  EXPECT_EQ(interp::round_to(kF16, 65520), kInf);
  EXPECT_EQ(interp::round_to(kF16, 0x1p-25), 0);
  EXPECT_EQ(interp::round_to(kF16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(interp::round_to(ScalarType::kBFloat16, 257), 256);
  EXPECT_EQ(interp::round_to(ScalarType::kBFloat16, 259), 260);
  EXPECT_EQ(interp::next_after(kF16, 1, 2), 1 + 0x1p-10);
  EXPECT_EQ(interp::next_after(kF16, 1, 0), 1 - 0x1p-11);
  EXPECT_EQ(interp::next_after(kF16, 0, -1), -0x1p-24);
  EXPECT_EQ(interp::next_after(kF16, 65504, kInf), kInf);
  EXPECT_EQ(interp::next_after(kF16, kInf, 0), 65504);
}

TEST(Scalar, Float32AgreesWithTheProcessor) {
  std::mt19937_64 engine(5);
  for (int n = 0; n < 1000; ++n) {
    const auto from = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    const auto to = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    if (std::isnan(from) || std::isnan(to)) continue;
    EXPECT_EQ(interp::next_after(kF32, from, to), std::nextafter(from, to));
    const auto wide = static_cast<int64_t>(engine());
    EXPECT_EQ(interp::integer_to_float(ScalarType::kInt64, kF32, wide), static_cast<float>(wide));
  }
}

TEST(Scalar, Shifts) {
  EXPECT_EQ(interp::shift_left(ScalarType::kInt8, 1, 7), -128);
  EXPECT_EQ(interp::shift_left(ScalarType::kInt8, 1, 8), 0);
  EXPECT_EQ(interp::shift_right(ScalarType::kInt8, -128, 100), -1);
  EXPECT_EQ(interp::shift_right(ScalarType::kUInt8, 128, 7), 1);
  EXPECT_EQ(interp::shift_right(ScalarType::kUInt64, -1, 63), 1);
  EXPECT_EQ(interp::shift_left(kI32, 8, -2), 2);
}

}  // namespace
}  // namespace tc::testing
