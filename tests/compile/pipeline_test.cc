#include "tc/compile/pipeline.h"

#include <gtest/gtest.h>

#include <set>

#include "tc/support/check.h"
#include "tests/compile/programs.h"

namespace tc::compile {
namespace {

using testing::compilation_of;
using testing::settings_for;

constexpr const char* kMv = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }";

TEST(Pipeline, PassesHaveDistinctNamesAndDumps) {
  std::set<std::string> names;
  for (const Pass& pass : passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_NE(pass.run, nullptr) << pass.name;
    EXPECT_NE(pass.dump, nullptr) << pass.name;
  }
}

TEST(Pipeline, StopsAfterEachPassAndGoesOn) {
  const Settings settings = settings_for({{"M", 5}, {"K", 6}});
  Compilation compilation = compilation_of(kMv);
  for (size_t i = 0; i < passes().size(); ++i) {
    const Result<void> done = run_passes(settings, compilation, passes()[i].name);
    ASSERT_TRUE(done) << done.error().to_string();
    ASSERT_EQ(compilation.done, i + 1);
    ASSERT_EQ(compilation.times.back().pass, passes()[i].name);
    const Result<std::string> text = dump(settings, compilation, passes()[i].name);
    ASSERT_TRUE(text) << text.error().to_string();
    EXPECT_FALSE(text->empty()) << passes()[i].name;
  }
  ASSERT_TRUE(run_passes(settings, compilation));
  EXPECT_EQ(compilation.times.size(), passes().size());
}

TEST(Pipeline, APassThatDoesNotExist) {
  EXPECT_EQ(find_pass("schedul").error().to_string(), "error: there is no pass 'schedul'; did you mean 'schedule'?\n");
  Compilation compilation = compilation_of(kMv);
  EXPECT_FALSE(run_passes(Settings(), compilation, "nonsense"));
  EXPECT_EQ(compilation.done, 0U);
}

TEST(Pipeline, ADumpOfAPassThatHasNotRunIsOurFault) {
  const Compilation compilation = compilation_of(kMv);
  EXPECT_THROW((void)dump(Settings(), compilation, "scop"), InternalError);
}

TEST(Pipeline, TheSameInputGivesTheSameBytes) {
  const Settings settings = settings_for({{"M", 50}, {"K", 60}});
  Compilation first = compilation_of(kMv), second = compilation_of(kMv);
  ASSERT_TRUE(run_passes(settings, first));
  // Other compilations in between change nothing.
  Compilation other = compilation_of("def f(float(N) x) -> (y) { y(i) = exp(x(i)) }");
  ASSERT_TRUE(run_passes(settings_for({{"N", 9}}), other));
  ASSERT_TRUE(run_passes(settings, second));
  for (const Pass& pass : passes()) {
    EXPECT_EQ(*dump(settings, first, pass.name), *dump(settings, second, pass.name)) << pass.name;
  }
  EXPECT_EQ(first.object->bytes, second.object->bytes);
}

TEST(Pipeline, ErrorsComeFromThePassThatFindsThem) {
  const auto fails_in = [](const char* pass, const std::string& text, const Settings& settings) {
    Compilation compilation = compilation_of(text);
    const Result<void> result = run_passes(settings, compilation);
    EXPECT_FALSE(result) << text;
    EXPECT_STREQ(passes()[compilation.done].name, pass) << text;
  };
  fails_in("parse", "def f(", Settings());
  fails_in("analyse", "def f(float(N) x) -> (y) { y(i) = x(i, i) }", Settings());
  fails_in("program", "def f(float(N) x) -> (y) { y(i) +=! x(i + j) }", Settings());
  fails_in("specialise", kMv, Settings());
}

TEST(Pipeline, ABudgetOfTimeIsKept) {
  Settings settings = settings_for({{"M", 5}, {"K", 6}});
  settings.budget.isl_operations = 20;
  Compilation compilation = compilation_of(kMv);
  const Result<void> result = run_passes(settings, compilation);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kBudget);
}

}  // namespace
}  // namespace tc::compile
