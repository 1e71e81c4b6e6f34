#include "tc/ir/ranges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tc/ir/bounds.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

using testing::program_from;
using testing::specialised_from;
using testing::try_program;
using testing::try_specialised;

/// "i in 0:N, k in 0:K" of a statement.
std::string ranges_of(const Program& program, size_t statement = 0) {
  std::string text;
  for (const Index& index : program.statements.at(statement).indices) {
    text +=
        fmt::format("{}{} in {}:{}", text.empty() ? "" : ", ", index.name, to_text(index.begin), to_text(index.end));
  }
  return text;
}

/// "(N, M)" of a tensor.
std::string shape_of(const Program& program, const std::string& tensor) {
  std::string text;
  for (const auto& e : program.tensor(tensor).extents)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_text(e));
  return fmt::format("({})", text);
}

/// The first sentence of the error that a text gives.
template <typename T>
std::string sentence(const Result<T>& result) {
  return result ? "no error" : result.error().diagnostics().at(0).message;
}

std::string error_of(const std::string& text) { return sentence(try_program(text)); }

TEST(Ranges, R1_IndicesStartAtZero) {
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) = A(i) }")), "i in 0:N");
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) = A(i + 2) }")), "i in 0:N - 2");
}

TEST(Ranges, R1_WhereMayStartElsewhere) {
  const Program p = program_from("def f(float(N) A) -> (O) { O(i) +=! A(i + k) where k in -1:2 }");
  EXPECT_EQ(ranges_of(p), "i in 1:N - 1, k in -1:2");
}

TEST(Ranges, R1_AReadShiftedAloneMayStartElsewhere) {
  const Program p = program_from("def f(float(N) A) -> (O) { O(i) = A(i - 1) }");
  EXPECT_EQ(ranges_of(p), "i in 1:N + 1");
  EXPECT_EQ(shape_of(p, "O"), "(N + 1)");
}

TEST(Ranges, R1_NegativeWriteIsAnError) {
  EXPECT_EQ(error_of("def f(float(N) A) -> (O) { O(i) = 1.0 where i in -1:N }"),
            "'O' has extent N in dimension 0, but O(i) writes it at -1");
}

TEST(Ranges, R2_RoundsSolveWindows) {
  const Program p = program_from("def f(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i + x) }");
  EXPECT_EQ(ranges_of(p), "i in 0:M - N + 1, x in 0:N");
  EXPECT_EQ(shape_of(p, "O"), "(M - N + 1)");
}

TEST(Ranges, R2_SeveralReadsIntersect) {
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) + B(i) }")), "i in 0:min(M, N)");
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) = A(i + 1) - A(i) }")), "i in 0:N - 1");
}

TEST(Ranges, R2_StridesReversalsAndQuotients) {
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) = A(2 * i) }")), "i in 0:(N + 1) / 2");
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) = A(N - 1 - i) }")), "i in 0:N");
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) = A(i / 2) }")), "i in 0:N * 2");
}

TEST(Ranges, R2_SymbolicStrideMustBePositive) {
  const std::string text = "def f(int s, float(N) A) -> (O) { O(i) +=! A(s * i + k) where k in 0:2 }";
  EXPECT_EQ(ranges_of(program_from(text)), "i in 0:(N - 2) / s + 1, k in 0:2");
  EXPECT_EQ(ranges_of(specialised_from(text, {{"N", 9}}, {{"s", 3}})), "i in 0:3, k in 0:2");
  EXPECT_EQ(sentence(try_specialised(text, {{"N", 9}}, {{"s", 0}})),
            "nothing bounds 'i': give its range with 'where i in 0:...', or the extents of 'O' in the list of results");
}

TEST(Ranges, R3_FreeIndexTakesTheExtentFromOtherStatements) {
  const Program p = program_from(R"(def f(float(B,I) in, float(O,I) weight, float(O) bias) -> (out) {
    out(i,j) = bias(j)
    out(b,o) += in(b,i) * weight(o,i) })");
  EXPECT_EQ(ranges_of(p, 0), "i in 0:B, j in 0:O");
}

TEST(Ranges, R3_FreeIndexTakesTheExtentFromTheAnnotation) {
  const Program p = program_from("def f(float(N) A) -> (float(N,7) O) { O(i,j) = A(i) }");
  EXPECT_EQ(ranges_of(p), "i in 0:N, j in 0:7");
}

TEST(Ranges, R3_FreeIndexTakesTheExtentOfTheCallersTensor) {
  const std::string text = "def f(float b) -> (float C) { C(i,j) = b * C(i,j) }";
  EXPECT_EQ(shape_of(program_from(text), "C"), "(C.0, C.1)");
  const Program p = program_from(text);
  const auto bindings = bind(p, {{{"C", {3, 4}}}, {}, {}});
  ASSERT_TRUE(bindings.has_value()) << bindings.error().to_string();
  EXPECT_EQ(ranges_of(*specialise(p, *bindings)), "i in 0:3, j in 0:4");
}

TEST(Ranges, R3_NothingToTakeIsAnError) {
  EXPECT_EQ(error_of("def f(float(N) A) -> (O) { O(i,j) = A(i) }"),
            "nothing bounds 'j': give its range with 'where j in 0:...', or the extents of 'O' in the list of results");
}

TEST(Ranges, R4_AmbiguousIndicesShowCandidates) {
  const auto program = try_program("def f(float(M) I) -> (O) { O(i) +=! I(i + j) }");
  EXPECT_EQ(sentence(program),
            "the range of 'i' is ambiguous: it appears only together with 'j', in 'I(i + j)'; give one of them with "
            "'where'");
  const auto& notes = program.error().diagnostics()[0].notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].text, "one choice is 'where i in 0:M, j in 0:1'");
  EXPECT_EQ(notes[1].text, "one choice is 'where j in 0:M, i in 0:1'");
}

TEST(Ranges, R4_WhereDecides) {
  const Program p = program_from("def f(float(M) I) -> (O) { O(i) +=! I(i + j) where j in 0:3 }");
  EXPECT_EQ(ranges_of(p), "i in 0:M - 2, j in 0:3");
}

TEST(Ranges, R4_WindowLargerThanItsTensorHasNoRange) {
  const std::string text = "def f(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i + x) }";
  EXPECT_EQ(sentence(try_specialised(text, {{"M", 3}, {"N", 4}})),
            "no value of 'i' keeps I(i + x) inside 'I': it needs N <= M, but M is 3 and N is 4");
}

TEST(Ranges, R5_ExtentIsOnePastTheLargestIndexWritten) {
  EXPECT_EQ(shape_of(program_from("def f(float(H) I) -> (P) { P(h) = I(h - 1) where h in 1:H+1 }"), "P"), "(H + 1)");
  const Program p =
      program_from("def f(float(N) A, float(M) B) -> (O) { O(i) = A(i)\n O(i) = B(i - N) where i in N:N+M }");
  EXPECT_EQ(shape_of(p, "O"), "(M + N)");
  EXPECT_EQ(ranges_of(p, 0), "i in 0:N");
  EXPECT_EQ(ranges_of(p, 1), "i in N:M + N");
}

TEST(Ranges, R5_WritesStayInAnnotatedExtents) {
  const std::string text = "def f(float(N) A) -> (float(4) O) { O(i) = A(i) }";
  EXPECT_EQ(ranges_of(specialised_from(text, {{"N", 4}})), "i in 0:4");
  EXPECT_EQ(sentence(try_specialised(text, {{"N", 5}})), "O(i) writes outside 'O': it needs N <= 4, but N is 5");
}

TEST(Ranges, R5_PaddedTemporaryStartsFromZero) {
  const Program p = program_from("def f(float(N) A) -> (O) { P(i) = A(i - 1) where i in 1:N+1\n O(i) = P(i) }");
  ASSERT_EQ(p.statements.size(), 3u);
  EXPECT_EQ(p.statements[0].tensor, "P");
  EXPECT_EQ(to_text(p.statements[0].value), "0.0");
  EXPECT_EQ(ranges_of(p, 0), "d0 in 0:N + 1");
}

TEST(Ranges, R5_CoveredTemporaryIsNotFilled) {
  EXPECT_EQ(program_from("def f(float(N) A) -> (O) { P(i) = A(i)\n O(i) = P(i) }").statements.size(), 2u);
}

TEST(Ranges, R6_GuardedReadNeedsItsBoundsWhereTheGuardHolds) {
  const Program p =
      program_from("def f(float(H) I) -> (P) { P(h) = (h >= 1 && h <= H) ? I(h-1) : 0.0 where h in 0:H+2 }");
  EXPECT_EQ(ranges_of(p), "h in 0:H + 2");
  EXPECT_EQ(p.preconditions.size(), 0u);
}

TEST(Ranges, R6_GuardTakesPartInInference) {
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) = i >= 1 ? A(i - 1) : 0.0 }")), "i in 0:N + 1");
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) +=! j <= i ? A(j) : 0.0 where i in 0:N }")),
            "i in 0:N, j in 0:N");
  EXPECT_EQ(ranges_of(program_from(R"(def f(float(H) I, float(K) W) -> (O) {
    O(h) +=! (h + k >= 1 && h + k <= H ? I(h + k - 1) : 0.0) * W(k) where h in 0:H + 3 - K })")),
            "h in 0:H - K + 3, k in 0:K");
}

TEST(Ranges, R6_TooWeakAGuardIsAnError) {
  EXPECT_EQ(error_of("def f(float(H) I) -> (P) { P(h) = h >= 1 ? I(h) : 0.0 where h in 0:H+2 }"),
            "'I' has extent H in dimension 0, but I(h) reads it at H + 1");
}

TEST(Ranges, R7_UnprovedBoundsBecomePreconditions) {
  const std::string text = "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) + B(i) where i in 0:N }";
  const Program p = program_from(text);
  ASSERT_EQ(p.preconditions.size(), 2u);
  EXPECT_EQ(to_text(p.preconditions[0].condition), "1 <= N");
  EXPECT_EQ(to_text(p.preconditions[1].condition), "N <= M");
  EXPECT_EQ(p.preconditions[1].sentence, "B(i) reads outside 'B': it needs N <= M, but N is {N} and M is {M}");
  EXPECT_EQ(ranges_of(specialised_from(text, {{"N", 5}, {"M", 5}})), "i in 0:5");
  EXPECT_EQ(sentence(try_specialised(text, {{"N", 5}, {"M", 4}})),
            "B(i) reads outside 'B': it needs N <= M, but N is 5 and M is 4");
}

/// A quotient of N - 1 by a stride that is at least 1 is at least -1: nothing is asked of a call for that.
TEST(Ranges, AStrideIsTheOnlyPrecondition) {
  const Program p = program_from("def f(int s, float(N) x) -> (y) { y(i) = x(s * i) }");
  ASSERT_EQ(p.preconditions.size(), 1u);
  EXPECT_EQ(to_text(p.preconditions[0].condition), "1 <= s");
}

TEST(Ranges, R7_NeverTrueIsACompileError) {
  EXPECT_EQ(error_of("def f(float(N) A) -> (O) { O(i) = A(i + 1) where i in 0:N }"),
            "'A' has extent N in dimension 0, but A(i + 1) reads it at N");
}

TEST(Ranges, R7_ConditionsThatNeedConcreteSizesAreDecidedThen) {
  const std::string text = "def f(float(N) A, float(P) B) -> (O) { O(i) = A(i / P) * B(i % P) where i in 0:N*P }";
  EXPECT_EQ(ranges_of(specialised_from(text, {{"N", 3}, {"P", 4}})), "i in 0:12");
  const Program p = program_from(text);
  EXPECT_TRUE(std::ranges::any_of(p.preconditions, [](const Precondition& precondition) {
    return !precondition.condition.defined() && precondition.sentence == "A(i / P) is decided when the sizes are known";
  }));
  const std::string wrong = "def f(float(N) A, float(P) B) -> (O) { O(i) = A(i % P) * B(i / N) where i in 0:N*P }";
  EXPECT_EQ(sentence(try_specialised(wrong, {{"N", 3}, {"P", 4}})),
            "'A' has extent 3 in dimension 0, but A(i % P) reads it at 3 for i = 3");
}

TEST(Ranges, R8_DivisionFloorsInInference) {
  // floor((N - 2) / 2) + 1, also for N = 1, where rounding toward zero would give 1.
  const std::string text = "def f(float(N) A) -> (O) { O(i) +=! A(2 * i + k) where k in 0:2 }";
  EXPECT_EQ(shape_of(specialised_from(text, {{"N", 7}}), "O"), "(3)");
  EXPECT_EQ(sentence(try_specialised(text, {{"N", 1}})),
            "no value of 'i' keeps A(2 * i + k) inside 'A': it needs 2 <= N, but N is 1");
}

TEST(Ranges, R8_ConstantDivisorsAreNodesOthersCalls) {
  const Program p = program_from("def f(int(N) A, int(N) B) -> (O) { O(i) = A(i) / 4 + A(i) % B(i) }");
  const auto* sum = p.statements[0].value.as<Halide::Internal::Add>();
  ASSERT_TRUE(sum);
  EXPECT_TRUE(sum->a.as<Halide::Internal::Div>());
  ASSERT_TRUE(sum->b.as<Halide::Internal::Call>());
  EXPECT_EQ(sum->b.as<Halide::Internal::Call>()->name, "tc.floor_mod");
}

TEST(Ranges, R8_ZeroDivisorGivesZero) {
  const Program p = program_from("def f(int(N) A) -> (O) { O(i) = A(i) / 0 }");
  EXPECT_EQ(to_text(p.statements[0].value), "0");
}

TEST(Ranges, R9_IndexArithmeticIs64Bits) {
  const Program p = specialised_from("def f(uint8(N) A) -> (O) { O(i) = A(i) }", {{"N", 3'000'000'000}});
  EXPECT_EQ(ranges_of(p), "i in 0:3000000000");
  EXPECT_EQ(sentence(try_specialised("def f(int(N) A) -> (O) { O(i) = A(i) + i }", {{"N", 3'000'000'000}})),
            "'i' does not fit int32 as a value: it is 2147483648 for i = 2147483648; int64(i) does");
}

TEST(Ranges, C10_EmptyWhereIsAnError) {
  EXPECT_EQ(sentence(try_specialised("def f(float(N) A) -> (O) { O(i) = A(i) where i in 2:N }", {{"N", 2}})),
            "the range 'i in 2:N' is empty or reversed: it needs 3 <= N, but N is 2");
  EXPECT_EQ(ranges_of(specialised_from("def f(float(N) A) -> (O) { O(i) = A(i) where i in 2:N }", {{"N", 3}})),
            "i in 2:3");
}

TEST(Ranges, C10_WhereRangedIndexReducesUnused) {
  const Program p = program_from("def f() -> (int(3) O) { O(i) +=! 1 where k in 0:5 }");
  EXPECT_EQ(ranges_of(p), "i in 0:3, k in 0:5");
  EXPECT_TRUE(p.statements[0].indices[1].is_reduction);
}

TEST(Ranges, C10_ExistsTakesPartInInferenceOnly) {
  const Program p = program_from("def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) where exists B(i + 1) }");
  EXPECT_EQ(ranges_of(p), "i in 0:min(M - 1, N)");
}

TEST(Ranges, C8_DataDependentReadsAreListedForRunTime) {
  const Program p = program_from("def f(float(N) X, int(A,B) I) -> (Z) { Z(i,j) = X(I(i,j)) }");
  const auto checks = run_time_checks(p);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].statement, "S0");
  EXPECT_EQ(checks[0].tensor, "X");
  EXPECT_EQ(to_text(checks[0].subscript), "I(i, j)");
  EXPECT_EQ(to_text(checks[0].extent), "N");
  EXPECT_FALSE(checks[0].is_write);
}

TEST(Ranges, C8_AffineReadsAreProved) {
  EXPECT_TRUE(run_time_checks(program_from("def f(float(N) X) -> (Z) { Z(i) = X(i) }")).empty());
}

TEST(Ranges, R3_ExtentThatNamesItselfIsAnError) {
  EXPECT_EQ(error_of("def f(float x) -> (O) { O(i) = x where i in 0:O.0 }"),
            "the extent of 'O' in dimension 0 is not determined: write it in the list of results");
}

TEST(Ranges, R6_GuardsOverRunTimeScalarsProveNothing) {
  EXPECT_EQ(error_of("def f(float s, float(N) A) -> (O) { O(i) = 0.0 < s ? A(i + 1) : 0.0 where i in 0:N }"),
            "'A' has extent N in dimension 0, but A(i + 1) reads it at N");
  EXPECT_EQ(ranges_of(program_from("def f(int64 s, float(N) A) -> (O) { O(i) = i < s ? A(i) : 0.0 where i in 0:N }")),
            "i in 0:N");
}

TEST(Ranges, UndeterminedScatterExtentIsAnError) {
  EXPECT_EQ(error_of("def f(int(N) I) -> (H) { H(I(i)) +=! 1 }"),
            "the extent of 'H' in dimension 0 is not determined: write it in the list of results");
}

}  // namespace
}  // namespace tc::ir
