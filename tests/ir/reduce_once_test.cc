#include "tc/ir/reduce_once.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tc/ir/print.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

/// The lines of statements and their indices in a def's Program after the pass, without leading spaces.
std::string after(const std::string& text, const ReduceOnceOptions& options = {}) {
  const Program symbolic = testing::program_from("def f" + text);
  std::map<std::string, int64_t> sizes;
  for (const std::string& name : symbolic.sizes) sizes[name] = 8;
  std::istringstream lines(to_text(reduce_once(testing::specialised_from("def f" + text, sizes), options)));
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("S0") != std::string::npos) result += line.substr(line.find(": ") + 2) + "\n";
  }
  return result;
}

TEST(ReduceOnce, LeavesOutIndicesThatNoTermDependsOn) {
  EXPECT_EQ(after("(float(M,K) A, float(K) x) -> (C) { C(m,n) +=! A(m,k) * x(k) where n in 0:9 }"),
            "C_once(m) +=! A(m, k) * x(k)\nC(m, n) = C_once(m)\n");
  EXPECT_EQ(after("(float(M,K) A) -> (float(M,N) C) { C(m,n) += A(m,k) }"),
            "C_once(m) +=! A(m, k)\nC(m, n) += C_once(m)\n");
  EXPECT_EQ(after("(float(K) A) -> (C) { C(n) max=! A(k) where n in 0:9 }"), "C_once max=! A(k)\nC(n) = C_once\n");
  EXPECT_EQ(after("(float(M,K) A) -> (C) { C(m,n) *=! A(m,k) where n in 0:9, m in 2:7 }"),
            "C_once(m - 2) *=! A(m, k)\nC(m, n) = C_once(m - 2)\n");
}

TEST(ReduceOnce, TakesQuotientsAndRemaindersForIndices) {
  EXPECT_EQ(after("(float(M,K) A) -> (C) { C(m,n) +=! A(n / 2,k) where n in 0:7, m in 0:9 }"),
            "C_once(n_once) +=! A(n_once, k)\nC(m, n) = C_once(n / 2)\n");
  EXPECT_EQ(after("(float(M,K) A) -> (C) { C(n) min=! A(n % 3,k) where n in 0:9 }"),
            "C_once(n_once) min=! A(n_once, k)\nC(n) = C_once(n % 3)\n");
  const std::string both = "C(n) +=! A(n / 2, k) * B(n)\n";
  EXPECT_EQ(after("(float(M,K) A, float(N) B) -> (C) { C(n) +=! A(n / 2,k) * B(n) }"), both);
}

TEST(ReduceOnce, MultipliesFactorsAfterwards) {
  EXPECT_EQ(after("(int32(M,K) A, int32(N) s) -> (C) { C(m,n) +=! A(m,k) * s(n) }"),
            "C_once(m) +=! A(m, k)\nC(m, n) = s(n) * C_once(m)\n");
  EXPECT_EQ(after("(half(M,K) A, half(N) s) -> (float(M,N) C) { C(m,n) +=! A(m,k) * s(n) }"),
            "C_once(m) +=! float32(A(m, k))\nC(m, n) = float32(s(n)) * C_once(m)\n");
  // Sums of these may overflow, or the sum is none.
  for (const char* text : {"(float(M,K) A, float(N) s) -> (C) { C(m,n) +=! A(m,k) * s(n) }",
                           "(int32(M,K) A, int32(N) s) -> (C) { C(m,n) max=! A(m,k) * s(n) }"}) {
    EXPECT_EQ(after(text).find("once"), std::string::npos) << text;
  }
}

TEST(ReduceOnce, LeavesOtherReductions) {
  for (const char* text : {
           "(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
           "(int32(M,K) A, int32(K,N) B, int32(M) s) -> (C) { C(m,n) +=! A(m,k) * B(k,n) * s(m) }",
           "(float(M) A) -> (C) { C(m,n) = A(m) where n in 0:9 }",
           "(float(M) A, float(M,N) B) -> (float(M,N) C) { C(m,n) += A(m) where n in 0:N }",
           "(float(K) A) -> (C) { C(n) +=! A(k) where n in 0:1 }",
           "(float(K) A) -> (C) { C(n) +=! A(k) where n in 0:9, k in 3:4 }",
       }) {
    EXPECT_EQ(after(text).find("once"), std::string::npos) << text;
  }
  const char* small = "(float(K) A) -> (C) { C(n) +=! A(k) where n in 0:9 }";
  EXPECT_NE(after(small, {.least_instances = 64}).find("once"), std::string::npos);
  EXPECT_EQ(after(small, {.least_instances = 65}).find("once"), std::string::npos);
}

/// A sum from zero has the same order; one that goes on from other terms has not.
TEST(ReduceOnce, StrictKeepsTheOrderOfSumsOfFloats) {
  const auto changes = [](const char* text) { return after(text, {.strict = true}).find("once") != std::string::npos; };
  EXPECT_TRUE(changes("(float(K) A) -> (C) { C(n) +=! A(k) where n in 0:9 }"));
  EXPECT_TRUE(changes("(int32(K) A) -> (int32(N) C) { C(n) += A(k) }"));
  EXPECT_FALSE(changes("(float(K) A) -> (float(N) C) { C(n) += A(k) }"));
  EXPECT_FALSE(changes("(float(K) A) -> (float(N) C) { C(n / 2) +=! A(k) where n in 0:N }"));
  EXPECT_FALSE(changes("(half(M,K) A, half(N) s) -> (float(M,N) C) { C(m,n) +=! A(m,k) * s(n) }"));
}

}  // namespace
}  // namespace tc::ir
