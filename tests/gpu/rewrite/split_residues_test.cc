#include "tc/gpu/rewrite/split_residues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tc/gpu/rewrite/hoist.h"
#include "tc/gpu/rewrite/recompute.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// What keeps products from being products of boxes, or from sharing a kernel. twins_test.cc runs what becomes of them.
namespace tc::testing {
namespace {

ir::Program of(const std::string& text) {
  std::map<std::string, int64_t> sizes = {{"N", 8}};
  if (text.find("(C,") != std::string::npos) sizes["C"] = 3;
  return specialised_from("def f(" + text, sizes);
}

std::string text_of(const ir::Program& program) {
  const std::string text = ir::to_text(program);
  return text.substr(text.find("S0: "));
}

/// A sum is a product where nothing hides its terms.
std::string split(const std::string& text) {
  return text_of(gpu::split_residues(of(text), [](const ir::Program& program, const std::vector<size_t>& places) {
    return std::none_of(places.begin(), places.end(),
                        [&](size_t place) { return gpu::has_hidden_terms(program.statements[place]); });
  }));
}

TEST(SplitResidues, EachResidueHasTheTermsThatReachIt) {
  EXPECT_EQ(split("float(C,N) X, float(C,3) W) -> (O) { O(i) +=! ((i-r) % 2 == 0 && i-r >= 0 && (i-r)/2 < N ? "
                  "X(c,(i-r)/2) : 0.0) * W(c,r) where i in 0:2*N }"),
            "S0: O(i * 2) +=! (i - r >= 0 && i - r < 8 ? X(c, i - r) : 0.0) * W(c, r * 2)\n"
            "      map i in 0:8; reduce r in 0:2, c in 0:3\n"
            "  S0_part: O(i * 2 + 1) +=! (i >= 0 && i < 8 ? X(c, i) : 0.0) * W(c, 1)\n"
            "      map i in 0:8; reduce c in 0:3\n");
}

TEST(SplitResidues, ResultsWithoutTermsAreZero) {
  EXPECT_EQ(split("float(C,N) X, float(C,1) W) -> (O) { O(i) +=! (i % 2 == 0 ? X(c,i/2) : 0.0) * W(c,0) where i in "
                  "0:N }"),
            "S0: O(i * 2) +=! X(c, i) * W(c, 0)\n      map i in 0:4; reduce c in 0:3\n"
            "  S0_part: O(i * 2 + 1) = 0.0\n      map i in 0:4\n");
}

TEST(SplitResidues, WhatFollowsIsSplitAsWell) {
  EXPECT_EQ(split("half(C,N) X, half(C,2) W) -> (O) { O(i) +=! ((i-r) % 2 == 0 && i-r >= 0 && (i-r)/2 < N ? "
                  "X(c,(i-r)/2) : half(0)) * W(c,r) where i in 0:2*N-1 }"),
            "S0: O_sum_part(i) +=! (i >= 0 && i < 8 ? float32(X(c, i)) : float32(0.0)) * float32(W(c, 0))\n"
            "      map i in 0:8; reduce c in 0:3\n"
            "  S1: O(i * 2) = float16(O_sum_part(i))\n      map i in 0:8\n"
            "  S0_part: O_sum_part_1(i) +=! (i >= 0 && i < 8 ? float32(X(c, i)) : float32(0.0)) * "
            "float32(W(c, 1))\n      map i in 0:7; reduce c in 0:3\n"
            "  S1_part: O(i * 2 + 1) = float16(O_sum_part_1(i))\n      map i in 0:7\n");
}

/// Equations that do not make a term zero tell no residue: one of two, in another factor, between two values.
TEST(SplitResidues, OtherEquationsDropNoTerms) {
  for (const char* term : {"((i+r) % 2 == 0 || r == 1 ? X(c,(i+r)/2) : 0.0)",
                           "((i+r) % 2 == 0 ? X(c,(i+r)/2) * (r/2 == 1 ? 2.0 : 1.0) : 0.0)",
                           "(r == 2 ? 2.0 : 1.0) * ((i+r) % 4 < 2 ? X(c,(i+r)/2) : 0.0)"}) {
    const ir::Program program = specialised_from("def f(float(C,N) X, float(F,C,4) W) -> (O) { O(f,i) +=! " +
                                                     std::string(term) + " * W(f,c,r) where i in 0:2*N-4 }",
                                                 {{"N", 20}, {"C", 16}, {"F", 16}});
    gpu::Device busy = gpu::device_of_architecture(90);
    busy.instances_of_launch = 16;
    EXPECT_EQ(difference(program, {}, 1, busy), "") << term;
  }
}

TEST(SplitResidues, LeavesOthers) {
  for (const char* text : {
           // Divided by a large number; a difference that no single index has; products and maxima.
           "float(C,N) X, float(C,3) W) -> (O) { O(i) +=! ((i-r) % 16 == 0 ? X(c,(i-r+16)/16) : 0.0) * W(c,r) where "
           "i in 0:N }",
           "float(C,N) X, float(C,3) W) -> (O) { O(i) *=! ((i-r) % 2 == 0 && i >= r ? X(c,(i-r)/2) : 0.0) * W(c,r) "
           "where "
           "i in 0:N }",
           "float(C,N) X, float(N,C) W) -> (O) { O(i) +=! ((i-r-c) % 2 == 0 ? X(c,r) : 0.0) * W(r,c) where i in 0:N }",
       }) {
    EXPECT_EQ(split(text), text_of(of(text))) << text;
  }
}

bool is_product(const ir::Program&, const ir::Statement& s) { return s.reduces() && s.tensor != "L"; }

/// A program's statements without their numbers.
std::vector<std::string> statements_of(const ir::Program& program) {
  ir::Program unnumbered = program;
  std::vector<std::string> result;
  for (const ir::Statement& s : program.statements) {
    unnumbered.statements = {s};
    unnumbered.statements[0].id = "S0";
    result.push_back(text_of(unnumbered));
  }
  return result;
}

TEST(Chains, RowsThatNobodyNeedsFollow) {
  const auto sunk = [](const char* text) { return gpu::sink_behind_chains(of(text), is_product); };
  EXPECT_EQ(statements_of(sunk("float(N,N) Q, float(N,N) K, float(N,N) V) -> (O, lse) { S(n,m) +=! Q(n,d) * K(m,d)  "
                               "L(n) +=! S(n,m)  lse(n) = log(L(n))  O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) / "
                               "L(n) }")),
            statements_of(of("float(N,N) Q, float(N,N) K, float(N,N) V) -> (O, lse) { S(n,m) +=! Q(n,d) * K(m,d)  "
                             "L(n) +=! S(n,m)  O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) / L(n)  lse(n) = "
                             "log(L(n)) }")));
  // Rows that somebody needs; a product of something else; rows whose sums change.
  for (const char* text :
       {"float(N,N) Q, float(N,N) K, float(N,N) V) -> (O) { S(n,m) +=! Q(n,d) * K(m,d)  L(n) +=! S(n,m)  r(n) = "
        "log(L(n))  O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) * r(n) }",
        "float(N,N) Q, float(N,N) K, float(N,N) V) -> (O, lse) { S(n,m) +=! Q(n,d) * K(m,d)  L(n) +=! S(n,m)  lse(n) "
        "= log(L(n))  O(n,d) +=! Q(n,m) * V(m,d) }",
        "float(N,N) Q, float(N,N) K, float(N,N) V) -> (O, L, lse) { S(n,m) +=! Q(n,d) * K(m,d)  L(n) +=! S(n,m)  "
        "lse(n) = log(L(n))  O(n,d) +=! S(n,m) * V(m,d)  L(n) += O(n,d) }"}) {
    EXPECT_EQ(statements_of(sunk(text)), statements_of(of(text))) << text;
  }
}

TEST(Chains, RowsOfReductionsAreComputedWhereTheyAreRead) {
  const auto inlined = [](const char* text) { return gpu::recompute_rows_of_chains(of(text), is_product); };
  EXPECT_EQ(statements_of(inlined("float(N,N) Q, float(N,N) K, float(N,N) V) -> (O) { S(n,m) +=! Q(n,d) * K(m,d)  "
                                  "L(n) +=! S(n,m)  r(n) = 1.0 / L(n)  O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) * "
                                  "r(n) }")),
            statements_of(of("float(N,N) Q, float(N,N) K, float(N,N) V) -> (O) { S(n,m) +=! Q(n,d) * K(m,d)  "
                             "L(n) +=! S(n,m)  O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) * (1.0 / L(n)) }")));
  // Others read the rows; a float is compared; rows of inputs, which recompute_beside_products() takes.
  for (const char* text :
       {"float(N,N) Q, float(N,N) K, float(N,N) V) -> (O, P) { S(n,m) +=! Q(n,d) * K(m,d)  L(n) +=! S(n,m)  r(n) = "
        "1.0 / L(n)  P(n,m) = S(n,m) * r(n)  O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) * r(n) }",
        "float(N,N) Q, float(N,N) K, float(N,N) V) -> (O) { S(n,m) +=! Q(n,d) * K(m,d)  L(n) +=! S(n,m)  r(n) = 1.0 / "
        "L(n)  O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) > r(n) ? 1.0 : 0.0 }",
        "float(N,N) Q, float(N,N) K, float(N,N) V, float(N) L) -> (O) { S(n,m) +=! Q(n,d) * K(m,d)  r(n) = 1.0 / L(n)  "
        "O(n,d) +=! S(n,m) * V(m,d)  O(n,d) = O(n,d) * r(n) }"}) {
    EXPECT_EQ(statements_of(inlined(text)), statements_of(of(text))) << text;
  }
}

}  // namespace
}  // namespace tc::testing
