#include "tc/interp/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "tc/support/check.h"
#include "tests/interp/builder.h"

namespace tc::testing {
namespace {

using interp::Environment;
using interp::Value;
using ir::Assign;
constexpr ScalarType kF32 = ScalarType::kFloat32;
constexpr ScalarType kF16 = ScalarType::kFloat16;
constexpr ScalarType kI32 = ScalarType::kInt32;
constexpr ScalarType kI64 = ScalarType::kInt64;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

const Expr i = index("i");
const Expr j = index("j");
const Expr k = index("k");

std::vector<double> floats_of(const ir::Program& program, const Environment& inputs, const std::string& name,
                              interp::RunOptions options = {}) {
  auto results = interp::run(program, inputs, options);
  EXPECT_TRUE(results) << results.error().to_string();
  return results ? results->at(name).floats : std::vector<double>{};
}

std::vector<int64_t> integers_of(const ir::Program& program, const Environment& inputs, const std::string& name) {
  auto results = interp::run(program, inputs);
  EXPECT_TRUE(results) << results.error().to_string();
  return results ? results->at(name).integers : std::vector<int64_t>{};
}

std::string error_of(const ir::Program& program, const Environment& inputs) {
  auto results = interp::run(program, inputs);
  return results ? "no error" : results.error().diagnostics().at(0).message;
}

/// O(i) = value, for i in [0, extent), of a value over `i` and whatever the builder holds.
ir::Program pointwise(ProgramBuilder b, ScalarType type, int64_t extent, const Expr& value) {
  return b.result(type, "O", {extent}).set("O", {i}, {map("i", extent)}, value).program();
}

TEST(Interpreter, MultipliesMatrices) {
  ProgramBuilder b;
  b.input(kF32, "A", {2, 3}).input(kF32, "B", {3, 2}).result(kF32, "C", {2, 2});
  b.statement("C", {i, j}, Assign::kAdd, true, {map("i", 2), map("j", 2), reduced("k", 3)},
              b.read("A", {i, k}) * b.read("B", {k, j}));
  const Environment inputs = {{"A", floats(kF32, {2, 3}, {1, 2, 3, 4, 5, 6})},
                              {"B", floats(kF32, {3, 2}, {1, 0, 0, 1, 2, 2})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "C"), (std::vector<double>{7, 8, 16, 17}));
}

TEST(Interpreter, MultipliesLargerMatricesInTime) {
  ProgramBuilder b;
  b.input(kF32, "A", {64, 64}).result(kF32, "C", {64, 64});
  b.statement("C", {i, j}, Assign::kAdd, true, {map("i", 64), map("j", 64), reduced("k", 64)},
              b.read("A", {i, k}) * b.read("A", {k, j}));
  Environment inputs = {{"A", Value::zeros(kF32, {64, 64})}};
  for (int n = 0; n < 64; ++n) inputs["A"].floats[n * 65] = n;
  const std::clock_t begin = std::clock();
  const std::vector<double> result = floats_of(b.program(), inputs, "C");
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  for (int n = 0; n < 64; ++n) EXPECT_EQ(result[n * 65], n * n);
  // 10 ms of processor time; the bound only notices that evaluation has become slow by an order.
  EXPECT_LT(seconds, 0.5);
}

TEST(Interpreter, AccumulatesIntoWhatTheCallerGave) {
  ProgramBuilder b;
  b.input(kF32, "A", {2, 2}).tensor(ir::Role::kInOut, kF32, "O", {2});
  b.statement("O", {i}, Assign::kAdd, false, {map("i", 2), reduced("k", 2)}, b.read("A", {i, k}));
  const Environment inputs = {{"A", floats(kF32, {2, 2}, {1, 2, 3, 4})}, {"O", floats(kF32, {2}, {10, 20})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "O"), (std::vector<double>{13, 27}));
}

TEST(Interpreter, ReducesWithEachOperator) {
  const auto reduce = [](ScalarType type, Assign assign, Environment inputs) {
    ProgramBuilder b;
    b.input(type, "A", {4}).result(type, "O", {});
    b.statement("O", {}, assign, true, {reduced("k", 4)}, b.read("A", {k}));
    return interp::run(b.program(), inputs)->at("O");
  };
  const Environment reals = {{"A", floats(kF32, {4}, {3, -2, 5, 4})}};
  EXPECT_EQ(reduce(kF32, Assign::kAdd, reals).floats[0], 10);
  EXPECT_EQ(reduce(kF32, Assign::kMul, reals).floats[0], -120);
  EXPECT_EQ(reduce(kF32, Assign::kMin, reals).floats[0], -2);
  EXPECT_EQ(reduce(kF32, Assign::kMax, reals).floats[0], 5);
  const Environment small = {{"A", integers(ScalarType::kInt8, {4}, {100, 100, 2, 1})}};
  EXPECT_EQ(reduce(ScalarType::kInt8, Assign::kAdd, small).integers[0], 203 - 256);
  EXPECT_EQ(reduce(ScalarType::kInt8, Assign::kMul, small).integers[0], 20000 - 78 * 256);
  EXPECT_EQ(reduce(ScalarType::kInt8, Assign::kMin, small).integers[0], 1);
  const Environment large = {{"A", integers(ScalarType::kUInt64, {4}, {1, -1, 2, 3})}};
  EXPECT_EQ(reduce(ScalarType::kUInt64, Assign::kMax, large).integers[0], -1);
  EXPECT_EQ(reduce(ScalarType::kUInt64, Assign::kMin, large).integers[0], 1);
}

TEST(Interpreter, AnEmptyReductionGivesTheIdentity) {
  ProgramBuilder b;
  b.input(kF32, "A", {2, 0}).result(kF32, "O", {2}).result(kI32, "P", {});
  b.statement("O", {i}, Assign::kMax, true, {map("i", 2), reduced("k", 0)}, b.read("A", {i, k}));
  b.statement("P", {}, Assign::kMin, true, {reduced("k", 0)}, Expr(int32_t{1}));
  const Environment inputs = {{"A", Value::zeros(kF32, {2, 0})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "O"), (std::vector<double>{-kInf, -kInf}));
  EXPECT_EQ(integers_of(b.program(), inputs, "P")[0], std::numeric_limits<int32_t>::max());
}

TEST(Interpreter, T5_ANanWinsInMaxAndMin) {
  ProgramBuilder b;
  b.input(kF32, "A", {3}).result(kF32, "O", {}).result(kF32, "P", {}).result(kF32, "Q", {});
  b.statement("O", {}, Assign::kMax, true, {reduced("k", 3)}, b.read("A", {k}));
  b.statement("P", {}, Assign::kMin, true, {reduced("k", 3)}, b.read("A", {k}));
  b.set("Q", {}, {}, call(kF32, "fmax", {b.read("A", {integer(0)}), b.read("A", {integer(1)})}));
  const Environment inputs = {{"A", floats(kF32, {3}, {1, kNaN, 2})}};
  EXPECT_TRUE(std::isnan(floats_of(b.program(), inputs, "O")[0]));
  EXPECT_TRUE(std::isnan(floats_of(b.program(), inputs, "P")[0]));
  EXPECT_EQ(floats_of(b.program(), inputs, "Q")[0], 1) << "fmax ignores a NaN, as in C";
}

TEST(Interpreter, T5_InfinitiesPassThroughSums) {
  ProgramBuilder b;
  b.input(kF32, "A", {2, 2}).result(kF32, "O", {2});
  b.statement("O", {i}, Assign::kAdd, true, {map("i", 2), reduced("k", 2)}, b.read("A", {i, k}));
  const std::vector<double> result = floats_of(b.program(), {{"A", floats(kF32, {2, 2}, {kInf, 1, kInf, -kInf})}}, "O");
  EXPECT_EQ(result[0], kInf);
  EXPECT_TRUE(std::isnan(result[1]));
}

TEST(Interpreter, SumsDoNotDrift) {
  // 1 + 10^7 * 2^-60: each term alone is lost in float64.
  ProgramBuilder b;
  b.input(ScalarType::kFloat64, "A", {1}).tensor(ir::Role::kInOut, ScalarType::kFloat64, "O", {});
  b.statement("O", {}, Assign::kAdd, false, {reduced("k", 1 << 20)}, b.read("A", {integer(0)}));
  const Environment inputs = {{"A", floats(ScalarType::kFloat64, {1}, {0x1p-60})},
                              {"O", floats(ScalarType::kFloat64, {}, {1})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "O")[0], 1 + 0x1p-40);
}

TEST(Interpreter, R5_ElementsThatNobodyWritesKeepTheirValue) {
  ProgramBuilder b;
  b.input(kF32, "I", {2}).result(kF32, "P", {4});
  b.set("P", {i}, {map("i", 3, 1)}, b.read("I", {i - integer(1)}));
  Environment inputs = {{"I", floats(kF32, {2}, {5, 6})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "P"), (std::vector<double>{0, 5, 6, 0}));
  inputs["P"] = floats(kF32, {4}, {7, 7, 7, 7});
  EXPECT_EQ(floats_of(b.program(), inputs, "P"), (std::vector<double>{7, 5, 6, 7}));
}

TEST(Interpreter, R6_AReadThatItsGuardForbidsIsNotMade) {
  ProgramBuilder b;
  b.input(kF32, "I", {2});
  const Expr inside = i >= integer(1) && i <= integer(2);
  const Expr value = Halide::Internal::Select::make(inside, b.read("I", {i - integer(1)}), constant(kF32, 0));
  const Environment inputs = {{"I", floats(kF32, {2}, {5, 6})}};
  EXPECT_EQ(floats_of(pointwise(b, kF32, 4, value), inputs, "O"), (std::vector<double>{0, 5, 6, 0}));
  // && and || are as lazy: the right operand is read only where the left does not decide.
  const Expr positive = b.read("I", {i - integer(1)}) > constant(kF32, 5);
  EXPECT_EQ(integers_of(pointwise(b, ScalarType::kBool, 4, inside && positive), inputs, "O"),
            (std::vector<int64_t>{0, 0, 1, 0}));
  EXPECT_EQ(integers_of(pointwise(b, ScalarType::kBool, 4, !inside || positive), inputs, "O"),
            (std::vector<int64_t>{1, 0, 1, 1}));
}

TEST(Interpreter, R6_OfARowSomeReadsMayBeForbidden) {
  ProgramBuilder b;
  b.input(kF32, "X", {4}).result(kF32, "O", {3, 3});
  const Expr inside = i + j < integer(4);
  b.set("O", {i, j}, {map("i", 3), map("j", 3)},
        Halide::Internal::Select::make(inside, b.read("X", {i + j}) - b.read("X", {integer(3) - i - j}),
                                       constant(kF32, 0)));
  EXPECT_EQ(floats_of(b.program(), {{"X", floats(kF32, {4}, {1, 2, 4, 9})}}, "O"),
            (std::vector<double>{-8, -2, 2, -2, 2, 8, 2, 8, 0}));
}

TEST(Interpreter, C8_ADataDependentSubscriptOutOfBoundsIsTheUsersError) {
  ProgramBuilder b;
  b.input(kI32, "X", {3}).input(kF32, "T", {4, 2}).result(kF32, "O", {3, 2});
  b.set("O", {i, j}, {map("i", 3), map("j", 2)}, b.read("T", {Halide::cast<int64_t>(b.read("X", {i})), j}));
  Environment inputs = {{"T", floats(kF32, {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}, {"X", integers(kI32, {3}, {2, 0, 3})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "O"), (std::vector<double>{4, 5, 0, 1, 6, 7}));
  inputs["X"].integers[1] = 4;
  EXPECT_EQ(error_of(b.program(), inputs), "subscript 0 of 'T' is 4, outside [0, 4), in statement S0 at i = 1, j = 0");
  inputs["X"].integers[1] = -1;
  EXPECT_EQ(error_of(b.program(), inputs), "subscript 0 of 'T' is -1, outside [0, 4), in statement S0 at i = 1, j = 0");
}

TEST(Interpreter, AnAffineSubscriptOutOfBoundsIsOurFault) {
  ProgramBuilder b;
  b.input(kF32, "I", {3});
  const ir::Program program = pointwise(b, kF32, 3, b.read("I", {i + integer(1)}));
  EXPECT_THROW((void)interp::run(program, {{"I", Value::zeros(kF32, {3})}}), InternalError);
  const ir::Program quadratic = pointwise(b, kF32, 3, b.read("I", {i * i}));
  EXPECT_THROW((void)interp::run(quadratic, {{"I", Value::zeros(kF32, {3})}}), InternalError);
}

TEST(Interpreter, C7_Scatters) {
  ProgramBuilder b;
  b.input(kI32, "X", {5}).result(kI32, "H", {3});
  const Expr target = Halide::cast<int64_t>(b.read("X", {i}));
  b.statement("H", {target}, Assign::kAdd, true, {map("i", 5)}, Expr(int32_t{1}));
  const Environment inputs = {{"X", integers(kI32, {5}, {2, 0, 2, 2, 0})}, {"H", integers(kI32, {3}, {9, 9, 9})}};
  // The elements written start from zero; the others keep what the caller gave.
  EXPECT_EQ(integers_of(b.program(), inputs, "H"), (std::vector<int64_t>{2, 9, 3}));
}

TEST(Interpreter, AGuardKeepsInstancesFromExisting) {
  // A prefix sum: O(i) +=! A(k) where k <= i.
  ProgramBuilder b;
  b.input(kF32, "A", {4}).result(kF32, "O", {4});
  b.statement("O", {i}, Assign::kAdd, true, {map("i", 4), reduced("k", 4)}, b.read("A", {k}), k <= i);
  const Environment inputs = {{"A", floats(kF32, {4}, {1, 2, 3, 4})}, {"O", floats(kF32, {4}, {9, 9, 9, 9})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "O"), (std::vector<double>{1, 3, 6, 10}));
  // The part of a guard that only map indices enter keeps elements from being initialised.
  ProgramBuilder c;
  c.input(kF32, "A", {4}).result(kF32, "O", {4});
  c.statement("O", {i}, Assign::kAdd, true, {map("i", 4), reduced("k", 4)}, c.read("A", {k}),
              i >= integer(2) && k <= i);
  EXPECT_EQ(floats_of(c.program(), inputs, "O"), (std::vector<double>{9, 9, 6, 10}));
}

TEST(Interpreter, R8_DivisionRoundsDownAndByZeroGivesZero) {
  ProgramBuilder b;
  b.input(kI32, "A", {4}).input(kI32, "B", {4});
  const Environment inputs = {{"A", integers(kI32, {4}, {-7, 7, -7, 7})}, {"B", integers(kI32, {4}, {2, -2, -2, 0})}};
  const Expr a = b.read("A", {i});
  const Expr d = b.read("B", {i});
  EXPECT_EQ(integers_of(pointwise(b, kI32, 4, call(kI32, "tc.floor_div", {a, d})), inputs, "O"),
            (std::vector<int64_t>{-4, -4, 3, 0}));
  EXPECT_EQ(integers_of(pointwise(b, kI32, 4, call(kI32, "tc.floor_mod", {a, d})), inputs, "O"),
            (std::vector<int64_t>{1, -1, -1, 0}));
  EXPECT_EQ(integers_of(pointwise(b, kI32, 4, a / 4), inputs, "O"), (std::vector<int64_t>{-2, 1, -2, 1}));
  EXPECT_EQ(integers_of(pointwise(b, kI32, 4, a % 4), inputs, "O"), (std::vector<int64_t>{1, 3, 1, 3}));
}

TEST(Interpreter, IntegersWrapAround) {
  ProgramBuilder b;
  b.input(kI32, "A", {2}).input(ScalarType::kUInt8, "B", {2});
  const Environment inputs = {
      {"A", integers(kI32, {2}, {std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()})},
      {"B", integers(ScalarType::kUInt8, {2}, {255, 0})}};
  const Expr a = b.read("A", {i});
  const Expr c = b.read("B", {i});
  EXPECT_EQ(integers_of(pointwise(b, kI32, 2, a + a), inputs, "O"), (std::vector<int64_t>{-2, 0}));
  EXPECT_EQ(integers_of(pointwise(b, kI32, 2, call(kI32, "abs", {a})), inputs, "O")[1],
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(integers_of(pointwise(b, kI32, 2, call(kI32, "tc.floor_div", {a, Expr(int32_t{-1})})), inputs, "O")[1],
            std::numeric_limits<int32_t>::min());
  const Expr one = constant(ScalarType::kUInt8, 1);
  EXPECT_EQ(integers_of(pointwise(b, ScalarType::kUInt8, 2, c + one), inputs, "O"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(integers_of(pointwise(b, ScalarType::kUInt8, 2, c - one), inputs, "O"), (std::vector<int64_t>{254, 255}));
}

TEST(Interpreter, CastsOfFloatsToIntegersAreDefinedForEveryValue) {
  ProgramBuilder b;
  b.input(kF32, "A", {6});
  const Environment inputs = {{"A", floats(kF32, {6}, {-1.9, 1.9, kNaN, kInf, -kInf, 3e9})}};
  EXPECT_EQ(integers_of(pointwise(b, kI32, 6, Halide::cast<int32_t>(b.read("A", {i}))), inputs, "O"),
            (std::vector<int64_t>{-1, 1, 0, 2147483647, -2147483648LL, 2147483647}));
  EXPECT_EQ(integers_of(pointwise(b, ScalarType::kUInt8, 6, Halide::cast<uint8_t>(b.read("A", {i}))), inputs, "O"),
            (std::vector<int64_t>{0, 1, 0, 255, 0, 255}));
}

TEST(Interpreter, ResultsAreRoundedToTheirTypeOnce) {
  ProgramBuilder b;
  b.input(kF32, "A", {4}).tensor(ir::Role::kTemporary, kF16, "T", {4}).result(kF32, "O", {4});
  const Expr cast = Halide::cast(Halide::Float(16), b.read("A", {i}) * constant(kF32, 0.5f));
  b.set("T", {i}, {map("i", 4)}, cast);
  b.set("O", {i}, {map("i", 4)}, Halide::cast(Halide::Float(32), b.read("T", {i})));
  // 2049 lies between the float16 numbers 2048 and 2050: ties go to even. 140000 is too large.
  const Environment inputs = {{"A", floats(kF32, {4}, {2 * 2049, 2 * 2051, 140000, 2 * 65519.0})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "O"), (std::vector<double>{2048, 2052, kInf, 65504}));
}

TEST(Interpreter, ExactRunsRoundTemporariesAndOthersKeepThem) {
  ProgramBuilder b;
  b.input(kF16, "A", {1}).tensor(ir::Role::kTemporary, kF16, "T", {1}).result(kF16, "O", {1});
  b.set("T", {i}, {map("i", 1)}, b.read("A", {i}) + constant(kF16, 1));
  b.set("O", {i}, {map("i", 1)}, b.read("T", {i}) - constant(kF16, 2048));
  const Environment inputs = {{"A", floats(kF16, {1}, {2048})}};
  EXPECT_EQ(floats_of(b.program(), inputs, "O"), std::vector<double>{1});
  EXPECT_EQ(floats_of(b.program(), inputs, "O", {.exact = true}), std::vector<double>{0});
}

TEST(Interpreter, ScalarsAndIndicesAreValues) {
  ProgramBuilder b;
  b.scalar(kF32, "a");
  const Expr a = Halide::Internal::Variable::make(Halide::Float(32), "a");
  const ir::Program program = pointwise(b, kF32, 3, a * Halide::cast<float>(Halide::cast<int32_t>(i)));
  EXPECT_EQ(floats_of(program, {{"a", floats(kF32, {}, {2.5})}}, "O"), (std::vector<double>{0, 2.5, 5}));
  EXPECT_EQ(error_of(program, {}), "scalar 'a' of 'f' is missing");
}

TEST(Interpreter, SharedExpressionsAreEvaluatedOnce) {
  // x1 = x0 + x0, x2 = x1 + x1, ...: 2^60 paths, 60 nodes.
  ProgramBuilder b;
  b.input(ScalarType::kFloat64, "A", {1});
  Expr x = b.read("A", {i});
  for (int n = 0; n < 60; ++n) x = Halide::Internal::Add::make(x, x);
  EXPECT_EQ(floats_of(pointwise(b, ScalarType::kFloat64, 1, x), {{"A", floats(ScalarType::kFloat64, {1}, {1})}}, "O"),
            std::vector<double>{0x1p60});
}

TEST(Interpreter, LetsBindInTheirBodyOnly) {
  ProgramBuilder b;
  b.input(kF32, "A", {2});
  const Expr t = Halide::Internal::Variable::make(Halide::Float(32), "t");
  const Expr inner = Halide::Internal::Let::make("t", t * constant(kF32, 2), t + constant(kF32, 1));
  const Expr value = Halide::Internal::Let::make("t", b.read("A", {i}), inner * t);
  EXPECT_EQ(floats_of(pointwise(b, kF32, 2, value), {{"A", floats(kF32, {2}, {3, 5})}}, "O"),
            (std::vector<double>{(2 * 3 + 1) * 3, (2 * 5 + 1) * 5}));
}

TEST(Interpreter, RefusesWhatDoesNotFitTheProgram) {
  ProgramBuilder b;
  b.input(kF32, "A", {2});
  const ir::Program program = pointwise(b, kF32, 2, b.read("A", {i}));
  EXPECT_EQ(error_of(program, {}), "tensor 'A' of 'f' is missing");
  EXPECT_EQ(error_of(program, {{"A", floats(kF32, {3}, {1, 2, 3})}}), "'A' has shape (2), not (3)");
  EXPECT_EQ(error_of(program, {{"A", floats(kF16, {2}, {1, 2})}}), "'A' is float32, not float16");
  EXPECT_EQ(error_of(program, {{"A", floats(kF32, {2}, {1})}}), "'A' of shape (2) is given 1 elements");
  EXPECT_EQ(error_of(program, {{"A", floats(kF32, {2}, {1, 2})}, {"B", floats(kF32, {}, {1})}}),
            "'f' has no argument or result 'B'");
  EXPECT_EQ(error_of(program, {{"A", floats(kF32, {2}, {1, 2})}, {"O", integers(kI64, {2}, {1, 2})}}),
            "'O' is float32, not int64");
  ProgramBuilder huge;
  huge.input(kF32, "A", {1});
  EXPECT_EQ(error_of(pointwise(huge, kF32, int64_t{1} << 41, huge.read("A", {i - i})), {{"A", floats(kF32, {1}, {1})}}),
            "'O' of shape (2199023255552) is too large");
}

}  // namespace
}  // namespace tc::testing
