#include "tc/lang/parser.h"

#include <gtest/gtest.h>

#include <ctime>

#include "tc/lang/limits.h"
#include "tc/lang/sema.h"

namespace tc::lang {
namespace {

SourcePtr source(std::string text) { return std::make_shared<const Source>("test.tc", std::move(text)); }

std::string repeated(std::string_view piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

/// The first error, and that it came within a minute of processor time: under sanitizers, on a slow machine, a megabyte
/// takes five seconds, and what is quadratic in its length takes hours.
std::string first_error(const std::string& text) {
  const std::clock_t begin = std::clock();
  const auto program = analyse(source(text));
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 60);
  if (program) return "";
  EXPECT_LE(program.error().diagnostics().size(), kMaxErrors);
  EXPECT_FALSE(program.error().to_string().empty());
  return program.error().diagnostics()[0].message;
}

std::string in_body(const std::string& expression) {
  return "def f(float(N) A, float a) -> (O) { O(i) = " + expression + " }";
}

TEST(Parser, NestingIsBounded) {
  const std::string deep = "this expression is nested too deeply: at most 256 levels are allowed";
  EXPECT_EQ(first_error(in_body(repeated("(", 100'000) + "1" + repeated(")", 100'000))), deep);
  EXPECT_EQ(first_error(in_body(repeated("(", 100'000))), deep);
  EXPECT_EQ(first_error(in_body(repeated("-", 100'000) + "1")), deep);
  EXPECT_EQ(first_error(in_body(repeated("a ? 1 : ", 10'000) + "1")), deep);
  EXPECT_EQ(first_error(in_body("1" + repeated(" + 1", 100'000))),
            "this expression is a chain of too many operators: at most 1000 are allowed; compute a part of it in a "
            "statement of its own");
  EXPECT_EQ(first_error(in_body(repeated("A(", 100'000))), deep);
  // A flat sum is not nested.
  EXPECT_EQ(first_error(in_body("A(i)" + repeated(" + 1", 998))), "");
  EXPECT_EQ(first_error(in_body("1" + repeated(" + 1", 999))), "");
  EXPECT_EQ(first_error(in_body(repeated("(", 200) + "A(i)" + repeated(")", 200))), "");
}

TEST(Parser, SizesAreBounded) {
  EXPECT_EQ(first_error(std::string(10'000'000, ' ')),
            "test.tc: the program has 10000000 bytes: at most 1048576 are allowed");
  EXPECT_EQ(first_error("def f(float a) -> (O) { " + repeated("O = a ", 100'000) + "}"),
            "too many statements in def 'f': at most 512 are allowed");
  EXPECT_EQ(first_error("def " + std::string(100'000, 'x') + "() -> (O) { O = 1 }"),
            "a name of 100000 characters is too long: at most 255 are allowed");
  EXPECT_EQ(first_error("def f(float(N" + repeated(", N", 100'000) + ") A) -> (O) { O = 1 }"),
            "too many dimensions or arguments: at most 32 are allowed");
  EXPECT_EQ(first_error("def f(float a0" + repeated(", float a", 1'000) + ") -> (O) { O = 1 }"),
            "def 'f' has 1002 parameters and results: at most 256 are allowed");
  EXPECT_EQ(first_error("def f(float a) -> (O) { O = a where k in 0:1" + repeated(", k in 0:1", 1'000) + " }"),
            "too many clauses: at most 64 are allowed in a statement");
}

TEST(Parser, LetsCannotMultiplyWithoutEnd) {
  std::string lets = "x0 = A(i)";
  for (int i = 1; i < 60; ++i) lets += fmt::format(", x{0} = x{1} + x{1}", i, i - 1);
  EXPECT_EQ(first_error("def f(float(N) A) -> (O) { O(i) = x59 where " + lets + " }"),
            "this statement is too large when its lets are replaced: at most 100000 operations are allowed");
  std::string deep = "x0 = A(i)";
  for (int i = 1; i < 60; ++i) deep += fmt::format(", x{} = x{}{}", i, i - 1, repeated(" + 1", 50));
  EXPECT_EQ(first_error("def f(float(N) A) -> (O) { O(i) = x59 where " + deep + " }"),
            "this statement is nested too deeply when its lets are replaced: at most 1000 levels are allowed");
}

TEST(Parser, GarbageEndsInErrors) {
  std::string bytes;
  for (uint32_t i = 0; i < 1'000'000; ++i) bytes += static_cast<char>((i * 7919 + i / 13) % 256);
  EXPECT_NE(first_error(bytes), "");
  EXPECT_NE(first_error(std::string(1'000'000, '\0')), "");
  EXPECT_NE(first_error(repeated("\xff\xfe", 500'000)), "");
  EXPECT_NE(first_error(""), "");
  EXPECT_NE(first_error(in_body("A..5")), "");
  EXPECT_NE(first_error(repeated("def f(", 170'000)), "");
  EXPECT_NE(first_error("def f(float a) -> (O) { " + repeated("O(", 400'000)), "");
  EXPECT_NE(first_error("def f(float a) -> (O) { 1 " + repeated("a(1 ", 200'000)), "");
  EXPECT_NE(first_error(repeated("# c\n", 250'000)), "");
}

TEST(Parser, ReportsUpToTwentyErrorsInOneGo) {
  const auto program = analyse(source("def f(float(N) A) -> (O) {\n" + repeated("O(i) = A(i) +\n)\n", 50) + "}"));
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().diagnostics().size(), kMaxErrors);
}

TEST(Parser, GoesOnAtTheNextStatementAndTheNextDef) {
  const auto file =
      parse(source("def f(float(N) A) -> (O) {\n  O(i) = A(i\n  P(i) = A(i))\n  Q(i) = +\n}\n"
                   "def (x) -> (O) { }\ndef h(float a) -> (O) { O = ? }"));
  ASSERT_FALSE(file.has_value());
  std::vector<int> lines;
  for (const Diagnostic& d : file.error().diagnostics()) {
    lines.push_back(file.error().source()->position(d.range->begin).line);
  }
  EXPECT_EQ(lines, (std::vector<int>{3, 3, 4, 6, 7}));
}

TEST(Parser, KeywordsAreNamesWhereTheGrammarExpectsNone) {
  const char* text =
      "def def(float(N) in, float(N) where) -> (exists) {\n"
      "  exists(i) = in(i) + where(i) where x = 1, exists in(i), k = x\n"
      "  where2(in2) = in(in2) where in2 in 0:5\n"
      "  exists(i) min= where(i)\n"
      "  exists(i) max=! in(i) where exists where(i)\n"
      "}\n";
  const auto file = parse(source(text));
  ASSERT_TRUE(file.has_value()) << file.error().to_string();
  const auto& statements = file->definitions[0].statements;
  ASSERT_EQ(statements.size(), 4u);
  EXPECT_EQ(statements[0].clauses.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<ExistsClause>(statements[0].clauses[1].node));
  EXPECT_EQ(statements[2].op, AssignOp::kMin);
  EXPECT_EQ(statements[3].op, AssignOp::kMaxInit);
  const auto indices =
      parse(source("def f(float(N) A) -> (O) { O(exists) = A(exists) where exists in 0:2 "
                   "O(in) = A(in) where in in 0:2 where(i) = A(i) }"));
  ASSERT_TRUE(indices.has_value()) << indices.error().to_string();
  EXPECT_EQ(indices->definitions[0].statements.size(), 3u);
}

TEST(Parser, OperatorsBindAsInC) {
  const auto file = parse(source(in_body("1 - 2 - 3 * -4 + A(i) < 2 && !a || 3 == 4 ? 1 : 0 ? 2 : 3")));
  const auto grouped =
      parse(source(in_body("((((((1 - 2) - (3 * (-4))) + A(i)) < 2) && (!a)) || (3 == 4)) ? 1 : (0 ? 2 : 3)")));
  ASSERT_TRUE(file.has_value() && grouped.has_value());
  const auto& a = file->definitions[0].statements[0];
  EXPECT_TRUE(std::holds_alternative<Conditional>(a.right->node));
  EXPECT_EQ(a.right->height, grouped->definitions[0].statements[0].right->height);
}

TEST(Parser, TheArrowMayBeOneCharacter) {
  EXPECT_TRUE(parse(source("def f(float a) \xE2\x86\x92 (O) { O = a }")).has_value());
}

TEST(Parser, ExtentsAreNotNumbers) {
  const auto file = parse(source(in_body("A.0 * .5 + 1. + 1e-3")));
  ASSERT_TRUE(file.has_value()) << file.error().to_string();
}

}  // namespace
}  // namespace tc::lang
