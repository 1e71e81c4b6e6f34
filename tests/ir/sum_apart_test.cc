#include "tc/ir/sum_apart.h"

#include <gtest/gtest.h>

#include "tc/ir/plain_choices.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

/// The statements of a program for sizes of 8, without their ranges.
std::string statements_of(const Program& program) {
  std::string result, line;
  for (const char c : to_text(program) + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (const size_t at = line.find(": "); at != std::string::npos) result += line.substr(at + 2) + "\n";
    line.clear();
  }
  return result;
}

Program of(const std::string& text) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& name : testing::program_from("def f(" + text).sizes) sizes[name] = 8;
  return testing::specialised_from("def f(" + text, sizes);
}

std::string apart(const std::string& text) {
  return statements_of(sums_apart(of(text), [](const auto&...) { return true; }));
}

TEST(SumApart, LeftSidesThatTellTheirIndices) {
  EXPECT_EQ(apart("float(N,K) A) -> (float(N) C) { C(N-1-n) +=! A(n,k) }"),
            "C_sum(n) +=! A(n, k)\nC(7 - n) = C_sum(n)\n");
  EXPECT_EQ(apart("float(N,K) A) -> (float(N+2) C) { C(n+2) +=! A(n,k) }"),
            "C_sum(n) +=! A(n, k)\nC(n + 2) = C_sum(n)\n");
  EXPECT_EQ(apart("float(M,N,K) A) -> (float(M+N,N) C) { C(m+n,n) max=! A(m,n,k) }"),
            "C_sum(m, n) max=! A(m, n, k)\nC(m + n, n) = C_sum(m, n)\n");
  EXPECT_EQ(apart("float(N,K) A) -> (float(N) C) { C(n-2) +=! A(n,k) where n in 2:N }"),
            "C_sum(n - 2) +=! A(n, k)\nC(n - 2) = C_sum(n - 2)\n");
}

TEST(SumApart, WhatIsThereIsAdded) {
  EXPECT_EQ(apart("float(N,K) A, float(N) D) -> (float(N) C) { C(n) = D(n)  C(N-1-n) += A(n,k) }"),
            "C(n) = D(n)\nC_sum(n) +=! A(n, k)\nC(7 - n) = C(7 - n) + C_sum(n)\n");
}

TEST(SumApart, OthersStay) {
  for (const char* text :
       {"float(N,K) A) -> (C) { C(n) +=! A(n,k) }", "float(N,K) A) -> (float(N) C) { C(n/2) +=! A(n,k) }",
        "float(M,N,K) A) -> (float(M+N) C) { C(m+n) +=! A(m,n,k) }",
        "float(N,K) A, int32(N) I) -> (float(N) C) { C(I(n)) +=! A(n,k) }",
        "float(N,K) A) -> (float(N+K) C) { C(n+k) +=! A(n,k) }", "float(N) A) -> (float(N) C) { C(N-1-n) = A(n) }"}) {
    const Program program = of(text);
    EXPECT_EQ(to_text(sums_apart(program, [](const auto&...) { return true; })), to_text(program)) << text;
  }
}

/// T3: sums of halves are floats, in a temporary with as many elements as the statement has sums.
TEST(SumApart, SumsOfHalvesAreAsManyAsTheirResults) {
  EXPECT_EQ(statements_of(of("half(N,K) A) -> (half(N) C) { C(N-1-n) +=! A(n,k) }")),
            "C_sum(n) +=! float32(A(n, k))\nC(7 - n) = float16(C_sum(n))\n");
  EXPECT_EQ(statements_of(of("half(M,K) A, half(N) b) -> (half(M,2*N) C) { C(m,n) +=! A(m,k) * b(n) where n in 0:N }")),
            "C_sum(m, n) +=! float32(A(m, k)) * float32(b(n))\nC(m, n) = float16(C_sum(m, n))\n");
  EXPECT_EQ(statements_of(of("half(N,K) A, half(N) D) -> (half(N) C) { C(n) = D(n)  C(N-1-n) += A(n,k) }")),
            "C(n) = D(n)\nC_sum(n) +=! float32(A(n, k))\nC(7 - n) = float16(float32(C(7 - n)) + C_sum(n))\n");
  EXPECT_EQ(statements_of(of("half(N) A, half(N) D) -> (half(N) C) { C(n) = D(n)  C(N-1-n) += A(n) }")),
            "C(n) = D(n)\nC(7 - n) = float16(float32(C(7 - n)) + float32(A(n)))\n");
}

std::string behind(const std::string& text) {
  return statements_of(choices_behind_sums(plain_choices(of(text)), [](const auto&...) { return true; }));
}

TEST(SumApart, ChoicesThatNoTermChangesComeBehindSums) {
  EXPECT_EQ(behind("float(N,K) A, float(M,K) B) -> (C) { C(n,m) +=! m <= n ? A(n,k) * B(m,k) : 0.0 }"),
            "C_sum(n, m) +=! A(n, k) * B(m, k)\nC(n, m) = select(m <= n, C_sum(n, m), 0.0)\n");
  EXPECT_EQ(behind("float(N,K) A, float(M,K) B, float(N,M) S) -> (float(N,M) C) "
                   "{ C(n,m) += S(n,m) > 0.5 ? A(n,k) * B(m,k) : 0.0 }"),
            "C_sum(n, m) +=! A(n, k) * B(m, k)\n"
            "C(n, m) = C(n, m) + select(S(n, m) > 0.5, C_sum(n, m), 0.0)\n");
  EXPECT_EQ(behind("float(N,K) A, float(M,K) B) -> (C) { C(n,m) max=! m <= n ? A(n,k) * B(m,k) : -inf }"),
            "C_sum(n, m) max=! A(n, k) * B(m, k)\nC(n, m) = select(m <= n, C_sum(n, m), -inf)\n");
}

TEST(SumApart, OtherChoicesStay) {
  for (const char* text : {
           "float(N,K) A, float(M,K) B) -> (C) { C(n,m) +=! k <= n ? A(n,k) * B(m,k) : 0.0 }",    // of some terms
           "float(N,K) A, float(M,K) B) -> (C) { C(n,m) +=! m <= n ? A(n,k) * B(m,k) : 1.0 }",    // no identity
           "float(N,K) A, float(M,K) B) -> (C) { C(n,m) max=! m <= n ? A(n,k) * B(m,k) : 0.0 }",  // of a maximum
           "float(N,K) A) -> (C) { C(n) +=! n > 3 ? A(n,k) : 0.0 }",                              // no product
           "float(N,K) A, float(M,K) B) -> (float(N,M) C) { C(n,m) +=! n > 3 ? A(n-4,k) * B(m,k) : 0.0 "
           "where n in 0:N }",  // reads beyond A
       }) {
    const Program program = plain_choices(of(text));
    EXPECT_EQ(to_text(choices_behind_sums(program, [](const auto&...) { return true; })), to_text(program)) << text;
  }
}

}  // namespace
}  // namespace tc::ir
