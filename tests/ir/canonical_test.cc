#include "tc/ir/canonical.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/common/program.h"

namespace tc::ir {
namespace {

Digest digest(const std::string& text) { return digest_of(testing::program_from(text)); }

TEST(Canonical, NamesCommentsAndWhiteSpaceDoNotMatter) {
  const Digest first = digest("def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }");
  EXPECT_EQ(first, digest("def g(float(X,Y) P,\n float(Y,Z) Q) -> (R) { # a comment\n R(a,b) +=! P(a,c) * Q(c,b)\n }"));
  EXPECT_EQ(first, digest("def g(float32(W,Y) W, float(Y,Z) Q) -> (R) { R(a,b) +=! W(a,c) * Q(c,b) }"));
  EXPECT_EQ(first, digest("def g(float(X,Y) P, float(Y,Z) Q) -> (R) { R(a,b) +=! v where v = P(a,c) * Q(c,b) }"));
}

TEST(Canonical, EveryChangeOfMeaningMatters) {
  const std::vector<std::string> programs = {
      "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) - B(i) }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) = B(i) - A(i) }",
      "def f(float(N) B, float(N) A) -> (O) { O(i) = A(i) - B(i) + 0.0 }",
      "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) - B(i) }",
      "def f(float64(N) A, float(N) B) -> (O) { O(i) = A(i) - B(i) }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) +=! A(i) - B(i) }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) max=! A(i) - B(i) }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) - B(i) where i in 1:N }",
      "def f(float(N) A, float(N) B) -> (O, P) { O(i) = A(i) - B(i)\n P(i) = A(i) }",
      "def f(float(N) A, float(N) B) -> (P, O) { O(i) = A(i) - B(i)\n P(i) = A(i) }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) - B(i) * 1.0 }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) - B(i) * 1.00000012 }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) - sin(B(i)) }",
      "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) - cos(B(i)) }",
  };
  std::set<std::string> seen;
  for (const std::string& text : programs) {
    EXPECT_TRUE(seen.insert(digest(text).to_string()).second) << text;
  }
}

TEST(Canonical, ConstantsCountToTheLastBit) {
  const std::string form = canonical_form(testing::program_from("def f(float(N) A) -> (O) { O(i) = A(i) * 0.1 }"));
  EXPECT_NE(form.find("0x1.99999ap-4:float32"), std::string::npos) << form;
}

TEST(Canonical, SizesMatterOnceTheyAreConstant) {
  const std::string text = "def f(float(N) A) -> (O) { O(i) = A(i) }";
  EXPECT_NE(digest_of(testing::specialised_from(text, {{"N", 3}})),
            digest_of(testing::specialised_from(text, {{"N", 4}})));
}

}  // namespace
}  // namespace tc::ir
