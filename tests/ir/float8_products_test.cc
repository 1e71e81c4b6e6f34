#include "tc/ir/float8_products.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"

namespace tc::testing {
namespace {

/// Whether the only sum of a def is one of products of 8-bit floats.
bool sums_products(const std::string& text) {
  const ir::Program program = program_from(text);
  for (const ir::Statement& s : program.statements) {
    if (s.assign == ir::Assign::kAdd) return ir::sums_float8_products(program, s);
  }
  ADD_FAILURE() << "no sum in " << text;
  return false;
}

TEST(Float8Products, OfElements) {
  EXPECT_TRUE(sums_products("def f(float8_e4m3(M,K) A, float8_e5m2(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"));
  EXPECT_TRUE(
      sums_products("def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (half(M,N) C) {"
                    "  C(m,n) +=! half(A(m,k)) * half(B(n,k)) }"));
  EXPECT_TRUE(sums_products("def f(float8_e4m3(K) A) -> (C) { C +=! A(k) * A(k) }"));
}

TEST(Float8Products, OfWhatOnlyMovesElements) {
  EXPECT_TRUE(
      sums_products("def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (float(M,N) C) {"
                    "  C(m,n) +=! (k > 0 ? A(m,k - 1) : 0) * B(n,k) where k in 1:K }"));
  EXPECT_TRUE(
      sums_products("def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (float(M,N) C) {"
                    "  half T(k,m) = half(A(m,k))\n"
                    "  C(m,n) +=! float(T(k,m)) * B(n,k) }"));
  EXPECT_TRUE(
      sums_products("def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (float(M,N) C) {"
                    "  P(m,n,k) = A(m,k) * B(n,k)\n"
                    "  C(m,n) +=! P(m,n,k) }"));
}

TEST(Float8Products, OfNothingElse) {
  EXPECT_FALSE(
      sums_products("def f(float8_e4m3(M,K) A, half(N,K) B) -> (float(M,N) C) {"
                    "  C(m,n) +=! A(m,k) * float(B(n,k)) }"));
  EXPECT_FALSE(sums_products("def f(half(M,K) A, half(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"));
  EXPECT_FALSE(sums_products("def f(float8_e4m3(M,K) A) -> (C) { C(m) +=! A(m,k) }"));
  EXPECT_FALSE(
      sums_products("def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (C) {"
                    "  C(m,n) +=! exp(A(m,k)) * B(n,k) }"));
  EXPECT_FALSE(
      sums_products("def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B, float(K) s) -> (C) {"
                    "  C(m,n) +=! s(k) * A(m,k) * B(n,k) }"));
  EXPECT_FALSE(
      sums_products("def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (float(M,N) C) {"
                    "  T(m,k) = 2 * A(m,k)\n"
                    "  C(m,n) +=! T(m,k) * B(n,k) }"));
}

}  // namespace
}  // namespace tc::testing
