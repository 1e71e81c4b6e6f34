#include "tests/random/seeds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace tc::testing {
namespace {

using Verdict = Outcome::Verdict;

std::string describe(uint64_t seed) { return fmt::format("seed {}: ", seed); }

TEST(Seeds, AddUp) {
  const Summary summary = run_seeds(
      10, 7,
      [](uint64_t seed) {
        return Outcome{Verdict::kAgrees, "", 100, static_cast<int64_t>(seed)};
      },
      describe);
  EXPECT_TRUE(summary.reports.empty());
  EXPECT_EQ(summary.seeds, 7);
  EXPECT_EQ(summary.elements, 700);
  EXPECT_EQ(summary.undecidable, 10 + 11 + 12 + 13 + 14 + 15 + 16);
}

TEST(Seeds, OneThatKillsItsProcessIsNamed) {
  const auto run = [](uint64_t seed) {
    if (seed == 4) {
      signal(SIGSEGV, SIG_DFL);
      raise(SIGSEGV);
    }
    return seed == 6 ? Outcome{Verdict::kDiffers, "6 differs", 1, 0} : Outcome{Verdict::kAgrees, "", 1, 0};
  };
  Summary summary = run_seeds(0, 20, run, describe);
  EXPECT_EQ(summary.seeds, 19);
  std::sort(summary.reports.begin(), summary.reports.end());
  EXPECT_EQ(summary.reports,
            (std::vector<std::string>{"6 differs", "seed 4: the process dies of signal 11 (Segmentation fault)\n"}));
}

TEST(Seeds, OneThatNeverEndsIsNamed) {
  const auto run = [](uint64_t seed) {
    while (seed == 1) pause();
    return Outcome{};
  };
  const Summary summary = run_seeds(0, 3, run, describe, {.seconds_each = 1});
  EXPECT_EQ(summary.seeds, 2);
  EXPECT_EQ(summary.reports, std::vector<std::string>{"seed 1: the process takes longer than 1 s\n"});
}

TEST(Seeds, EachEndIsTold) {
  std::vector<int64_t> seeds;
  run_seeds(0, 5, [](uint64_t) { return Outcome{}; }, describe,
            {.processes = 1, .after_each = [&](const Summary& summary) { seeds.push_back(summary.seeds); }});
  EXPECT_EQ(seeds, (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

TEST(Seeds, NoneBeginsAfterTheTime) {
  const auto run = [](uint64_t) { return Outcome{}; };
  EXPECT_EQ(run_seeds(0, 5, run, describe, {.seconds = 0}).seeds, 0);
}

TEST(Seeds, GivesUpAfterManyReports) {
  const Summary summary = run_seeds(
      0, 100000,
      [](uint64_t) {
        return Outcome{Verdict::kDiffers, "differs", 1, 0};
      },
      describe);
  EXPECT_GE(summary.reports.size(), 10u);
  EXPECT_LT(summary.reports.size(), 100u);
}

}  // namespace
}  // namespace tc::testing
