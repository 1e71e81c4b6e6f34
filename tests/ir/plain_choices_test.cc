#include "tc/ir/plain_choices.h"

#include <gtest/gtest.h>

#include "tc/ir/print.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

/// What is made of `O(i) = value`, of half and float elements, as text.
std::string plain(const std::string& value) {
  const Program program = testing::specialised_from(
      "def f(float(N) X, half(N) H, bool(N) c) -> (float(N) O) { O(i) = " + value + " where i in 0:N }", {{"N", 10}});
  return to_text(plain_choices(program));
}

TEST(PlainChoices, TheElementComesFirst) {
  const std::string expected = plain("i >= 2 && i < 7 ? X(i - 2) : 0.0");
  EXPECT_EQ(plain("i < 2 || i >= 7 ? 0.0 : X(i - 2)"), expected);
  EXPECT_EQ(plain("!(i < 2 || i >= 7) ? X(i - 2) : 0.0"), expected);
  EXPECT_EQ(plain("!(i >= 2 && i < 7) ? 0.0 : X(i - 2)"), expected);
  EXPECT_EQ(plain("i < 2 ? 0.0 : (i < 7 ? X(i - 2) : 0.0)"), expected);
  EXPECT_EQ(plain("i >= 2 ? (i >= 7 ? 0.0 : X(i - 2)) : 0.0"), expected);
  EXPECT_EQ(plain("i < 2 || i >= 7 ? 0 : X(i - 2)"), plain("i >= 2 && i < 7 ? X(i - 2) : 0"));
}

TEST(PlainChoices, ConversionsThereAndBackGo) {
  EXPECT_EQ(plain("float(half(i >= 2 ? float(H(i - 2)) : 0.0))"), plain("float(i >= 2 ? H(i - 2) : half(0))"));
  // float16 does not hold what a float does.
  EXPECT_NE(plain("float(half(X(i)))"), plain("X(i)"));
}

/// Else a kernel would read what nobody writes for it.
TEST(PlainChoices, WhatIsAlwaysOrNeverChosenIsNoChoice) {
  EXPECT_EQ(plain("i < 10 ? X(i) : 0.0"), plain("X(i)"));
  EXPECT_EQ(plain("i <= N - 40 ? X(i) : -1.0"), plain("-1.0"));
  EXPECT_EQ(plain("i <= 3 && i > 6 ? X(i) : -1.0"), plain("-1.0"));
  EXPECT_NE(plain("i <= 6 && i > 3 ? X(i) : -1.0"), plain("-1.0"));
  EXPECT_EQ(plain("i > 20 && X(i) > 0.0 ? X(i) : -1.0"), plain("-1.0"));
}

/// NaN is not equal to itself, and integers wrap.
TEST(PlainChoices, DataAreComparedAsTheyAre) {
  const std::string head = "def f(float(N) X, int32(N) Y, int8(N) B) -> (float(N) O) { O(i) = ";
  for (const char* condition :
       {"X(i) == X(i)", "X(i) <= X(i)", "X(i) < 0.0 || X(i) >= 0.0", "B(i) <= int8(100) && B(i) >= int8(-100)",
        "Y(i) * 2147483000 + 2000000000 > Y(i) * 2147483000", "Y(i) + 100 < 0 && Y(i) > 5",
        "i * 1000000000 < -5 && i > 1"}) {
    const Program program = testing::specialised_from(head + condition + " ? 1.0 : 0.0 where i in 0:N }", {{"N", 10}});
    EXPECT_EQ(to_text(plain_choices(program)), to_text(program)) << condition;
  }
}

/// Other constants, conditions on data within others, comparisons of floats, choices of two elements.
TEST(PlainChoices, OthersStay) {
  for (const char* value : {"i >= 2 ? (i < 7 ? X(i - 2) : 1.0) : 0.0", "i >= 2 ? (c(i - 2) ? X(i - 2) : 0.0) : 0.0",
                            "!(X(i) < 1.0) ? X(i) : 0.0", "i < 2 || i >= 7 ? X(i) : 0.0", "i == 3 ? 0.0 : X(i)"}) {
    const Program program = testing::specialised_from(
        std::string("def f(float(N) X, bool(N) c) -> (float(N) O) { O(i) = ") + value + " where i in 0:N }",
        {{"N", 10}});
    EXPECT_EQ(to_text(plain_choices(program)), to_text(program)) << value;
  }
}

}  // namespace
}  // namespace tc::ir
