// C11: a program with compiled-in scalars, and the program with the numbers in their places, mean the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "tc/ir/bounds.h"
#include "tc/ir/canonical.h"
#include "tc/ir/expr_text.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

using testing::program_from;
using testing::try_program;
using testing::try_specialised;

/// A text in which "$s" stands for a scalar `s`.
struct Template {
  std::string parameters;  ///< of tensors
  std::string rest;        ///< behind the parameters
};

std::string with_names(const Template& t, const ScalarValues& scalars) {
  std::string parameters;
  for (const auto& [name, value] : scalars) parameters += fmt::format("int {}, ", name);
  return fmt::format("def f({}{}){}", parameters, t.parameters,
                     std::regex_replace(t.rest, std::regex("\\$([a-z])"), "$1"));
}

std::string with_numbers(const Template& t, const ScalarValues& scalars) {
  std::string rest = t.rest;
  for (const auto& [name, value] : scalars) {
    const std::string number = value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    rest = std::regex_replace(rest, std::regex("\\$" + name), number);
  }
  return fmt::format("def f({}){}", t.parameters, rest);
}

/// The canonical form without the lines that tell of scalars.
std::string without_scalars(const Program& program) {
  std::istringstream in(canonical_form(program));
  std::string text;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("scalar ") && !line.starts_with("parameter s")) text += line + "\n";
  }
  return text;
}

/// Of a canonical form the lines about shapes, ranges and preconditions.
std::string shapes_and_ranges(const std::string& canonical) {
  std::istringstream in(canonical);
  std::string text;
  for (std::string line; std::getline(in, line);) {
    const bool wanted = line.starts_with("tensor ") || line.starts_with("  map ") || line.starts_with("  reduce ") ||
                        line.starts_with("precondition ");
    if (wanted) text += line + "\n";
  }
  return text;
}

std::string first_message(const Error& error) { return error.diagnostics().at(0).message; }

/// "" where both mean the same, else what differs.
std::string difference(const Template& t, const ScalarValues& scalars) {
  const auto named = try_program(with_names(t, scalars), "", scalars);
  const auto numbered = try_program(with_numbers(t, scalars));
  const std::string texts = with_names(t, scalars) + "\n" + with_numbers(t, scalars) + "\n";
  if (named.has_value() != numbered.has_value()) {
    return texts + (named ? "only the numbers are refused: " + first_message(numbered.error())
                          : "only the scalars are refused: " + first_message(named.error()));
  }
  if (!named) return "";
  if (named->open) return texts + "the ranges are open";
  std::string a = without_scalars(*named), b = without_scalars(*numbered);
  // A scalar in a guard that bounds nothing stays an argument: only the values have another text.
  if (!std::ranges::all_of(named->scalars, &Scalar::specialised)) {
    a = shapes_and_ranges(a);
    b = shapes_and_ranges(b);
  }
  return a == b ? "" : texts + a + b;
}

const Template kDilated{"float(T) X, float(K) W", R"( -> (O) {
  O(t) +=! (t >= $d * k ? X(t - $d * k) * W(k) : 0.0) })"};
const Template kMirrored{"float(T) X, float(K) W", R"( -> (O) {
  O(t) +=! (t >= $d * (K - 1 - k) ? X(t - $d * (K - 1 - k)) : 0.0) * W(k) where t in 0:T })"};
const Template kPadded{"float(H) X, float(K) W", R"( -> (O) {
  O(h) +=! ($s * h + k >= $p && $s * h + k - $p < H ? X($s * h + k - $p) : 0.0) * W(k)
    where h in 0:(H + 2 * $p - K) / $s + 1 })"};

std::string ranges_of(const Program& program) {
  std::string text;
  for (const Index& index : program.statements.at(0).indices) {
    text +=
        fmt::format("{}{} in {}:{}", text.empty() ? "" : ", ", index.name, to_text(index.begin), to_text(index.end));
  }
  return text;
}

TEST(Scalars, C11_DilatedConvolution) {
  for (int64_t d = -2; d <= 4; ++d) EXPECT_EQ(difference(kDilated, {{"d", d}}), "");
  const Program p = program_from(with_names(kDilated, {{"d", 2}}), "", {{"d", 2}});
  ASSERT_FALSE(p.statements.empty());
  EXPECT_EQ(p.statements[0].indices[0].end_by.rule, RangeRule::kGuardedReads);
  const auto specialised = specialise(p, *bind_sizes(p, {{"T", 17}, {"K", 3}}));
  ASSERT_TRUE(specialised.has_value()) << specialised.error().to_string();
  EXPECT_EQ(ranges_of(*specialised), "t in 0:17, k in 0:3");
}

TEST(Scalars, C11_MirroredDilatedConvolution) {
  for (int64_t d = 0; d <= 4; ++d) EXPECT_EQ(difference(kMirrored, {{"d", d}}), "");
  const ScalarValues two{{"d", 2}};
  EXPECT_EQ(ranges_of(*try_specialised(with_names(kMirrored, two), {{"T", 17}, {"K", 3}}, two)), "t in 0:17, k in 0:3");
}

TEST(Scalars, C11_PaddedStridedConvolution) {
  for (int64_t s = 1; s <= 3; ++s) {
    for (int64_t p = 0; p <= 2; ++p) {
      const ScalarValues scalars{{"s", s}, {"p", p}};
      EXPECT_EQ(difference(kPadded, scalars), "");
      const auto program = try_specialised(with_names(kPadded, scalars), {{"H", 11}, {"K", 3}}, scalars);
      ASSERT_TRUE(program.has_value()) << program.error().to_string();
      EXPECT_EQ(ranges_of(*program), fmt::format("h in 0:{}, k in 0:3", (11 + 2 * p - 3) / s + 1));
    }
  }
}

TEST(Scalars, C11_AGuardThatBoundsAReadCompilesItsScalarIn) {
  const std::string text = "def f(int s, float(N) X) -> (O) { O(i) = i < s ? X(i + 1) : 0.0 where i in 0:N }";
  EXPECT_TRUE(program_from(text).scalars[0].specialised);
  EXPECT_TRUE(try_specialised(text, {{"N", 5}}, {{"s", 4}}).has_value());
  const auto wrong = try_specialised(text, {{"N", 5}}, {{"s", 5}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(first_message(wrong.error()),
            "X(i + 1) reads outside 'X': it needs 6 <= N, but N is 5; add 'i + 1 < N' to its guard");
}

TEST(Scalars, C11_AGuardThatBoundsNothingLeavesItsScalarAlone) {
  const Program p = program_from("def f(int s, float(N) X) -> (O) { O(i) = i < s ? X(i) : 0.0 where i in 0:N }");
  EXPECT_FALSE(p.scalars[0].specialised);
  EXPECT_EQ(ranges_of(p), "i in 0:N");
}

TEST(Scalars, C11_ScalarsWithoutAValueLeaveRangesOpen) {
  const Program p = program_from(with_names(kDilated, {{"d", 2}}));
  EXPECT_TRUE(p.open);
  EXPECT_TRUE(p.waits_for_scalars());
  EXPECT_FALSE(p.statements[0].indices[0].end.defined());
}

TEST(Scalars, C11_ErrorsNameTheValues) {
  const std::string text = "def f(int s, float(N) X) -> (O) { O(i) = X(s * i) }";
  const auto wrong = try_program(text, "", {{"s", 0}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(first_message(wrong.error()),
            "nothing bounds 'i': give its range with 'where i in 0:...', or the extents of 'O' in the list of results");
  ASSERT_EQ(wrong.error().diagnostics()[0].notes.size(), 1u);
  EXPECT_EQ(wrong.error().diagnostics()[0].notes[0].text, "'s' is 0 here");
}

/// Two defs that differ in how ranges will be inferred are not the same def, though nothing is inferred yet.
TEST(Scalars, C11_TheDigestOfAnOpenDefKnowsItsClauses) {
  const std::string head =
      "def f(int d, float(T) X, float(K) W, float(L) Y) -> (O) "
      "{ O(t) +=! (t >= d * k ? X(t - d * k) * W(k) : 0.0) where ";
  const Program a = program_from(head + "exists Y(t) }"), b = program_from(head + "exists Y(t + 1) }");
  ASSERT_TRUE(a.open && b.open);
  EXPECT_NE(digest_of(a).to_string(), digest_of(b).to_string());
}

// --- random programs --------------------------------------------------------------------------------------------

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  std::string one_of(const std::vector<std::string>& list) {
    return list[static_cast<size_t>(number(0, static_cast<int>(list.size()) - 1))];
  }

  Template make() {
    const bool window = chance(0.5);
    const std::string read = subscript(window);
    std::string value = fmt::format("{} ? {} : {}", guard(read, window), element(read),
                                    chance(0.3) ? element(subscript(window)) : "0.0");
    if (chance(0.3)) value = fmt::format("{} ? ({}) : 0.0", guard(read, window), value);
    if (chance(0.2)) value = fmt::format("({}) + X({})", value, chance(0.5) ? "i" : "i + $p");
    if (window) value = fmt::format("({}) * W(k)", value);
    const std::string where = one_of({"", "", " where i in 0:N", " where i in 0:N + $p", " where i in 0:N / $s + 1"});
    const std::string result = chance(0.25) ? "float(N) O" : "O";
    return {"float(N) X, float(K) W",
            fmt::format(" -> ({}) {{ O(i) {} {}{} }}", result, window || chance(0.3) ? "+=!" : "=", value,
                        window || where.empty() ? where : where)};
  }

  ScalarValues values() { return {{"s", number(1, 3)}, {"p", number(-1, 2)}, {"d", number(-2, 3)}}; }

 private:
  static std::string element(const std::string& subscript) { return fmt::format("X({})", subscript); }

  std::string subscript(bool window) {
    if (window) {
      return one_of(
          {"i + $d * k", "i - $d * k", "i - $d * (K - 1 - k)", "$s * i + k - $p", "(i + k) / $s", "i + k - $p"});
    }
    return one_of(
        {"i + $p", "i - $d", "$s * i + $p", "i / $s", "(i + $p) / $s", "N - 1 - i", "i % $s", "i + $s * (i % 2)"});
  }

  std::string guard(const std::string& read, bool window) {
    const std::string exact = fmt::format("({0}) >= 0 && ({0}) < N", read);
    switch (number(0, 6)) {
      case 0:
        return exact;
      case 1:
        return fmt::format("!(({0}) < 0 || ({0}) >= N)", read);
      case 2:
        return fmt::format("({}) >= 0", read);
      case 3:
        return fmt::format("i % 2 == {}", number(0, 1));
      case 4:
        return fmt::format("i % ($s + 1) == 0 && {}", exact);
      case 5:
        return window ? fmt::format("k < $s && {}", exact) : fmt::format("i < $s || {}", exact);
      default:
        return fmt::format("i >= $d && ({}) < N", read);
    }
  }

  std::mt19937_64 random_;
};

TEST(Scalars, C11_RandomProgramsMeanTheSameWithNumbers) {
  int good = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Generator generator(seed);
    const Template t = generator.make();
    const ScalarValues scalars = generator.values();
    ASSERT_EQ(difference(t, scalars), "") << "seed " << seed;
    good += try_program(with_numbers(t, scalars)).has_value();
  }
  EXPECT_GT(good, 12);
}

/// Where a Program holds for all values of its scalars, it is the one of each.
TEST(Scalars, C11_AProgramForAllValuesIsTheOneOfEach) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Generator generator(seed);
    const Template t = generator.make();
    const ScalarValues scalars = generator.values();
    const std::string text = with_names(t, scalars);
    const auto all = try_program(text);
    if (!all || all->open || !all->waits_for_scalars()) continue;
    for (int64_t n = 1; n <= 7; n += 2) {
      const std::map<std::string, int64_t> sizes{{"N", n}, {"K", 1 + n % 3}};
      const auto of_all = specialise(*all, *bind_sizes(*all, sizes, scalars));
      if (!of_all) continue;
      const auto of_one = try_specialised(text, sizes, scalars);
      ASSERT_TRUE(of_one.has_value()) << text << of_one.error().to_string();
      EXPECT_EQ(shapes_and_ranges(canonical_form(*of_all)), shapes_and_ranges(canonical_form(*of_one))) << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 4);
}

}  // namespace
}  // namespace tc::ir
