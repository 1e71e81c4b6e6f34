// The time limit, and requests to stop, reach the inference of ranges.
#include "tc/ir/deadline.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "tc/ir/from_lang.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

/// Each statement reads all that the one before it has written, and others, 60 times: the ranges of one are found after
/// those of the one before.
std::string chain(int statements) {
  std::string text = "def f(float(N,M) A) -> (o) {\n t0(i,j) = A(i,j)\n";
  for (int s = 1; s < statements; ++s) {
    text += fmt::format(" t{}(i,j) = ", s);
    for (int k = 0; k < 30; ++k) {
      text += fmt::format("{}t{}(i,j) * {}.5 * t{}(i,j)", k == 0 ? "" : " + ", s - 1, k, s * k % s);
    }
    text += '\n';
  }
  return text + fmt::format(" o(i,j) = t{}(i,j)\n}}\n", statements - 1);
}

lang::TypedProgram analysed(const std::string& text) {
  auto file = lang::analyse(std::make_shared<const Source>("test.tc", text));
  if (file) return *std::move(file);
  ADD_FAILURE() << file.error().to_string();
  return {};
}

/// The processor's time that inference takes until it ends, and how it ends.
std::pair<std::chrono::milliseconds, Result<Program>> timed(const lang::TypedProgram& file, const Deadline& deadline) {
  const std::clock_t begin = std::clock();
  Result<Program> program = from_lang(file, "", deadline);
  return {std::chrono::milliseconds((std::clock() - begin) * 1000 / CLOCKS_PER_SEC), std::move(program)};
}

TEST(Deadline, EndsTheInferenceOfRanges) {
  const lang::TypedProgram file = analysed(chain(100));
  const auto [time, program] = timed(file, Deadline(1));
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().kind(), ErrorKind::kBudget);
  EXPECT_LT(time.count(), 1000);
}

TEST(Deadline, ARequestToStopEndsTheInferenceOfRanges) {
  const lang::TypedProgram file = analysed(chain(100));
  std::stop_source stop;
  stop.request_stop();
  const auto [time, program] = timed(file, Deadline(60'000, stop.get_token()));
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().kind(), ErrorKind::kCancelled);
  EXPECT_LT(time.count(), 1000);
}

/// Twice the statements take twice the time, not four times: each is examined when what it reads is known.
TEST(Deadline, AChainOfStatementsTakesTimeInItsLength) {
  const lang::TypedProgram half = analysed(chain(20)), whole = analysed(chain(80));
  const auto [time_of_half, first] = timed(half, Deadline(600'000));
  const auto [time_of_whole, second] = timed(whole, Deadline(600'000));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_LT(time_of_whole.count(), 10 * std::max<int64_t>(time_of_half.count(), 1));
}

}  // namespace
}  // namespace tc::ir
