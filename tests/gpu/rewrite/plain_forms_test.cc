#include <gtest/gtest.h>

#include <algorithm>

#include "tc/gpu/rewrite/divide_later.h"
#include "tc/gpu/rewrite/join_digits.h"
#include "tc/gpu/rewrite/pad_operands.h"
#include "tc/gpu/rewrite/reuse_temporaries.h"
#include "tc/gpu/rewrite/trailing_units.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"

/// What brings programs into plain forms, and what it leaves alone. twins_test.cc runs what becomes of them.
namespace tc::testing {
namespace {

using Pass = std::function<ir::Program(ir::Program)>;

ir::Program of(const std::string& text) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& name : program_from("def f(" + text).sizes) sizes[name] = 8;
  return specialised_from("def f(" + text, sizes);
}

/// The statements of a program, without their ranges.
std::vector<std::string> statements_of(const ir::Program& program) {
  std::vector<std::string> result;
  std::string line;
  for (const char c : ir::to_text(program) + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (const size_t at = line.find(": "); at != std::string::npos) result.push_back(line.substr(at + 2));
    line.clear();
  }
  return result;
}

void expect_unchanged(const Pass& pass, const std::vector<const char*>& texts) {
  for (const char* text : texts) EXPECT_EQ(statements_of(pass(of(text))), statements_of(of(text))) << text;
}

using Lines = std::vector<std::string>;

TEST(JoinDigits, DigitsOfTheLastDimensionBecomeOneIndex) {
  const Pass pass = [](ir::Program p) { return gpu::join_digits(std::move(p), [](const auto&...) { return true; }); };
  EXPECT_EQ(statements_of(pass(of("float(N,4) X) -> (O) { O(4*n+d) = X(n,d) }"))),
            (Lines{"O(n_d) = X(n_d / 4, n_d % 4)"}));
  EXPECT_EQ(
      statements_of(pass(
          of("float(N,3,2) X) -> (float(6*N+1) O) { O(6*n+2*a+b+1) = X(n,a,b) where n in 0:N, a in 0:3, b in 0:2 }"))),
      (Lines{"O(n_a_b + 1) = X(n_a_b / 6, n_a_b / 2 % 3, n_a_b % 2)"}));
  EXPECT_EQ(statements_of(pass(of("float(N) A, float(N) B) -> (float(2*N) O) { O(2*j+1) = A(j)  O(2*i) = B(i) }"))),
            (Lines{"O(j) = select(j % 2 == 0, B(j / 2), A(j / 2))"}));
  // Gaps; an index in two dimensions; three residues of four; a residue that is read; sums.
  expect_unchanged(
      pass, {"float(N,3) X) -> (float(4*N) O) { O(4*n+d) = X(n,d) where n in 0:N, d in 0:3 }",
             "float(N,4) X) -> (float(N,4*N) O) { O(n,4*n+d) = X(n,d) where n in 0:N }",
             "float(N) A) -> (float(4*N) O) { O(4*j) = A(j) where j in 0:N  O(4*j+1) = A(j) where j in 0:N  O(4*j+2) = "
             "A(j) where j in 0:N }",
             "float(N) A) -> (float(2*N) O) { O(2*j) = A(j) where j in 0:N  O(2*j+1) = O(2*j) + A(j) where j in 0:N }",
             "float(N,4,4) X) -> (float(4*N) O) { O(4*n+d) +=! X(n,d,k) }"});
}

TEST(TrailingUnits, DimensionsOfOneElementGo) {
  EXPECT_EQ(
      statements_of(gpu::drop_trailing_units(of("float(M,N) X, float(N,1) W) -> (Y) { Y(m,n) +=! X(m,k) * W(k,n) }"))),
      (Lines{"Y(m) +=! X(m, k) * W(k)"}));
  EXPECT_EQ(statements_of(gpu::drop_trailing_units(of("float(M,1,1) X) -> (Y) { Y(m,i) +=! X(m,i,k) }"))),
            (Lines{"Y(m) +=! X(m)"}));
  EXPECT_EQ(statements_of(gpu::drop_trailing_units(of("float(1,1) X) -> (Y) { Y(m,i) = X(m,i) + i }"))),
            (Lines{"Y(m) = X(m) + float32(int32(0))"}));
  expect_unchanged(
      gpu::drop_trailing_units,
      {"float(1,N) X) -> (Y) { Y(i,n) = X(i,n) }", "float(N,K) X) -> (float(N,1) S) { S(n,k/8) +=! X(n,k) }",
       "float(N,1) X) -> (O) { O(i,n) = i >= 1 ? X(n,i-1) : 0.0 where i in 0:2 }",
       "float(N,K) X, int32(K) I) -> (float(N,1) S) { S(n,I(k)) +=! X(n,k) }"});
}

TEST(ReuseTemporaries, ResultsAreMaskedInPlace) {
  const Pass pass = [](ir::Program p) {
    return gpu::reuse_temporaries(
        std::move(p), [](const auto&...) { return true; }, [](const auto&) { return true; });
  };
  EXPECT_EQ(
      statements_of(pass(of("float(M,K) A, float(K,N) B) -> (R) { S(m,n) +=! A(m,k) * B(k,n)  "
                            "T(m,n) = m <= n ? S(m,n) : 0  R(m) max=! T(m,n) }"))),
      (Lines{"S(m, n) +=! A(m, k) * B(k, n)", "S(m, n) = select(m <= n, S(m, n), float32(0))", "R(m) max=! S(m, n)"}));
  // Another reader; another type; another place; a result.
  expect_unchanged(
      pass,
      {"float(M,K) A, float(K,N) B) -> (R, Q) { S(m,n) +=! A(m,k) * B(k,n)  T(m,n) = S(m,n) * 2  R(m) +=! T(m,n)  "
       "Q(m) +=! S(m,n) }",
       "float(M,K) A, float(K,N) B) -> (R) { S(m,n) +=! A(m,k) * B(k,n)  T(m,n) = half(S(m,n))  R(m) max=! T(m,n) }",
       "float(M,K) A, float(K,M) B) -> (R) { S(m,n) +=! A(m,k) * B(k,n)  T(m,n) = S(n,m) * 2  R(m) +=! T(m,n) }",
       "float(M,K) A, float(K,N) B) -> (T) { S(m,n) +=! A(m,k) * B(k,n)  T(m,n) = S(m,n) * 2 }"});
}

TEST(DivideLater, TheSumsOfProbabilitiesAreDivided) {
  const std::string head =
      "float(N,M) S, half(M,D) V) -> (float(N,D) O) { top(n) max=! S(n,m)  L(n) +=! exp(S(n,m) - top(n))  ";
  EXPECT_EQ(statements_of(gpu::divide_later(
                of(head + "P(n,m) = half(exp(S(n,m) - top(n)) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }"))),
            (Lines{"top(n) max=! S(n, m)", "P_element(n, m) = exp(S(n, m) - top(n))", "L(n) +=! P_element(n, m)",
                   "P(n, m) = float16(P_element(n, m))", "O(n, d) +=! float32(P(n, m)) * float32(V(m, d))",
                   "O(n, d) = O(n, d) / L(n)"}));
  const std::string scaled =
      "float(N,M) S, half(M,D) V) -> (float(N,D) O) { top(n) max=! S(n,m)  E(n,m) = exp2(1.5 * (S(n,m) - top(n)) / 8)  "
      "L(n) +=! E(n,m)  P(n,m) = half(E(n,m) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }";
  const std::string biased =
      "float(N,M) S, half(M,D) V, float(M) b) -> (float(N,D) O) { top(n) max=! S(n,m) * 0.125 + b(m)  "
      "E(n,m) = exp(S(n,m) * 0.125 + b(m) - top(n))  L(n) +=! E(n,m)  P(n,m) = half(E(n,m) / L(n))  "
      "O(n,d) +=! P(n,m) * V(m,d) }";
  for (const std::string& text : {scaled, biased}) {
    EXPECT_EQ(statements_of(gpu::divide_later(of(text))).back(), "O(n, d) = O(n, d) / L(n)") << text;
  }
  // By a reciprocal, in place or in rows of its own; a float that the product rounds.
  const std::string by_reciprocal = "O(n, d) = O(n, d) * (1.0 / L(n))";
  EXPECT_EQ(statements_of(gpu::divide_later(of(head + "P(n,m) = half(exp(S(n,m) - top(n)) * (1.0 / L(n)))  O(n,d) +=! "
                                                      "P(n,m) * V(m,d) }")))
                .back(),
            by_reciprocal);
  EXPECT_EQ(statements_of(gpu::divide_later(of(head + "R(n) = 1.0 / L(n)  P(n,m) = R(n) * exp(S(n,m) - top(n))  "
                                                      "O(n,d) +=! half(P(n,m)) * V(m,d) }")))
                .back(),
            by_reciprocal);
  const std::vector<std::string> others = {
      // No maximum of the same numbers; of others; the operand is read twice; a divisor of each element; no half.
      "float(N,M) S, half(M,D) V, float(N) L) -> (float(N,D) O) { P(n,m) = half(exp(S(n,m)) / L(n))  "
      "O(n,d) +=! P(n,m) * V(m,d) }",
      "float(N,M) S, half(M,D) V, float(N) L) -> (float(N,D) O) { top(n) max=! S(n,m) * 0.5  "
      "P(n,m) = half(exp(S(n,m) - top(n)) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }",
      head + "P(n,m) = half(exp(S(n,m) - top(n)) / L(n))  O(n,d) +=! P(n,m) * V(m,d)  O(n,d) += P(n,0) }",
      head + "P(n,m) = half(exp(S(n,m) - top(n)) / S(n,m))  O(n,d) +=! P(n,m) * V(m,d) }",
      head + "P(n,m) = exp(S(n,m) - top(n)) / L(n)  O(n,d) +=! P(n,m) * V(m,d) }",
      // Another number by the sum; rows of it that change.
      head + "P(n,m) = half(exp(S(n,m) - top(n)) * (2.0 / L(n)))  O(n,d) +=! P(n,m) * V(m,d) }",
      head +
          "R(n) = 1.0 / L(n)  R(n) = R(n) * 2  P(n,m) = half(exp(S(n,m) - top(n)) * R(n))  O(n,d) +=! P(n,m) * "
          "V(m,d) }",
      // A factor, which may be large; rows that the sum has and the operand lacks; a sum of something else.
      head + "P(n,m) = half(exp(S(n,m) - top(n)) * L(n))  O(n,d) +=! P(n,m) * V(m,d) }",
      head +
          "P(n,m) = half(exp(S(n,m) - top(n)) / L(n)) where n in 0:N-2, m in 0:M  O(n,d) +=! P(n,m) * V(m,d) where n "
          "in 0:N-2, m in 0:M, d in 0:D }",
      // Rounded products whose difference may be far from 0 where the number is the largest.
      "float(N,M) S, half(M,D) V) -> (float(N,D) O) { top(n) max=! S(n,m)  E(n,m) = exp2(fma(S(n,m), 1.5, -top(n) * "
      "1.5))  L(n) +=! E(n,m)  P(n,m) = half(E(n,m) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }",
      "float(N,M) S, half(M,D) V) -> (float(N,D) O) { top(n) max=! S(n,m)  E(n,m) = exp(S(n,m) * 0.3 - top(n) * 0.3)  "
      "L(n) +=! E(n,m)  P(n,m) = half(E(n,m) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }",
      // Of a product that may be rounded with what it is subtracted from.
      "float(N,M) S, half(M,D) V) -> (float(N,D) O) { top(n) max=! S(n,m) * 0.3  E(n,m) = exp(S(n,m) * 0.3 - top(n))  "
      "L(n) +=! E(n,m)  P(n,m) = half(E(n,m) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }",
      // Sums that leave out the largest.
      "float(N,M) S, half(M,D) V) -> (float(N,D) O) { top(n) max=! S(n,m)  E(n,m) = exp(S(n,m) - top(n))  "
      "L(n) +=! E(n,m) where n in 0:N, m in 0:M-2  P(n,m) = half(E(n,m) / L(n)) where n in 0:N, m in 0:M-2  "
      "O(n,d) +=! P(n,m) * V(m,d) where n in 0:N, m in 0:M-2, d in 0:D }",
      "float(N,M) S, half(M,D) V) -> (float(N,D) O) { top(n) max=! S(n,m)  L(n) +=! exp(S(n,m) - top(n)) * 0.5  "
      "P(n,m) = half(exp(S(n,m) - top(n)) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }"};
  for (const std::string& text : others) expect_unchanged(gpu::divide_later, {text.c_str()});
  const std::string text = "def f(" + head + "P(n,m) = half(exp(S(n,m) - top(n)) / L(n))  O(n,d) +=! P(n,m) * V(m,d) }";
  const ir::Program empty = specialised_from(text, {{"N", 8}, {"M", 0}, {"D", 8}});  // 0, and no 0 / 0
  EXPECT_EQ(statements_of(gpu::divide_later(empty)), statements_of(empty));
}

TEST(PadOperands, CopiesReadWithinTheirTensors) {
  const auto padded = [](const char* text) {
    return statements_of(gpu::pad_operands(
        of(text), [](const auto&...) { return false; }, [](const auto&...) { return true; }));
  };
  EXPECT_EQ(padded("float(N) X, float(3) w) -> (O) { O(i) +=! X(clamp(i+k-1,0,N-1)) * w(k) where i in 0:N, k in 0:3 }"),
            (Lines{"X_padded(d0) = X(max(min(d0, 8), 1) - 1)", "O(i) +=! X_padded(i + k) * w(k)"}));
  // Where the guard is false the copy has some element.
  EXPECT_EQ(
      padded("float(N,N) X, float(3) w) -> (O) { O(i) +=! i >= 2 ? X(i-2,(i+k)%N) * w(k) : 0.0 where i in 0:N, k in "
             "0:3 }"),
      (Lines{"X_padded(d0, d1) = X(max(d0 - 2, 0), d1 % 8)", "O(i) +=! i >= 2 ? X_padded(i, i + k) * w(k) : 0.0"}));
}

}  // namespace
}  // namespace tc::testing
