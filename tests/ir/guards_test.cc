// R6 and R10: ranges of guarded reads, and results that are written in part.
#include <gtest/gtest.h>

#include "tc/ir/bounds.h"
#include "tc/ir/expr_text.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

using testing::program_from;
using testing::specialised_from;
using testing::try_program;
using testing::try_specialised;

std::string ranges_of(const Program& program, size_t statement = 0) {
  std::string text;
  for (const Index& index : program.statements.at(statement).indices) {
    text +=
        fmt::format("{}{} in {}:{}", text.empty() ? "" : ", ", index.name, to_text(index.begin), to_text(index.end));
  }
  return text;
}

template <typename T>
std::string sentence(const Result<T>& result) {
  return result ? "no error" : result.error().diagnostics().at(0).message;
}

std::string ranges_at(const std::string& text, const std::map<std::string, int64_t>& sizes) {
  const auto program = try_specialised(text, sizes);
  return program ? ranges_of(*program) : sentence(program);
}

TEST(Guards, R6_AGuardedReadNarrowsNothingThatElseIsBound) {
  // By an unguarded read: i keeps 0:N, and the guard must do for X(i + 1).
  EXPECT_EQ(sentence(try_program("def f(float(N) X, float(N) Y) -> (O) { O(i) = Y(i) > 0.0 ? X(i + 1) : Y(i) }")),
            "'X' has extent N in dimension 0, but X(i + 1) reads it at N");
  EXPECT_EQ(ranges_of(program_from(
                "def f(float(N) X, float(N) Y) -> (O) { O(i) = i + 1 < N ? X(i + 1) : Y(i) where exists Y(i) }")),
            "i in 0:N");
  // By another statement.
  EXPECT_EQ(ranges_of(program_from("def f(float(N) X, float(N) Y) -> (O) { O(i) = i >= 1 ? X(i - 1) : 0.0\n"
                                   "O(i) += Y(i) }")),
            "i in 0:N");
}

TEST(Guards, R6_TheErrorSaysWhichGuardWouldDo) {
  const auto wrong = try_program("def f(float(N) X, float(N) Y) -> (O) { O(i) = Y(i) > 0.0 ? X(i + 1) : Y(i) }");
  ASSERT_FALSE(wrong.has_value());
  const auto& notes = wrong.error().diagnostics()[0].notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1].text, "add 'i + 1 < N' to its guard");
}

TEST(Guards, R6_RemaindersAreExact) {
  const std::string text = "def f(float(D) X) -> (float(D) Y) { Y(i) = i % 2 == 0 ? -X(i + 1) : X(i - 1) }";
  const Program p = program_from(text);
  EXPECT_EQ(ranges_of(p), "i in 0:D");
  ASSERT_EQ(p.preconditions.size(), 1u);
  EXPECT_EQ(ranges_at(text, {{"D", 6}}), "i in 0:6");
  EXPECT_EQ(ranges_at(text, {{"D", 5}}),
            "X(i + 1) reads outside 'X': it needs D % 2 == 0, but D is 5; add 'i + 1 < D' to its guard");
}

TEST(Guards, R6_AnIndexOfGuardedReadsOnlyTakesTheLargestRange) {
  const std::string pairs = "def f(float(D) X) -> (Y) { Y(i) = i % 2 == 0 ? -X(i + 1) : X(i - 1) }";
  for (int64_t d = 2; d <= 9; ++d) EXPECT_EQ(ranges_at(pairs, {{"D", d}}), fmt::format("i in 0:{}", d / 2 * 2));
  const std::string even = "def f(float(D) X) -> (Y) { Y(i) = i % 2 == 0 ? X(i) : 0.0 }";
  for (int64_t d = 1; d <= 9; ++d) EXPECT_EQ(ranges_at(even, {{"D", d}}), fmt::format("i in 0:{}", (d + 1) / 2 * 2));
  // The longest interval, not the first: 2 alone is allowed, then 5 and all that follow in X.
  const std::string gap = "def f(float(D) X) -> (Y) { Y(i) = i != 2 ? X(i - 5) : 0.0 }";
  EXPECT_EQ(ranges_at(gap, {{"D", 4}}), "i in 5:9");
  const std::string either = "def f(float(D) X) -> (Y) { Y(i) = (i >= 1 && i < 4) || i >= 6 ? X(i - 1) : 0.0 }";
  EXPECT_EQ(ranges_at(either, {{"D", 9}}), "i in 0:10");
  const std::string nested = "def f(float(D) X) -> (Y) { Y(i) = i < 2 ? 0.0 : (i >= 3 ? X(i - 3) : X(i)) }";
  EXPECT_EQ(ranges_at(nested, {{"D", 7}}), "i in 0:10");
}

TEST(Guards, R6_AnIndexWaitsForTheExtentsOfItsGuardedReads) {
  // That of O comes in the round in which X alone would leave P the range 0:N.
  const Program p =
      program_from("def f(float(N) X) -> (O, P) { O(i) = i >= 1 ? X(i - 1) : 0.0 P(i) = i >= 0 ? O(i) : X(i) }");
  EXPECT_EQ(to_text(p.tensor("O").extents[0]), "N + 1");
  EXPECT_EQ(to_text(p.statements[1].indices[0].end), "N + 1");
  EXPECT_EQ(p.statements[1].indices[0].end_by.rule, RangeRule::kGuardedReads);
  // Where extents wait for each other, those that are known decide.
  EXPECT_EQ(ranges_of(program_from("def f(float(N) X) -> (O, P) { O(i) = i >= 1 ? X(i - 1) : P(i + 1) "
                                   "P(i) = i >= 1 ? X(i - 1) : O(i + 1) }")),
            "i in 0:N + 1");
}

TEST(Guards, R6_GuardsThatLeaveAnIndexWithoutEnd) {
  EXPECT_EQ(ranges_of(program_from("def f(float(N) A) -> (O) { O(i) +=! j <= i ? A(j) : 0.0 where i in 0:N }")),
            "i in 0:N, j in 0:N");
  const Program p = program_from("def f(float(H) I) -> (O) { O(h) = h >= 1 && h <= H ? I(h - 1) : 0.0 }");
  EXPECT_EQ(ranges_of(p), "h in 0:H + 1");
  EXPECT_EQ(p.statements[0].indices[0].end_by.rule, RangeRule::kBesideGuards);
}

TEST(Guards, R6_AnIndexDoesNotEndBeforeItsLastRead) {
  // Without its guard X ends k at 0:1, whatever k the guard allows.
  const std::string dilated =
      "def f(float(T) X, float(K) W) -> (O) { O(t) +=! t >= 3 * k ? X(t - 3 * k) * W(k) : 0.0 where t in 0:T }";
  EXPECT_EQ(ranges_at(dilated, {{"T", 6}, {"K", 2}}), "t in 0:6, k in 0:2");
  EXPECT_EQ(ranges_at(dilated, {{"T", 9}, {"K", 4}}), "t in 0:9, k in 0:3");
  EXPECT_EQ(ranges_at(dilated, {{"T", 17}, {"K", 3}}), "t in 0:17, k in 0:3");
  // For H = 1 and K = 2, say, no k is in bounds without the guard, and the guard ends it.
  const std::string padded =
      "def f(float(H) X, float(K) W) -> (O) { O(h) +=! (h + k - 1 >= 0 && h + k - 1 < H) ? X(h + k - 1) * W(k) : 0.0 "
      "where h in 0:H+2-K+1 }";
  EXPECT_EQ(ranges_at(padded, {{"H", 7}, {"K", 3}}), "h in 0:7, k in 0:3");
  EXPECT_EQ(ranges_at(padded, {{"H", 1}, {"K", 2}}), "h in 0:2, k in 0:2");
}

TEST(Guards, R6_NegationsOfWhatDataDecideProveNothing) {
  EXPECT_EQ(sentence(try_program("def f(float(N) X, float(N) Y) -> (O) "
                                 "{ O(i) = !(Y(i) > 0.0 || i + 1 < N) ? X(i) : X(i + 1) where i in 0:N }")),
            "'X' has extent N in dimension 0, but X(i + 1) reads it at N");
  EXPECT_EQ(ranges_of(program_from("def f(float(N) X, float(N) Y) -> (O) "
                                   "{ O(i) = !(Y(i) > 0.0 && i + 1 < N) ? X(i) : X(i + 1) where i in 0:N }")),
            "i in 0:N");
}

TEST(Guards, R6_WhoSetsTheEnds) {
  const Program p = program_from(R"(def f(float(N) X, float(N) Y) -> (float(N) A, B) {
    A(i) = i >= 1 ? X(i - 1) : 0.0
    B(i) = X(i + 1) * Y(i)
    B(i) += X(i) where i in 0:N - 1 })");
  EXPECT_EQ(p.statements[0].indices[0].end_by.rule, RangeRule::kAnnotation);
  ASSERT_EQ(p.statements[1].indices[0].end_by.rule, RangeRule::kReads);
  ASSERT_EQ(p.statements[1].indices[0].end_by.reads.size(), 1u);
  EXPECT_EQ(p.source->text(p.statements[1].indices[0].end_by.reads[0]), "X(i + 1)");
  EXPECT_EQ(p.statements[2].indices[0].end_by.rule, RangeRule::kWhere);
}

/// Where the last read that a guard allows ends a range, there is none of an empty tensor.
TEST(Guards, R6_EmptyTensorsAreNotRead) {
  const std::string quotient =
      "def f(float(N) X, float(K) W) -> (y) { y(t) +=! t >= k && t - k < 5 ? X((t - k) / 5) * W(k) : 0.0 }";
  EXPECT_EQ(ranges_at(quotient, {{"N", 0}, {"K", 3}}), "t in 0:0, k in 0:3");
  const std::string strided =
      "def f(float(N) X, float(K) W) -> (y) {"
      "  y(t) +=! t >= 2*k && (t + k) % 2 == 0 && t < N + K ? X((t - 2 * k) / 2) * W(k) : 0.0 }";
  EXPECT_EQ(ranges_at(strided, {{"N", 0}, {"K", 3}}), "t in 0:0, k in 0:3");
  EXPECT_EQ(ranges_at(strided, {{"N", 5}, {"K", 3}}), "t in 0:10, k in 0:3");
  const std::string either =
      "def f(float(N) X, float(M) Z) -> (y) { y(i) = (i < N ? X(i) : 0.0) + (i < M ? Z(i) : 0.0) }";
  EXPECT_EQ(ranges_at(either, {{"N", 0}, {"M", 5}}), "i in 0:5");
  EXPECT_EQ(ranges_at(either, {{"N", 7}, {"M", 5}}), "i in 0:7");
}

TEST(Guards, R10_AResultIsWrittenInFull) {
  EXPECT_EQ(
      sentence(try_program("def f(float(N) X) -> (float(N) O) { O(i) = X(i + 1) }")),
      "O(i) writes a part of 'O' only, as its reads give i in 0:N - 1, and dimension 0 has extent N: write 'where "
      "i in 0:N - 1' if that is meant");
  const std::string two = "def f(float(N) X, float(M) Y) -> (float(M) O) { O(i) = X(i) }";
  EXPECT_EQ(ranges_at(two, {{"N", 3}, {"M", 3}}), "i in 0:3");
  EXPECT_EQ(ranges_at(two, {{"N", 3}, {"M", 5}}),
            "O(i) writes a part of 'O' only, as its reads give i in 0:N: it needs M == N, but N is 3 and M is 5; write "
            "'where i in 0:N' if that is meant");
}

TEST(Guards, R10_AWhereSaysWhichPart) {
  EXPECT_EQ(ranges_of(program_from("def f(float(N) X) -> (float(N) O) { O(i) = X(i + 1) where i in 0:N - 1 }")),
            "i in 0:N - 1");
}

TEST(Guards, R10_SeveralStatementsMayWriteTheWhole) {
  EXPECT_TRUE(
      try_program("def f(float(N) X) -> (float(N + 1) O) { O(i) = 1.0 where i in 0:1\n O(i) = X(i - 1) }").has_value());
  EXPECT_FALSE(
      try_program("def f(float(N) X) -> (float(N + 1) O) { O(i) = 1.0 where i in 1:2\n O(i) = X(i - 1) }").has_value());
}

TEST(Guards, R10_HalfSplitRotationIsWrittenInFullOrRefused) {
  const std::string text = R"(def f(float(S,D) X, float(S,E) C) -> (float(S,D) O) {
    O(s,d) = d < E ? X(s,d) * C(s,d) : X(s,d) * C(s,d - E) })";
  EXPECT_EQ(ranges_at(text, {{"S", 2}, {"D", 8}, {"E", 4}}), "s in 0:2, d in 0:8");
  EXPECT_NE(ranges_at(text, {{"S", 2}, {"D", 9}, {"E", 4}}).find("it needs"), std::string::npos);
}

}  // namespace
}  // namespace tc::ir
