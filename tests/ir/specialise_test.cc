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

TEST(Bind, ConflictsQuoteBothDimensions) {
  EXPECT_EQ(bind_error(program_from(kMatmul), {{{"A", {2, 3}}, {"B", {5, 4}}}, {}, {}}),
            "dimension 0 of 'B' is 5, but it must be 3: 'K' is 3 by dimension 1 of 'A'");
}

TEST(Bind, ASizeThatOnlyAResultHasIsMissedByName) {
  const Program p = program_from("def f(float a) -> (float(N) O) { O(i) = a }");
  EXPECT_EQ(bind_error(p, {}), "the size 'N' of 'f' is not given by any shape");
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
  EXPECT_EQ(bind_error(larger, {}), "the tensor 'A' of 'f' is missing");
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
  EXPECT_EQ(bind_error(p, {{{"A", {2, 3}}}, {}, {}}), "the tensor 'B' of 'mm' is missing");
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

}  // namespace
}  // namespace tc::ir
