#include "tc/ir/from_lang.h"

#include <gtest/gtest.h>

#include "tc/ir/expr_text.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

using testing::program_from;
using testing::specialised_from;
using testing::try_program;

/// The statements as text, without ranges.
std::vector<std::string> statements(const Program& program) {
  std::vector<std::string> lines;
  std::stringstream text(to_text(program));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("  S")) lines.push_back(line.substr(2));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(FromLang, C2_InitialisingAndAccumulating) {
  const Program p = program_from("def f(float(N,K) A) -> (O, float(N) Q) { O(i) +=! A(i,k)\n Q(i) max= A(i,k) }");
  EXPECT_TRUE(p.statements[0].initialises);
  EXPECT_FALSE(p.statements[1].initialises);
  EXPECT_EQ(p.tensor("Q").role, Role::kInOut);
  EXPECT_EQ(p.tensor("O").role, Role::kResult);
}

TEST(FromLang, C3_PointwiseReadsStayInPlace) {
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { O(i) = A(i)\n O(i) = O(i) * O(i) }")),
            (Lines{"S0: O(i) = A(i)", "S1: O(i) = O(i) * O(i)"}));
}

TEST(FromLang, C3_OtherElementsAreReadFromASnapshot) {
  EXPECT_EQ(statements(program_from("def f(float(N,N) A) -> (O) { O(i,j) = A(i,j)\n O(i,j) = O(j,i) }")),
            (Lines{"S0: O(i, j) = A(i, j)", "S1: O_old(d0, d1) = O(d0, d1)", "S2: O(i, j) = O_old(j, i)"}));
}

TEST(FromLang, C3_ReductionsReadASnapshot) {
  EXPECT_EQ(statements(program_from("def f(float(N,N) A) -> (O) { O(i) +=! A(i,k)\n O(i) += O(i) * A(i,k) }")),
            (Lines{"S0: O(i) +=! A(i, k)", "S1: O_old(d0) = O(d0)", "S2: O(i) += O_old(i) * A(i, k)"}));
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { O(i) = A(i)\n O(i) +=! O(i) }")),
            (Lines{"S0: O(i) = A(i)", "S1: O_old(d0) = O(d0)", "S2: O(i) +=! O_old(i)"}));
}

TEST(FromLang, C3_TheSnapshotIsTakenBeforeTheIdentityIsStored) {
  EXPECT_EQ(statements(program_from("def f(int(N) I) -> (float(N) H) { H(I(i)) +=! H(i) }")),
            (Lines{"S0: H_old(d0) = H(d0)", "S1: H(d0) = 0.0", "S2: H(I(i)) += H_old(i)"}));
  EXPECT_EQ(statements(program_from("def f(int(N) A) -> (int(N) H) { H(H(i)) +=! A(i) }")),
            (Lines{"S0: H_old(d0) = H(d0)", "S1: H(d0) = 0", "S2: H(H_old(i)) += A(i)"}));
}

TEST(FromLang, C7_AnAffineLeftSideReadsItsOwnElementInPlace) {
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { O(2*i+1) = A(i)\n O(2*i+1) = O(2*i+1) * A(i) }")),
            (Lines{"S0: O(2 * i + 1) = A(i)", "S1: O(2 * i + 1) = O(2 * i + 1) * A(i)"}));
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { O(2*i) = A(i)\n O(i) = O(2*i) where i in 0:N }")),
            (Lines{"S0: O(2 * i) = A(i)", "S1: O_old(d0) = O(d0)", "S2: O(i) = O_old(2 * i)"}));
}

TEST(FromLang, C3_SnapshotNamesAreFresh) {
  const Program p = program_from("def f(float(N,N) O_old) -> (O) { O(i,j) = O_old(i,j)\n O(i,j) = O(j,i) }");
  EXPECT_TRUE(p.find_tensor("O_old_"));
}

TEST(FromLang, C7_ScatterWithInitFillsTheTensor) {
  EXPECT_EQ(statements(program_from("def f(int(N) I) -> (int(8) H) { H(I(i)) +=! 1 }")),
            (Lines{"S0: H(d0) = 0", "S1: H(I(i)) += 1"}));
  EXPECT_EQ(statements(program_from("def f(int(N) I, float(N) A) -> (float(8) H) { H(I(i)) max=! A(i) }")),
            (Lines{"S0: H(d0) = -inf", "S1: H(I(i)) max= A(i)"}));
}

TEST(FromLang, C7_AffineLeftSidesInitialiseWhatTheyWrite) {
  const Program p = program_from("def f(float(N) A) -> (O) { O(2 * i + 1) +=! A(i) }");
  EXPECT_EQ(statements(p), (Lines{"S0: O(2 * i + 1) +=! A(i)"}));
  EXPECT_EQ(to_text(p.tensor("O").extents[0]), "N * 2");
  EXPECT_FALSE(left_is_identity(p.statements[0]));
}

TEST(FromLang, R5_WhatATemporaryLacksIsZeroAlsoToAnUpdate) {
  EXPECT_EQ(statements(program_from("def f(float(8) A) -> (O) { float T(i) = A(i) where i in 2:8\n"
                                    "  T(i) max= A(i) where k in 0:1\n O(i) = A(i) }")),
            (Lines{"S0: T(d0) = 0.0", "S1: T(i) = A(i)", "S2: T(i) max= A(i)", "S3: O(i) = A(i)"}));
  EXPECT_EQ(statements(program_from("def f(float(8) A) -> (O) { float T(i) max=! A(i) where k in 0:1\n"
                                    "  T(i) max= A(i) where k in 0:1\n O(i) = A(i) }")),
            (Lines{"S0: T(i) max=! A(i)", "S1: T(i) max= A(i)", "S2: O(i) = A(i)"}));
}

TEST(FromLang, EndsWhenItIsAskedTo) {
  const lang::TypedProgram file = *lang::analyse(
      std::make_shared<const Source>("test.tc", "def f(float(M,N) A) -> (O) { O(i) +=! A(i,j) + A(i, N - 1 - j) }"));
  std::stop_source stop;
  ASSERT_TRUE(from_lang(file, "", Deadline(60'000, stop.get_token())));
  stop.request_stop();
  const Result<Program> stopped = from_lang(file, "", Deadline(60'000, stop.get_token()));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::kCancelled);
  EXPECT_EQ(stopped.error().to_string(), "error: the compilation was cancelled\n");
}

TEST(FromLang, R5_TheProofThatATemporaryIsWrittenEndsInTime) {
  Program program = program_from("def f(float(N) A, float(N) B) -> (O) { T(i) = A(i)  T(i) = B(i)  O(i) = T(i) }");
  std::stop_source stop;
  EXPECT_NO_THROW(fill_temporaries(program, Deadline(60'000, stop.get_token())));
  for (Statement& s : program.statements) {
    for (Index& i : s.indices) i.begin = index_constant(1);
  }
  stop.request_stop();
  EXPECT_THROW(fill_temporaries(program, Deadline(60'000, stop.get_token())), OutOfTime);
}

TEST(FromLang, C10_LetsAreSubstituted) {
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { O(i) = x * x where x = A(i) + 1.0 }")),
            (Lines{"S0: O(i) = (A(i) + 1.0) * (A(i) + 1.0)"}));
}

TEST(FromLang, C11_ScalarsInSubscriptsAreSpecialised) {
  const Program p =
      program_from("def f(int s, int v, float(N) A) -> (O) { O(i) = A(i + s) * float(v) * float(s) where i in 0:1 }");
  EXPECT_TRUE(p.find_scalar("s")->specialised);
  EXPECT_FALSE(p.find_scalar("v")->specialised);
  EXPECT_EQ(statements(specialised_from("def f(int s, float(N) A) -> (O) { O(i) = A(i + s) where i in 0:1 }",
                                        {{"N", 5}}, {{"s", 3}})),
            (Lines{"S0: O(i) = A(i + 3)"}));
}

TEST(FromLang, T1_PromotionsAreCasts) {
  EXPECT_EQ(statements(program_from("def f(int8(N) A, float(N) B, float64(N) C) -> (O) { O(i) = A(i) * B(i) + C(i) }")),
            (Lines{"S0: O(i) = float64(float32(A(i)) * B(i)) + C(i)"}));
}

TEST(FromLang, T1_IndexAsValueIsInt32) {
  EXPECT_EQ(statements(program_from("def f(int(N) A) -> (O) { O(i) = A(i) + i }")),
            (Lines{"S0: O(i) = A(i) + int32(i)"}));
  EXPECT_EQ(program_from("def f(int(N) A) -> (O) { O(i) = A(i) + int64(i) }").tensor("O").type, Halide::Int(64));
}

TEST(FromLang, T3_NarrowSumsAccumulateInATemporary) {
  const Program p = program_from("def f(float16(N,K) A, float16(K,M) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }");
  EXPECT_EQ(statements(p),
            (Lines{"S0: C_sum(i, j) +=! float32(A(i, k)) * float32(B(k, j))", "S1: C(i, j) = float16(C_sum(i, j))"}));
  EXPECT_EQ(p.tensor("C_sum").type, Halide::Float(32));
  EXPECT_EQ(p.tensor("C_sum").role, Role::kTemporary);
}

TEST(FromLang, T3_AccumulatingReadsTheTensorOnce) {
  EXPECT_EQ(statements(program_from("def f(int8(N,K) A) -> (int8(N) C) { C(i) += A(i,k) }")),
            (Lines{"S0: C_sum(i) +=! int32(A(i, k))", "S1: C(i) = int8(int32(C(i)) + C_sum(i))"}));
}

TEST(FromLang, T3_WithoutReductionNeedsNoTemporary) {
  EXPECT_EQ(statements(program_from("def f(float16(N) A) -> (float16(N) C) { C(i) += A(i) }")),
            (Lines{"S0: C(i) = float16(float32(C(i)) + float32(A(i)))"}));
}

TEST(FromLang, T3_ScatteredNarrowSums) {
  EXPECT_EQ(
      statements(program_from("def f(int(N) I, float16(N) A) -> (float16(8) H) { H(I(i)) += A(i) }")),
      (Lines{"S0: H_sum(d0) = float32(H(d0))", "S1: H_sum(I(i)) += float32(A(i))", "S2: H(d0) = float16(H_sum(d0))"}));
}

TEST(FromLang, T3_WideSumsStayAsTheyAre) {
  EXPECT_EQ(statements(program_from("def f(float(N,K) A) -> (C) { C(i) +=! A(i,k) }")),
            (Lines{"S0: C(i) +=! A(i, k)"}));
  EXPECT_EQ(statements(program_from("def f(float16(N,K) A) -> (C) { C(i) max=! A(i,k) }")),
            (Lines{"S0: C(i) max=! A(i, k)"}));
}

TEST(FromLang, T3_NarrowProductsAreExactInAWiderSum) {
  EXPECT_EQ(statements(program_from("def f(int8(N,K) A, int8(K) B) -> (int32(N) C) { C(i) +=! A(i,k) * B(k) }")),
            (Lines{"S0: C(i) +=! int32(A(i, k)) * int32(B(k))"}));
}

/// What is narrow within a wider value is computed in the wider type.
TEST(FromLang, T3_NarrowProductsWithinAWiderValueAreWideToo) {
  const auto value = [](const char* of_halves, const char* expected) {
    const std::string text =
        std::string("def f(half(N) A, half(N) B, float s, int8(N) I, int32(N) J) -> (float C) { C +=! ") + of_halves +
        " }";
    EXPECT_EQ(statements(program_from(text)), (Lines{std::string("S0: C +=! ") + expected}));
  };
  value("A(i) * B(i) * 0.5", "float32(A(i)) * float32(B(i)) * 0.5");
  value("s * (A(i) * B(i))", "s * (float32(A(i)) * float32(B(i)))");
  value("(A(i) > B(i) ? A(i) - B(i) : 0.5) * s", "(A(i) > B(i) ? float32(A(i)) - float32(B(i)) : 0.5) * s");
  value("-(A(i) * A(i)) + s", "float32(A(i)) * float32(A(i)) * -1.0 + s");
  value("float(J(i) + I(i) * I(i))", "float32(J(i) + int32(I(i) * I(i)))");  // the operand of a cast
  value("exp(A(i) * B(i)) * s", "float32(exp(A(i) * B(i))) * s");            // and an argument: in their own types
  value("float(A(i) * B(i)) * s", "float32(A(i) * B(i)) * s");
  EXPECT_EQ(statements(program_from("def f(int8(N) I, int32(N) J) -> (int32 C) { C +=! J(i) + I(i) * I(i) }")),
            (Lines{"S0: C +=! J(i) + int32(I(i)) * int32(I(i))"}));
}

TEST(FromLang, T4_GuardedReadsEvaluateOneBranch) {
  const std::string text = "def f(float(N) A) -> (O) { O(i) = i >= 1 ? A(i - 1) : 0.0 where i in 0:N }";
  EXPECT_EQ(statements(program_from(text)), (Lines{"S0: O(i) = i >= 1 ? A(i - 1) : 0.0"}));
  EXPECT_EQ(statements(specialised_from(text, {{"N", 4}})), (Lines{"S0: O(i) = i >= 1 ? A(i - 1) : 0.0"}));
}

TEST(FromLang, T4_SafeChoicesBecomeSelects) {
  const std::string text = "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) > B(i) ? A(i) : B(i) }";
  EXPECT_EQ(statements(specialised_from(text, {{"N", 4}})), (Lines{"S0: O(i) = select(A(i) > B(i), A(i), B(i))"}));
}

TEST(FromLang, T5_MinMaxAndReluAreNodes) {
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { O(i) = relu(min(A(i), 2.0, 3.0)) }")),
            (Lines{"S0: O(i) = max(min(min(A(i), 2.0), 3.0), 0.0)"}));
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { O(i) = fmin(A(i), 2.0) }")),
            (Lines{"S0: O(i) = fmin(A(i), 2.0)"}));
}

TEST(FromLang, ExtentsOfTensorsAreReplaced) {
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { B(i) = A(i)\n O(i) = B(B.0 - 1 - i) }")),
            (Lines{"S0: B(i) = A(i)", "S1: O(i) = B(N - 1 - i)"}));
}

TEST(FromLang, EntryIsFoundByName) {
  const std::string two = "def f(float(N) A) -> (O) { O(i) = A(i) }\ndef g(float(N) A) -> (O) { O(i) = A(i) }";
  EXPECT_EQ(program_from(two, "g").name, "g");
  EXPECT_EQ(try_program(two).error().to_string(), "error: 'test.tc' has 2 defs ('f', 'g'): name one\n");
  EXPECT_EQ(try_program(two, "h").error().to_string(), "error: 'test.tc' has no def 'h', only 'f', 'g'\n");
}

bool writes_all_of(const std::string& text, const std::map<std::string, int64_t>& sizes) {
  return writes_all(specialised_from(text, sizes), "O", Deadline());
}

TEST(FromLang, R5_SeveralStatementsMayWriteAllElements) {
  const std::string two = "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i)\n O(N + i) = B(i) }";
  EXPECT_TRUE(writes_all_of(two, {{"N", 3}, {"M", 5}}));
  EXPECT_TRUE(writes_all_of(two, {{"N", 0}, {"M", 5}}));
  EXPECT_TRUE(writes_all_of("def f(float(N) A) -> (O) { O(2*i) = A(i)\n O(2*i + 1) = A(i) }", {{"N", 4}}));
  EXPECT_FALSE(writes_all_of("def f(float(N) A) -> (O) { O(3*i) = A(i)\n O(3*i + 1) = A(i) }", {{"N", 4}}));
  EXPECT_FALSE(writes_all_of(
      "def f(float(N) A) -> (float(2*N) O) { O(i) = A(i) where i in 0:N\n O(N + 1 + i) = A(i) where i in 0:N-1 }",
      {{"N", 4}}));
}

TEST(FromLang, R5_TheProofThatAllIsWrittenKeepsTheDeadline) {
  // Without a proof, the result starts from zero.
  const Program p = specialised_from("def f(float(N) A) -> (O) { O(2*i) = A(i)\n O(2*i + 1) = A(i) }", {{"N", 4}});
  std::stop_source stop;
  EXPECT_TRUE(writes_all(p, "O", Deadline(60'000, stop.get_token())));
  stop.request_stop();
  EXPECT_FALSE(writes_all(p, "O", Deadline(60'000, stop.get_token())));
}

TEST(FromLang, R5_WhatIsReadBeforeAllIsWrittenStartsFromZero) {
  EXPECT_FALSE(writes_all_of(
      "def f(float(N) A) -> (O, Q) { O(i) = A(i) where i in 0:2\n Q(i) = O(i) where i in 0:N\n O(i) = A(i) }",
      {{"N", 4}}));
  EXPECT_TRUE(writes_all_of("def f(float(N) A) -> (O, Q) { O(i) = A(i)\n Q(i) = O(i) where i in 0:N\n O(i) = A(i) }",
                            {{"N", 4}}));
}

TEST(FromLang, R5_TemporariesThatSeveralStatementsWriteNeedNoFill) {
  EXPECT_EQ(statements(program_from("def f(float(N) A) -> (O) { T(2*i) = A(i)\n T(2*i + 1) = A(i)\n O(i) = T(i) }")),
            (Lines{"S0: T(2 * i) = A(i)", "S1: T(2 * i + 1) = A(i)", "S2: O(i) = T(i)"}));
}

}  // namespace
}  // namespace tc::ir
