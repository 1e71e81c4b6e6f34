#include "tc/ir/print.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"

namespace tc::ir {
namespace {

TEST(Print, Program) {
  const Program p = testing::program_from(
      "def f(int s, float a, float(N,K) A, float(K) x) -> (y) { t(i) +=! a * A(i,k) * x(k)\n y(i) = t(i + s) where i "
      "in 0:4 }");
  EXPECT_EQ(to_text(p), R"(program f
  size N
  size K
  constant int32 s
  scalar float32 a
  input float32(N,K) A
  input float32(K) x
  result float32(4) y
  temporary float32(N) t
  S0: t(i) +=! a * A(i, k) * x(k)
      map i in 0:N; reduce k in 0:K
  S1: y(i) = t(i + s)
      map i in 0:4
  precondition t(i + s) reads outside 't': it needs s + 4 <= N && 0 <= s
)");
}

TEST(Print, Report) {
  const Program p = testing::program_from(
      "def f(float(B,N) A, int(M) I, float(K) W) -> (O) { O(b,i) +=! A(b, i + k) * W(k)\n O(b,i) = O(b,i) * A(b, I(i)) "
      "}");
  EXPECT_EQ(report(p), R"(def f(float32(B,N) A, int32(M) I, float32(K) W) -> (float32(B,N - K + 1) O)
  O(b, i) +=! ...  map b in 0:B, i in 0:N - K + 1; reduce k in 0:K
      b ends by A(b, i + k) (R2)
      i ends by A(b, i + k) (R2)
      k ends by W(k) (R2)
  O(b, i) = ...  map b in 0:B, i in 0:min(N - K + 1, M)
      b ends by O(b,i) (R2)
      i ends by O(b,i) and I(i) (R2)
  a call needs K <= N: otherwise no value of 'i' keeps A(b, i + k) inside 'A'
  with --check_bounds: 0 <= I(i) < N in A(b, I(i))
)");
}

TEST(Print, SameProgramSameText) {
  const std::string text = "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) + B(i) where i in 0:N }";
  EXPECT_EQ(to_text(testing::program_from(text)), to_text(testing::program_from(text)));
}

}  // namespace
}  // namespace tc::ir
