#include "tc/gpu/rewrite/recompute_products.h"

#include <gtest/gtest.h>

#include "tc/ir/print.h"
#include "tests/common/program.h"

/// Products that are made again behind a reduction of their results.
namespace tc::testing {
namespace {

std::vector<std::string> statements_of(const ir::Program& program) {
  std::vector<std::string> result;
  for (const ir::Statement& s : program.statements) result.push_back(ir::statement_text(s));
  return result;
}

std::vector<std::string> recomputed(const std::string& text) {
  const std::map<std::string, int64_t> sizes = {{"N", 32}, {"D", 32}, {"M", 32}, {"E", 32}};
  const auto always = [](const ir::Program&, const ir::Program&, const gpu::MadeAgain&) { return true; };
  return statements_of(gpu::recompute_products(specialised_from(text, sizes), always));
}

/// Whether the program is left as it is.
bool stays(const std::string& text) {
  const std::map<std::string, int64_t> sizes = {{"N", 32}, {"D", 32}, {"M", 32}, {"E", 32}};
  return recomputed(text) == statements_of(specialised_from(text, sizes));
}

TEST(RecomputeProducts, MakesAgainWhatStatementsBehindAReductionRead) {
  EXPECT_EQ(recomputed(R"(
def f(float(N,D) Q, float(M,D) K, float(M,E) V) -> (O) {
  S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = m <= n ? S(n,m) : 0.0
  top(n) max=! S(n,m)
  P(n,m) = S(n,m) - top(n)
  O(n,e) +=! P(n,m) * V(m,e)
})"),
            (std::vector<std::string>{"S(n, m) +=! Q(n, d) * K(m, d)", "S(n, m) = select(m <= n, S(n, m), 0.0)",
                                      "top(n) max=! S(n, m)", "S_again(n, m) +=! Q(n, d) * K(m, d)",
                                      "S_again(n, m) = select(m <= n, S_again(n, m), 0.0)",
                                      "P(n, m) = S_again(n, m) - top(n)", "O(n, e) +=! P(n, m) * V(m, e)"}));
}

TEST(RecomputeProducts, LeavesResultsThatAreStoredAnyway) {
  EXPECT_TRUE(stays(R"(
def f(float(N,D) Q, float(M,D) K, float(M,E) V) -> (S, O) {
  S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  P(n,m) = S(n,m) - top(n)
  O(n,e) +=! P(n,m) * V(m,e)
})"));
}

TEST(RecomputeProducts, LeavesProductsWhoseOperandsChange) {
  EXPECT_TRUE(stays(R"(
def f(float(N,D) Q, float(N,D) R, float(M,D) K, float(M,E) V) -> (O) {
  X(n,d) = Q(n,d) + R(n,d)
  S(n,m) +=! X(n,d) * K(m,d)
  top(n) max=! S(n,m)
  X(n,d) = Q(n,d) - R(n,d)
  P(n,m) = S(n,m) - top(n)
  O(n,e) +=! P(n,m) * V(m,e) + X(n,m) * V(m,e)
})"));
}

TEST(RecomputeProducts, LeavesResultsThatNoProductReads) {
  EXPECT_TRUE(stays(R"(
def f(float(N,D) Q, float(M,D) K, float(E) c) -> (P, R) {
  S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  P(n,m) = S(n,m) - top(n)
  R(n,e) = top(n) + c(e)
})"));
}

TEST(RecomputeProducts, AsksWhetherItGains) {
  const ir::Program program = specialised_from(R"(
def f(float(N,D) Q, float(M,D) K, float(M,E) V) -> (O) {
  S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  P(n,m) = S(n,m) - top(n)
  O(n,e) +=! P(n,m) * V(m,e)
})",
                                               {{"N", 32}, {"D", 32}, {"M", 32}, {"E", 32}});
  gpu::MadeAgain asked;
  const ir::Program after = gpu::recompute_products(
      program, [&](const ir::Program& before, const ir::Program& changed, const gpu::MadeAgain& made) {
        EXPECT_EQ(statements_of(before), statements_of(program));
        EXPECT_EQ(changed.statements.size(), program.statements.size() + 1);
        asked = made;
        return false;
      });
  EXPECT_EQ(asked.statements, (std::set<std::string>{"S0"}));
  EXPECT_EQ(asked.again, (std::set<std::string>{"S0_again"}));
  EXPECT_EQ(statements_of(after), statements_of(program));
}

}  // namespace
}  // namespace tc::testing
