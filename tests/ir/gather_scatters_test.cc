#include "tc/ir/gather_scatters.h"

#include <gtest/gtest.h>

#include <map>

#include "tc/ir/guard_factors.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

Program of(const std::string& text) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& name : testing::program_from("def f(" + text).sizes) {
    sizes[name] = name == "N" ? 10 : name == "M" ? 7 : 4;
  }
  return testing::specialised_from("def f(" + text, sizes);
}

/// The statement with the sums, and its ranges.
std::string gathered(const std::string& text) {
  const std::string result = to_text(gather_scatters(of(text), [](const auto&) { return true; }));
  return result.substr(result.find("S0: "));
}

TEST(GatherScatters, SumsOverWhatReachesAnElement) {
  EXPECT_EQ(gathered("float(N) X, float(5) W) -> (O) { O(2*n+r) +=! X(n) * W(r) }"),
            "S0: O(n_r) +=! r_turn <= n_r / 2 && n_r / 2 < r_turn + 10 && r_turn * 2 + n_r % 2 < 5 ? "
            "X(n_r / 2 - r_turn) * W(r_turn * 2 + n_r % 2) : 0.0\n      map n_r in 0:23; reduce r_turn in 0:3\n");
  // The index with more values goes, where both have the coefficient 1.
  EXPECT_EQ(gathered("float(N) X, float(M) W) -> (O) { O(m+n) +=! X(n) * W(m) }"),
            "S0: O(n_m) +=! m_turn <= n_m && n_m < m_turn + 10 ? X(n_m - m_turn) * W(m_turn) : 0.0\n"
            "      map n_m in 0:16; reduce m_turn in 0:7\n");
  // Other operators, ranges that begin elsewhere, and sums over something else.
  EXPECT_EQ(gathered("float(N,K) X) -> (float(20) O) { O(n+r+3) max=! X(n,k) where n in 2:8, r in 1:3, k in 0:K }"),
            "S0: O(n_r) max=! r_turn + 6 <= n_r && n_r < r_turn + 12 ? X(n_r - r_turn - 4, k) : "
            "-inf\n      map n_r in 6:13; reduce r_turn in 0:2, k in 0:4\n");
  // Few values of the other index.
  EXPECT_EQ(gathered("float(3,N) X) -> (O) { O(2*i+n) +=! X(i,n) }"),
            "S0: O(i_n) +=! i_term * 2 <= i_n && i_n < i_term * 2 + 10 ? X(i_term, i_n - i_term * 2) : 0.0\n"
            "      map i_n in 0:14; reduce i_term in 0:3\n");
}

TEST(GatherScatters, LeavesWhatTellsItsElements) {
  for (const char* text : {
           "float(N) X) -> (float(5*N) O) { O(5*n+r) +=! X(n) where r in 0:5 }",  // digits of a number
           "float(N) X) -> (float(5*N) O) { O(5*n+r) +=! X(n) where r in 0:4 }",  // with a gap
           "float(N,M) X) -> (float(N+M,M) O) { O(n+m,m) +=! X(n,m) }",           // a diagonal
           "float(N,M) X, int32(N) I) -> (float(N) O) { O(I(n)) += X(n,m) }",     // data
           "float(N,M) X) -> (float(40) O) { O(2*n+3*m) +=! X(n,m) }",            // no coefficient 1
       }) {
    const Program program = of(text);
    EXPECT_EQ(to_text(gather_scatters(program, [](const auto&) { return true; })), to_text(program)) << text;
  }
  const Program program = of("float(N) X, float(5) W) -> (O) { O(2*n+r) +=! X(n) * W(r) }");
  const auto is_gathered = [](const GatheredScatter& sum) {
    EXPECT_EQ(instance_count(sum.scattered), 50);
    EXPECT_EQ(instance_count(sum.gathered), 69);
    EXPECT_EQ(result_count(sum.gathered), 23);
    return false;
  };
  EXPECT_EQ(to_text(gather_scatters(program, is_gathered)), to_text(program));
}

TEST(GuardFactors, ZerosStandWhereAFactorHasNoElement) {
  const auto guarded = [](const std::string& value) -> std::string {
    const Program program =
        of("float(N+2) X, float(M) W, float(N) s) -> (float(N) O) { O(i) +=! " + value + " where i in 0:N, k in 0:4 }");
    std::optional<Statement> result = guard_factors(program, program.statements[0]);
    if (!result) return "";
    Program changed = program;
    changed.statements[0] = *std::move(result);
    const std::string text = to_text(changed);
    return text.substr(text.find("+=! ") + 4, text.find("\n      map") - text.find("+=! ") - 4);
  };
  EXPECT_EQ(guarded("i + k >= 2 ? X(i+k-2) * W(k) : 0.0"), "(i + k >= 2 ? X(i + k - 2) : 0.0) * W(k)");
  EXPECT_EQ(guarded("i + k >= 2 && k < 3 ? W(k) * X(i+k-2) : 0.0"), "W(k) * (i + k >= 2 ? X(i + k - 2) : 0.0)");
  EXPECT_EQ(guarded("i + k >= 1 ? (i + k <= N ? X(i+k-1) : 0.0) * W(k) : 0.0").substr(0, 35),
            "(i + k <= 10 && i + k >= 1 ? X(i + ");
  EXPECT_EQ(guarded("i + k >= 0 ? s(i) * W(k) : 0.0"), "s(i) * W(k)");
  // What exists; about data; not zero; no product.
  EXPECT_EQ(guarded("i <= k ? s(i) * W(k) : 0.0"), "");
  EXPECT_EQ(guarded("i + k >= 3 ? X(i+k-2) * W(k) : 0.0"), "");
  EXPECT_EQ(guarded("s(i) > 0.0 ? s(i) * W(k) : 0.0"), "");
  EXPECT_EQ(guarded("i + k >= 2 ? X(i+k-2) * W(k) : 1.0"), "");
  EXPECT_EQ(guarded("i + k >= 2 ? X(i+k-2) + W(k) : 0.0"), "");
  // Another factor would be read beyond its tensor.
  EXPECT_EQ(guarded("i + k >= 2 ? X(i+k-2) * exp(s((i+k-2)%N)) * W(k) : 0.0"), "");
  EXPECT_EQ(guarded("i + k >= 2 && i + k < N + 2 ? s(i+k-2) * exp(X(i+k-2)) : 0.0"), "");
  EXPECT_EQ(guarded("i + k >= 2 && i + k < N + 2 ? s(i+k-2) * X(i+k-1) : 0.0"), "");
}

}  // namespace
}  // namespace tc::ir
