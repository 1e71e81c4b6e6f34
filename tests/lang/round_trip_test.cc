#include <gtest/gtest.h>

#include <random>

#include "tc/lang/format.h"
#include "tc/lang/parser.h"
#include "tc/lang/sema.h"
#include "tests/errors/error_files.h"
#include "tests/fuzz/round_trip.h"

namespace tc::lang {
namespace {

File parsed(const std::string& text) {
  auto file = parse(std::make_shared<const Source>("test.tc", text));
  EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().to_string()) << text;
  return file ? std::move(*file) : File{};
}

std::string formatted(const std::string& text) { return format(parsed(text)); }

TEST(Format, IsTheIdentityOnTheTreesOfAllExamples) {
  for (const auto& path : testing::tc_files("examples")) {
    SCOPED_TRACE(path.filename().string());
    const std::string text = testing::read_text(path);
    const File file = parsed(text);
    const std::string canonical = format(file);
    const File again = parsed(canonical);
    EXPECT_TRUE(same_tree(file, again)) << canonical;
    EXPECT_EQ(format(again), canonical);
    EXPECT_EQ(file.comments.size(), again.comments.size()) << canonical;
    EXPECT_TRUE(analyse(std::make_shared<const Source>("canonical.tc", canonical)).has_value());
  }
}

TEST(Format, WritesCanonicalSource) {
  EXPECT_EQ(formatted("def f(float a,half(N,M)A)→(double(N) O,P){O(i)+=!((a*A(i,j)))*(2+j)-(1-(2-3)) where j in 0:M-1,"
                      "x=i , exists A(i,0) P=a<1.50?-a:!(a>2)?(a):3 }"),
            "def f(float32 a, float16(N, M) A) -> (float64(N) O, P) {\n"
            "  O(i) +=! a * A(i, j) * (2 + j) - (1 - (2 - 3)) where j in 0:M - 1, x = i, exists A(i, 0)\n"
            "  P = a < 1.50 ? -a : !(a > 2) ? a : 3\n"
            "}\n");
}

TEST(Format, KeepsTheParenthesesThatMatter) {
  const std::string body =
      "def f(float a, float b) -> (O) {\n"
      "  O = (a + b) * -(a - b) / (a / b) - (a ? b : a)\n"
      "  O = (a < b) == (b < a) && (a || !(a == b)) ? (a ? b : a) ? 1 : 2 : 3\n"
      "}\n";
  EXPECT_EQ(formatted(body),
            "def f(float32 a, float32 b) -> (O) {\n"
            "  O = (a + b) * -(a - b) / (a / b) - (a ? b : a)\n"
            "  O = (a < b) == (b < a) && (a || !(a == b)) ? (a ? b : a) ? 1 : 2 : 3\n"
            "}\n");
}

TEST(Format, KeepsCommentsAndSingleBlankLines) {
  EXPECT_EQ(
      formatted("\n\n# head\n\n\n# of f\ndef f(float(N) A, # in\n # more\n float b) -> (O) { # body\n\n  # first\n"
                "  O(i) = A(i) + # inside\n b   # after\n\n\n  # own\n  O(i) = O(i) # last\n  # end\n} # done\n"
                "def g() -> (s) { s = 1 }\n# tail"),
      "# head\n\n# of f\n"
      "def f(\n"
      "    float32(N) A,  # in\n"
      "    # more\n"
      "    float32 b\n"
      ") -> (O) {  # body\n"
      "  # first\n"
      "  # inside\n"
      "  O(i) = A(i) + b  # after\n"
      "\n"
      "  # own\n"
      "  O(i) = O(i)  # last\n"
      "  # end\n"
      "}  # done\n"
      "\n"
      "def g() -> (s) {\n"
      "  s = 1\n"
      "}\n"
      "\n"
      "# tail\n");
}

TEST(Format, ABraceInACommentBeginsNoBody) {
  const std::string text = "def f(float32 a) -> (O) {\n  # -> (O, P) {\n  O = a\n}\n";
  EXPECT_EQ(formatted("def f(float a) -> (O) { O = # -> (O, P) {\n a }"), text);
  EXPECT_EQ(formatted(text), text);
  const std::string empty = "def f(float32 a) -> (O) {\n  # {\n}\n";
  EXPECT_EQ(formatted("def f(float a) -> (O) { # {\n}"), "def f(float32 a) -> (O) {  # {\n}\n");
  EXPECT_EQ(formatted(empty), empty);
}

/// The empty line above a def is not one above its first comment.
TEST(Format, ACommentBeforeTheFirstParameterStaysThere) {
  const std::string first = "def f(float32(N) A) -> (O) {\n  O(i) = A(i)\n}\n\n";
  const std::string text = first + "def g(\n    # of A\n    float32(N) A\n) -> (O) {\n  O(i) = A(i)\n}\n";
  EXPECT_EQ(formatted(first + "def g(# of A\nfloat(N) A) -> (O) { O(i) = A(i) }"), text);
  EXPECT_EQ(formatted(text), text);
}

TEST(Format, BreaksLongLines) {
  std::string sum = "A(i)";
  for (int i = 0; i < 30; ++i) sum += " + A(i)";
  const std::string text = formatted("def f(float(N) A) -> (O) { O(i) +=! " + sum + " where k in 0:2 }");
  for (const std::string& line : testing::lines_of(text)) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_NE(text.find("\n      where k in 0:2\n"), std::string::npos) << text;
  EXPECT_EQ(formatted(text), text);
}

/// A byte, a token or a line changed, dropped or doubled here and there.
std::string mutated(std::string text, std::mt19937& random) {
  static const std::vector<std::string> kPieces = {
      "(",      ")",      "{",       "}",          ",",  "+=!",   "min=!",    "=",
      "where ", " in ",   "exists ", "?",          ":",  "1e400", "0.5",      "9223372036854775807",
      "!",      "-",      "/",       "%",          "&&", "==",    "->",       "def ",
      "float ", "int64(", "T.0",     "#",          "\n", "\xff",  "i",        "A(i)",
      ".",      "'",      "<T>",     "<T: float>", "T ", "T(",    ": integer"};
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (size_t edits = 1 + pick(4); edits > 0 && !text.empty(); --edits) {
    const size_t at = pick(text.size());
    const size_t length = 1 + pick(std::min<size_t>(12, text.size() - at));
    switch (pick(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[pick(kPieces.size())]);
        break;
      case 2:
        text.insert(pick(text.size()), text.substr(at, length));
        break;
      case 3:
        text.replace(at, length, kPieces[pick(kPieces.size())]);
        break;
      default:
        text[at] = static_cast<char>(pick(256));
    }
  }
  return text;
}

TEST(Fuzz, MutatedExamplesParseOrFailCleanly) {
  std::mt19937 random(20260101);
  std::vector<std::string> texts;
  for (const auto& path : testing::tc_files("examples")) texts.push_back(testing::read_text(path));
  texts.emplace_back(
      "def softmax<T: float, I: integer>(T(N,D) x, I(N) at, T a) -> (T(N) y) {\n"
      "  T m(n) max=! x(n,d)\n  I k(n) = I(2) * at(n)\n  y(n) = T(exp(x(n,at(n)) - m(n)) * a) where exists k(n)\n}\n");
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = mutated(texts[i % texts.size()], random);
    const RoundTrip result = round_trip(text);
    ASSERT_EQ(result.broken, "") << "seed step " << i << "\n" << text;
    accepted += result.parsed;
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tc::lang
