#include "tc/ir/specialise.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"

namespace tc::ir {
namespace {

using testing::program_from;
using testing::specialised_from;
using testing::try_specialised;

const char* const kMatmul = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";

std::string bind_error(const Program& program, const Given& given) {
  const auto bindings = bind(program, given);
  return bindings ? "no error" : bindings.error().diagnostics().at(0).message;
}

TEST(Bind, SizesComeFromShapes) {
  const auto bindings = bind(program_from(kMatmul), {{{"A", {2, 3}}, {"B", {3, 4}}}, {}, {}});
  ASSERT_TRUE(bindings.has_value());
  EXPECT_EQ(bindings->sizes, (std::map<std::string, int64_t>{{"K", 3}, {"M", 2}, {"N", 4}}));
}

TEST(Specialise, T3_AnErrorNamesTheTensorOfTheSource) {
  const auto p = try_specialised("def f(int8(N) A) -> (int8(N) T) { T(i * i % 7) += A(i) }", {{"N", 6}});
  ASSERT_FALSE(p.has_value());
  EXPECT_EQ(p.error().diagnostics()[0].message,
            "T(i * i % 7) cannot be proved to stay inside 'T', whose extent in dimension 0 is 6: guard it with '?:'");
}

TEST(Bind, ConflictsQuoteBothDimensions) {
  EXPECT_EQ(bind_error(program_from(kMatmul), {{{"A", {2, 3}}, {"B", {5, 4}}}, {}, {}}),
            "dimension 0 of 'B' is 5, but it must be 3: 'K' is 3 by dimension 1 of 'A'");
}

TEST(Bind, ASizeThatOnlyAResultHasIsMissedByName) {
  const Program p = program_from("def f(float a) -> (float(N) O) { O(i) = a }");
  EXPECT_EQ(bind_error(p, {}), "size 'N' of 'f' has no value: no tensor that is given determines it");
  EXPECT_EQ(bind_error(p, {{{"O", {3}}}, {}, {}}), "no error");
}

TEST(Bind, ExtentsThatNoTensorCanHave) {
  const Program smaller = program_from("def f(float(N) A, float(N-10) B) -> (O) { O(i) = A(i) * B(i) }");
  EXPECT_EQ(bind_error(smaller, {{}, {}, {{"N", 10}}}), "no error");
  EXPECT_EQ(bind_error(smaller, {{}, {}, {{"N", 3}}}),
            "dimension 0 of 'B' would be N - 10, which is negative: 'N' is 3");
  const Program larger = program_from("def f(float(N) A, float(N*N*N) B) -> (O) { O(i) = A(i) * B(i) }");
  EXPECT_EQ(bind_error(larger, {{}, {}, {{"N", 4000000}}}),
            "dimension 0 of 'B' would be N * N * N, which does not fit 64 bits: 'N' is 4000000");
  EXPECT_EQ(bind_error(larger, {}), "size 'N' of 'f' has no value: no tensor that is given determines it");
}

TEST(Bind, CompoundDimensions) {
  const Program p = program_from("def f(float(N) A, float(2*N+1) B) -> (O) { O(i) = A(i) + B(2 * i) }");
  EXPECT_EQ(bind_error(p, {{{"A", {3}}, {"B", {7}}}, {}, {}}), "no error");
  EXPECT_EQ(bind_error(p, {{{"A", {3}}, {"B", {8}}}, {}, {}}),
            "dimension 0 of 'B' is 8, but it must be 7: 'N' is 3 by dimension 0 of 'A'");
  EXPECT_EQ(bind_error(p, {{{"B", {8}}, {"A", {3}}}, {}, {{"N", 3}}}),
            "dimension 0 of 'B' is 8, but it must be 7: 'N' is 3 by the sizes given");
}

TEST(Bind, WrongArguments) {
  const Program p = program_from(kMatmul);
  EXPECT_EQ(bind_error(p, {{{"A", {2, 3}}}, {}, {}}),
            "size 'N' of 'mm' has no value: no tensor that is given determines it");
  EXPECT_EQ(bind_error(p, {}), "sizes 'M', 'K', 'N' of 'mm' have no value: no tensor that is given determines them");
  EXPECT_EQ(bind_error(p, {{{"A", {2}}, {"B", {3, 4}}}, {}, {}}),
            "'A' has 2 dimensions in 'mm', but the tensor given has 1");
  EXPECT_EQ(bind_error(p, {{{"A", {2, -3}}, {"B", {3, 4}}}, {}, {}}),
            "dimension 1 of 'A' is -3: extents are not negative");
  EXPECT_EQ(bind_error(p, {{{"X", {2}}}, {}, {}}), "'mm' has no argument or result 'X'");
  EXPECT_EQ(bind_error(p, {{}, {}, {{"Q", 1}}}), "'mm' has no size 'Q'");
  EXPECT_EQ(bind_error(p, {{}, {}, {{"M", -1}}}), "the size 'M' is -1: sizes are not negative");
  EXPECT_EQ(bind_error(p, {{}, {{"s", 1}}, {}}), "'mm' has no scalar 's'");
}

TEST(Bind, ResultsGivenByTheCallerMustFit) {
  const Program p = program_from(kMatmul);
  EXPECT_EQ(bind_error(p, {{{"A", {2, 3}}, {"B", {3, 4}}, {"C", {2, 4}}}, {}, {}}), "no error");
  EXPECT_EQ(bind_error(p, {{{"A", {2, 3}}, {"B", {3, 4}}, {"C", {2, 5}}}, {}, {}}),
            "dimension 1 of 'C' is 5, but it must be 4: 'N' is 4 by dimension 1 of 'B'");
}

TEST(Bind, SpecialisedScalars) {
  const Program p = program_from("def f(int8 s, float(N) A) -> (O) { O(i) = A(i + s) where i in 0:1 }");
  EXPECT_EQ(bind_error(p, {{{"A", {3}}}, {}, {}}),
            "the scalar 's' decides a range or a subscript of 'f' and must be given");
  EXPECT_EQ(bind_error(p, {{{"A", {3}}}, {{"s", 300}}, {}}), "the scalar 's' is 300, which is not a value of int8");
  EXPECT_EQ(bind_error(p, {{{"A", {3}}}, {{"s", 2}}, {}}), "no error");
}

TEST(Specialise, MakesEverythingConstant) {
  const Program p = specialised_from(kMatmul, {{"M", 2}, {"K", 3}, {"N", 4}});
  EXPECT_TRUE(p.sizes.empty());
  EXPECT_TRUE(p.preconditions.empty());
  EXPECT_EQ(constant_shape(p.tensor("C")), (Shape{2, 4}));
  EXPECT_EQ(shape_text(constant_shape(p.tensor("C"))), "(2, 4)");
}

TEST(Specialise, ZeroExtentsAreLegal) {
  const Program p = specialised_from(kMatmul, {{"M", 0}, {"K", 0}, {"N", 4}});
  EXPECT_EQ(constant_shape(p.tensor("C")), (Shape{0, 4}));
}

TEST(Specialise, TooLargeTensorsAreErrors) {
  const auto p =
      try_specialised("def f(float(N,M) A) -> (O) { O(i) +=! A(i,j) }", {{"N", 1'000'000'000}, {"M", 1'000'000}});
  ASSERT_FALSE(p.has_value());
  EXPECT_EQ(p.error().diagnostics()[0].message, "'A' of shape (1000000000, 1000000) would take more than 2^47 bytes");
  const auto overflow =
      try_specialised("def f(float(N,N,N) A) -> (O) { O(i) +=! A(i,j,k) }", {{"N", int64_t{1} << 40}});
  ASSERT_FALSE(overflow.has_value());
  EXPECT_EQ(overflow.error().diagnostics()[0].message,
            "'A' of shape (1099511627776, 1099511627776, 1099511627776) would take more than 2^47 bytes");
}

TEST(Specialise, SeveralPreconditionsFailTogether) {
  const auto p = try_specialised("def f(float(H,W) I, float(K,L) F) -> (O) { O(h,w) +=! I(h + k, w + l) * F(k,l) }",
                                 {{"H", 1}, {"W", 1}, {"K", 2}, {"L", 3}});
  ASSERT_FALSE(p.has_value());
  EXPECT_EQ(p.error().diagnostics().size(), 2u);
}

std::string first_error(const Result<Program>& program) { return program ? "no error" : program.error().to_string(); }

TEST(Specialise, C7_InstancesThatWriteOneElementAreShown) {
  const char* const text = "def f(float(N,M) A) -> (O) { O(i + 2 * j) = A(i,j) }";
  EXPECT_EQ(first_error(try_specialised(text, {{"N", 2}, {"M", 4}})), "no error");
  EXPECT_EQ(
      first_error(try_specialised(text, {{"N", 3}, {"M", 4}})),
      "test.tc:1:30: error: O(i + 2 * j) writes an element twice: it needs 2 <= M && N <= 2 || M == 1, but N is 3 "
      "and M is 4\n"
      "    def f(float(N,M) A) -> (O) { O(i + 2 * j) = A(i,j) }\n"
      "                                 ^~~~~~~~~~~~\n"
      "test.tc:1:30: note: O(i + 2 * j) writes O(2) twice, for i = 0, j = 1 and for i = 2, j = 0\n"
      "    def f(float(N,M) A) -> (O) { O(i + 2 * j) = A(i,j) }\n"
      "                                 ^~~~~~~~~~~~\n");
}

TEST(Specialise, C7_WhatIsNotAffineIsDecidedForTheSizes) {
  const char* const text = "def f(float(N,M) A, float(S) B) -> (O) { O(i * S + j) = A(i,j) + B(i) }";
  EXPECT_EQ(first_error(try_specialised(text, {{"N", 3}, {"M", 4}, {"S", 4}})), "no error");
  EXPECT_EQ(
      first_error(try_specialised(text, {{"N", 3}, {"M", 4}, {"S", 3}})),
      "test.tc:1:42: error: with '=' each element is written once, but O(i * S + j) writes O(3) twice, for i = 0, "
      "j = 3 and for i = 1, j = 0: write '+=!' to sum, or leave instances out with 'where'\n"
      "    def f(float(N,M) A, float(S) B) -> (O) { O(i * S + j) = A(i,j) + B(i) }\n"
      "                                             ^~~~~~~~~~~~\n");
}

/// The number of a scalar is in place before anything is proved (C11), so the proof is for all sizes.
TEST(Specialise, C7_AStrideThatIsAScalarIsANumber) {
  const char* const text = "def f(float(N,M) A, int32 s) -> (O) { O(i * s + j) = A(i,j) }";
  EXPECT_EQ(first_error(try_specialised(text, {{"N", 3}, {"M", 4}}, {{"s", 4}})), "no error");
  const auto wrong = try_specialised(text, {{"N", 3}, {"M", 4}}, {{"s", 3}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().diagnostics()[0].message,
            "O(i * s + j) writes an element twice: it needs M <= 3 || N == 1, but N is 3 and M is 4");
}

/// Quotients and remainders by expressions are no larger than their operands.
TEST(Specialise, IndexValuesDividedByIndicesFitInt32) {
  for (const char* value : {"i % (i + 1)", "i / (i + 1)", "0 % (i - 1)", "(i - 9) / (i - 3)", "-i % (2 * i - 5)"}) {
    const std::string text = fmt::format("def f(int32(N) A) -> (int32(N) O) {{ O(i) = A(i) + ({}) }}", value);
    EXPECT_EQ(first_error(try_specialised(text, {{"N", 20}})), "no error") << value;
  }
  const std::string reads = "def f(int32(N) A) -> (O) { O(i) = A(i % (i + 1)) where i in 0:N }";
  EXPECT_EQ(first_error(try_specialised(reads, {{"N", 20}})), "no error");
}

}  // namespace
}  // namespace tc::ir
