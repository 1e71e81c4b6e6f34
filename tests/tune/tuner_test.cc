#include "tc/tune/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "tc/support/result.h"
#include "tc/tune/messages.h"
#include "tc/tune/worker_pool.h"
#include "tests/common/temporary_folder.h"
#include "tests/tune/landscape.h"

namespace tc::tune {
namespace {

using std::chrono::milliseconds;

/// How much slower a machine becomes that has one drift only.
constexpr double kSlowest = 1.4;

/// Runs jobs in this process, one at a time: times are those of the landscape.
class LandscapeExecutor : public Executor {
 public:
  Result<void> submit(Job job) override {
    const auto value = job_from(job.bytes);
    compiled_ += std::holds_alternative<CompileJob>(value->work);
    Space space = testing::landscape_space();
    Reply reply{.device = "landscape"};
    if (const auto* measure = std::get_if<MeasureJob>(&value->work)) {
      ++measured_[value->options];
      // The machine becomes ever slower, for both.
      const double drift = takes_time_ ? std::pow(slowest_, std::min(1.0, ++jobs_ / 300.0)) : 0;
      reply.hot_us = drift * testing::landscape_us(*candidate_of(space, value->options));
      if (measure->has_incumbent) {
        reply.incumbent_us = drift * testing::landscape_us(*candidate_of(space, measure->incumbent_options));
      }
    }
    done_.push_back({job.id, Loss::kNone, to_bytes(reply)});
    return {};
  }
  Result<std::vector<Done>> wait(milliseconds) override {
    if (last_first_) std::ranges::reverse(done_);
    return std::exchange(done_, {});
  }

  bool takes_time_ = true;
  double slowest_ = kSlowest;
  bool last_first_ = false;
  int compiled_ = 0;
  int jobs_ = 0;
  std::map<std::string, int> measured_;

 private:
  std::vector<Done> done_;
};

Task task() {
  Task task{.problem = "landscape", .space = testing::landscape_space()};
  return task;
}

double us_of(const std::string& options) {
  Space space = testing::landscape_space();
  return testing::landscape_us(*candidate_of(space, options));
}

TEST(Tuner, FindsAFasterCandidateAndSaysHowFast) {
  LandscapeExecutor executor;
  const Result<Tuned> tuned = tune(task(), {.generations = 10, .population = 16}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->ending, Ending::kFinished);
  EXPECT_EQ(tuned->history.size(), 161);
  EXPECT_EQ(tuned->device, "landscape");
  const double default_us = testing::landscape_us(Candidate(8, 0));
  EXPECT_NEAR(tuned->speedup, default_us / us_of(tuned->best), 1e-9);
  EXPECT_GT(tuned->speedup, 3);
  double best_us = 1e9;
  for (const Record& record : tuned->history) best_us = std::min(best_us, us_of(record.options));
  EXPECT_EQ(us_of(tuned->best), best_us);
}

/// As the simulator says of tensors without elements.
TEST(Tuner, WhereNothingTakesTimeTheDefaultIsTheBest) {
  LandscapeExecutor executor;
  executor.takes_time_ = false;
  const Result<Tuned> tuned = tune(task(), {.generations = 2, .population = 8}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->best, tuned->history[0].options);
  EXPECT_EQ(tuned->speedup, 1);
}

TEST(Tuner, DriftDecidesNothing) {
  LandscapeExecutor executor;
  const Result<Tuned> tuned = tune(task(), {.generations = 3, .population = 16}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  const double first = tuned->history[0].us / us_of(tuned->history[0].options);
  for (const Record& record : tuned->history) EXPECT_NEAR(record.us / us_of(record.options), first, 1e-9);
}

/// The best is the fastest of the history, whatever the last comparison says of those that seemed faster.
void expect_the_fastest(const Tuned& tuned) {
  for (const Record& record : tuned.history) {
    EXPECT_TRUE(record.outcome != Outcome::kDone || record.us >= tuned.best_us) << record.us;
    EXPECT_TRUE(record.options != tuned.best || record.us == tuned.best_us) << record.us;
  }
}

/// Says something else of measurements than the landscape does.
class ChangingExecutor : public LandscapeExecutor {
 public:
  Result<void> submit(Job job) override {
    const auto value = job_from(job.bytes);
    const auto* measure = std::get_if<MeasureJob>(&value->work);
    TC_TRY_VOID(LandscapeExecutor::submit(std::move(job)));
    TC_TRY(done, LandscapeExecutor::wait(milliseconds(0)));
    if (measure && !measure->has_incumbent) default_ = value->options;
    for (Done& one : done) {
      Reply reply = *reply_from(one.text);
      if (measure) change(reply, *measure, value->options == default_);
      one.text = to_bytes(reply);
      done_.push_back(std::move(one));
    }
    return {};
  }
  Result<std::vector<Done>> wait(milliseconds) override { return std::exchange(done_, {}); }

 private:
  virtual void change(Reply& reply, const MeasureJob& job, bool is_default) = 0;

  std::string default_;
  std::vector<Done> done_;
};

/// Every time is off by up to a factor of two, as on a machine that others use.
class NoisyExecutor : public ChangingExecutor {
 public:
  explicit NoisyExecutor(uint64_t seed) : random_(seed) {}

 private:
  void change(Reply& reply, const MeasureJob&, bool) override { reply.hot_us *= std::exp2(noise_(random_)); }

  std::mt19937_64 random_;
  std::uniform_real_distribution<double> noise_{-1, 1};
};

TEST(Tuner, NoiseDoesNotAddUp) {
  NoisyExecutor executor(1);
  const Result<Tuned> tuned = tune(task(), {.generations = 20, .population = 16}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  // The default's time is off by a factor of two at most, and so is every ratio to it.
  const double share = tuned->best_us / us_of(tuned->best);
  const double unit = tuned->history[0].us / us_of(tuned->history[0].options);
  EXPECT_GE(share / unit, 0.49);
  EXPECT_LE(share / unit, 2.01);
  expect_the_fastest(*tuned);
}

TEST(Tuner, WhatLosesTheLastComparisonIsNotTheBest) {
  int corrected = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    NoisyExecutor executor(seed);
    const Result<Tuned> tuned = tune(task(), {.generations = 1, .population = 16, .seed = seed}, executor);
    ASSERT_TRUE(tuned) << tuned.error().to_string();
    expect_the_fastest(*tuned);
    EXPECT_GE(tuned->speedup, 1);
    corrected += static_cast<int>(std::ranges::count_if(tuned->history, &Record::corrected));
  }
  EXPECT_GT(corrected, 0) << "the noise is too small to mean anything";
}

/// What is measured in turn with a candidate that is not the default seems three times as fast, as on a machine that
/// has become slower for some and not for others.
class FlatteringExecutor : public ChangingExecutor {
  void change(Reply& reply, const MeasureJob&, bool is_default) override {
    if (!is_default) reply.hot_us /= 3;
  }
};

TEST(Tuner, TheBestIsAsFastAsTheLastComparisonSays) {
  FlatteringExecutor executor;
  const Result<Tuned> tuned = tune(task(), {.generations = 1, .population = 4}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  expect_the_fastest(*tuned);
  EXPECT_NEAR(tuned->best_us, tuned->default_us / tuned->speedup, 1e-9);
  const double unit = tuned->default_us / us_of(tuned->history[0].options);
  EXPECT_NEAR(tuned->best_us, us_of(tuned->best) * unit, 1e-9);
  for (const Record& record : tuned->history) EXPECT_GE(us_of(record.options), us_of(tuned->best)) << record.options;
}

/// A clock that lies: one measurement of a candidate in so many is a thousandth of what it took.
class LyingExecutor : public ChangingExecutor {
 public:
  explicit LyingExecutor(int period) : period_(period) {}

 private:
  void change(Reply& reply, const MeasureJob& job, bool) override {
    reply.floor_us = 0.9;
    const bool lies = job.has_incumbent && ++measurements_ % period_ == 0;
    if (lies) reply.hot_us /= 1000;
  }

  int period_;
  int measurements_ = 0;
};

void expect_possible(const Tuned& tuned) {
  for (const Record& record : tuned.history) {
    if (record.outcome != Outcome::kDone) continue;
    EXPECT_GE(record.us, 0.9) << record.options;
    EXPECT_GE(record.us * kMostDrift * kSlowest, us_of(record.options)) << record.options;
  }
}

TEST(Tuner, ATimeBelowTheFloorIsMeasuredAgain) {
  LyingExecutor executor(4);
  const Result<Tuned> tuned = tune(task(), {.generations = 4, .population = 16}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  expect_possible(*tuned);
  expect_the_fastest(*tuned);
  EXPECT_EQ(tuned->floor_us, 0.9);
  for (const Record& record : tuned->history) EXPECT_NE(record.outcome, Outcome::kImpossible);
}

TEST(Tuner, WhatStaysBelowTheFloorIsNoCandidate) {
  LyingExecutor executor(1);
  const Result<Tuned> tuned = tune(task(), {.generations = 1, .population = 4}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->best, tuned->history[0].options);
  for (size_t i = 1; i < tuned->history.size(); ++i) {
    EXPECT_EQ(tuned->history[i].outcome, Outcome::kImpossible);
    EXPECT_EQ(tuned->history[i].us, 0);
    EXPECT_NE(tuned->history[i].message.find("this machine needs 0.9 us at least"), std::string::npos)
        << tuned->history[i].message;
  }
}

/// Whatever is measured in turn with a candidate takes thirty times as long for a while: it waits for a thread that
/// another program keeps from running.
class ContendedExecutor : public ChangingExecutor {
 public:
  explicit ContendedExecutor(bool always) : always_(always) {}

 private:
  void change(Reply& reply, const MeasureJob& job, bool is_default) override {
    if (!job.has_incumbent || !(always_ || ++measurements_ % 3 == 0)) return;
    (is_default ? reply.hot_us : reply.incumbent_us) *= 30;
  }

  bool always_;
  int measurements_ = 0;
};

TEST(Tuner, TimesAreConfirmedByRunsWithoutAPartner) {
  for (const bool always : {false, true}) {
    ContendedExecutor executor(always);
    const Result<Tuned> tuned = tune(task(), {.generations = 4, .population = 16}, executor);
    ASSERT_TRUE(tuned) << tuned.error().to_string();
    expect_the_fastest(*tuned);
    for (const Record& record : tuned->history) {
      const double us = us_of(record.options);
      EXPECT_GE(record.us, us / kMostDrift / kSlowest) << record.options;
      EXPECT_LE(record.us, us * kMostDrift * kSlowest) << record.options;
      EXPECT_LE(record.own_us, record.us * kMostDrift);
    }
    // A speed-up of thirty that is the other program's doing is not reported.
    EXPECT_LE(tuned->speedup, kMostDrift * tuned->default_us / us_of(tuned->best));
    EXPECT_EQ(tuned->noise.empty(), !always) << tuned->noise;
  }
}

/// Does not answer when the best and the default are compared at the end.
class ExecutorThatHangsAtTheEnd : public LandscapeExecutor {
 public:
  Result<void> submit(Job job) override {
    const auto value = job_from(job.bytes);
    const auto* measure = std::get_if<MeasureJob>(&value->work);
    const bool is_first = measured_.empty();
    if (measure && measure->has_incumbent && value->options == default_) {
      hangs_ = true;
      return {};
    }
    if (measure && is_first) default_ = value->options;
    return LandscapeExecutor::submit(std::move(job));
  }
  bool hangs_ = false;

 private:
  std::string default_;
};

TEST(Tuner, ALastComparisonThatHangsEndsWithTheTime) {
  ExecutorThatHangsAtTheEnd executor;
  const Result<Tuned> tuned =
      tune(task(), {.generations = 2, .population = 16, .time_limit_s = 2}, executor);  // done long before
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_TRUE(executor.hangs_);
  EXPECT_EQ(tuned->speedup, tuned->default_us / tuned->best_us);
}

TEST(Tuner, MeasuresNothingTwice) {
  LandscapeExecutor executor;
  Task twice = task();
  twice.space.parameters.resize(1);  // eight points
  for (int i = 1; i < 8; ++i) twice.space.parameters.push_back({testing::landscape_space().parameters[i].field, {"1"}});
  const Result<Tuned> tuned = tune(twice, {.generations = 10, .population = 3}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->ending, Ending::kExhausted);
  EXPECT_EQ(tuned->history.size(), 8);
  EXPECT_EQ(executor.compiled_, 8);
  EXPECT_EQ(executor.measured_.size(), 8);
}

TEST(Tuner, StartsWithTheSeedsAndAsksForNothingInfeasible) {
  LandscapeExecutor executor;
  Task seeded = task();
  const std::string seed = *text_of(seeded.space, {3, 5, 2, 4, 6, 1, 4, 3});
  seeded.seeds = {seed};
  seeded.infeasible = [](const std::string& options) {
    return options.find("unroll: 6\n") == std::string::npos ? "" : "six are too many";
  };
  const Result<Tuned> tuned = tune(seeded, {.generations = 3, .population = 16}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->history[1].options, seed);
  EXPECT_EQ(tuned->best, seed);  // the landscape's best point
  EXPECT_EQ(std::ranges::count_if(executor.measured_,
                                  [](const auto& m) { return m.first.find("unroll: 6\n") != std::string::npos; }),
            0);
}

TEST(Tuner, GoesOnWhereARunThatWasKilledHasEnded) {
  LandscapeExecutor whole, first, second;
  const TunerOptions options{.generations = 6, .population = 8, .seed = 3};
  const Result<Tuned> at_once = tune(task(), options, whole);
  // Killed after three generations.
  TunerOptions half = options;
  half.generations = 3;
  const Result<Tuned> killed = tune(task(), half, first);
  Task resumed = task();
  resumed.known = killed->history;
  const Result<Tuned> rest = tune(resumed, options, second);
  ASSERT_TRUE(at_once && killed && rest);
  ASSERT_EQ(rest->history.size(), at_once->history.size());
  for (size_t i = 0; i < rest->history.size(); ++i) {
    EXPECT_EQ(rest->history[i].options, at_once->history[i].options);
    EXPECT_EQ(rest->history[i].remembered, i < killed->history.size());
  }
  EXPECT_EQ(rest->best, at_once->best);
  for (const auto& [text, count] : second.measured_) {
    const bool is_of_the_last_comparison = text == rest->best || text == rest->history[0].options;
    EXPECT_TRUE(is_of_the_last_comparison || !first.measured_.contains(text)) << text;
  }
}

TEST(Tuner, BreedsTheSameWhicheverEndsFirst) {
  std::vector<std::set<std::string>> generations[2];
  for (const bool last_first : {false, true}) {
    LandscapeExecutor executor;
    executor.last_first_ = last_first;
    executor.slowest_ = 1;  // ratios of drifting times are not the same to the last bit
    const Result<Tuned> tuned =
        tune(task(), {.generations = 6, .population = 8, .seed = 3, .compile_slots = 4}, executor);
    ASSERT_TRUE(tuned) << tuned.error().to_string();
    generations[last_first].resize(7);
    for (const Record& record : tuned->history) {
      generations[last_first].at(static_cast<size_t>(record.generation)).insert(record.options);
    }
  }
  EXPECT_EQ(generations[false], generations[true]);
}

TEST(Tuner, KeepsTheBestWhenItIsStopped) {
  LandscapeExecutor executor;
  std::stop_source stop;
  Task stopped = task();
  stopped.on_progress = [&](const Progress& progress) {
    if (progress.done == 20) stop.request_stop();
  };
  const Result<Tuned> tuned = tune(stopped, {.generations = 100, .population = 8, .stop = stop.get_token()}, executor);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->ending, Ending::kStopped);
  EXPECT_LT(tuned->history.size(), 30);
  EXPECT_LT(tuned->best_us, tuned->default_us);
}

// With workers that are processes.

class Workers : public ::testing::Test {
 protected:
  std::string starts() const { return folder_.path("starts"); }

  /// The landscape with one more value of unroll.
  static Task with_unroll(const std::string& value) {
    Task one = task();
    one.space.parameters[6].values = {"5", value};
    for (size_t p = 0; p < 8; ++p) {
      if (p != 6) one.space.parameters[p].values = {one.space.parameters[p].values[1]};
    }
    return one;
  }

  /// Tunes over the default and one candidate that fails; what became of that, and the best afterwards.
  static Record failing(const std::string& unroll, milliseconds limit = milliseconds(20'000)) {
    WorkerPool pool({TC_TUNE_WORKER});
    const Result<Tuned> tuned = tune(
        with_unroll(unroll), {.generations = 1, .population = 1, .compile_slots = 2, .measure_limit = limit}, pool);
    EXPECT_TRUE(tuned) << tuned.error().to_string();
    if (!tuned) return {};
    EXPECT_EQ(tuned->history.size(), 2);
    EXPECT_EQ(tuned->history[0].outcome, Outcome::kDone);
    EXPECT_EQ(tuned->best, tuned->history[0].options);
    return tuned->history.back();
  }

  const tc::testing::TemporaryFolder folder_;
};

TEST_F(Workers, CompileAndMeasure) {
  WorkerPool pool({TC_TUNE_WORKER});
  Task good = task();
  good.space.parameters[6].values = {"5"};  // at which nothing fails
  const Result<Tuned> tuned =
      tune(good, {.generations = 4, .population = 8, .compile_slots = 3, .devices = {0, 1}}, pool);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->history.size(), 33);
  for (const Record& record : tuned->history) EXPECT_EQ(record.outcome, Outcome::kDone) << record.message;
  EXPECT_LE(pool.started(), 5);
}

TEST_F(Workers, ACrashWhileMeasuringCostsThatCandidate) {
  const Record record = failing("2");
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_TRUE(record.message.starts_with("was killed by SIGSEGV (Segmentation fault)")) << record.message;
}

TEST_F(Workers, ACrashWhileCompilingCostsThatCandidate) {
  const Record record = failing("3");
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_TRUE(record.message.starts_with("was killed by SIGABRT (Aborted)")) << record.message;
}

TEST_F(Workers, AnExitCostsThatCandidate) {
  const Record record = failing("7");
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_TRUE(record.message.starts_with("exited with code 3")) << record.message;
}

TEST_F(Workers, AHangCostsThatCandidate) {
  const Record record = failing("4", milliseconds(300));
  EXPECT_EQ(record.outcome, Outcome::kHang);
  EXPECT_TRUE(record.message.starts_with("took longer than 300 ms")) << record.message;
}

TEST_F(Workers, GarbageCostsThatCandidate) {
  const Record record = failing("6");
  EXPECT_EQ(record.outcome, Outcome::kGarbage);
  EXPECT_TRUE(record.message.starts_with("what it writes is no frame")) << record.message;
}

TEST_F(Workers, AWrongResultCostsThatCandidate) {
  const Record record = failing("8");
  EXPECT_EQ(record.outcome, Outcome::kWrong);
  EXPECT_EQ(record.message, "'C' differs at (0, 0)");
}

TEST_F(Workers, ARefusalCostsThatCandidate) {
  const Record record = failing("1");
  EXPECT_EQ(record.outcome, Outcome::kRefused);
  EXPECT_EQ(record.message, "the options ask for too much");
}

TEST_F(Workers, AllFailuresTogetherLeaveTheGoodOnes) {
  WorkerPool pool({TC_TUNE_WORKER});
  Task all = with_unroll("1");
  all.space.parameters[6].values = {"5", "1", "2", "3", "4", "6", "7", "8"};
  all.space.parameters[0].values = {"1", "2", "4"};
  std::map<Outcome, int> failed;
  all.on_progress = [&](const Progress& progress) { failed = progress.failed; };
  const Result<Tuned> tuned =
      tune(all, {.generations = 2, .population = 30, .compile_slots = 3, .measure_limit = milliseconds(3000)}, pool);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->history.size(), 24);
  EXPECT_EQ(failed, (std::map<Outcome, int>{{Outcome::kRefused, 3},
                                            {Outcome::kWrong, 3},
                                            {Outcome::kCrash, 9},
                                            {Outcome::kHang, 3},
                                            {Outcome::kGarbage, 3}}));
  EXPECT_TRUE(tuned->best.find("unroll: 5\n") != std::string::npos) << tuned->best;
}

TEST_F(Workers, AWorkerThatDiesAtItsStartIsReplaced) {
  WorkerPool pool({TC_TUNE_WORKER, "2", starts()});
  const Result<Tuned> tuned = tune(with_unroll("5"), {.generations = 0}, pool);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(tuned->history[0].outcome, Outcome::kDone);
}

TEST_F(Workers, WorkersThatNeverStartEndTheSearch) {
  WorkerPool pool({TC_TUNE_WORKER, "1000", starts()});
  const Result<Tuned> tuned = tune(with_unroll("5"), {.generations = 1}, pool);
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().to_string(), std::string("error: the worker '") + TC_TUNE_WORKER +
                                           "' does not start: exited with code 9; its last words: a library is "
                                           "missing\n");
  WorkerPool nobody({"/nonexistent/worker"});
  const Result<Tuned> none = tune(with_unroll("5"), {.generations = 1}, nobody);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().to_string(), "error: cannot start '/nonexistent/worker': No such file or directory\n");
}

TEST_F(Workers, AProgramThatIsNoWorkerEndsTheSearch) {
  WorkerPool pool({TC_TUNE_WORKER, "mute"});
  const Result<Tuned> tuned = tune(with_unroll("5"), {.generations = 1}, pool);
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().to_string(),
            std::string("error: the worker '") + TC_TUNE_WORKER + "' does not start: what it writes is no frame\n");
}

TEST_F(Workers, AnUnusableProblemEndsTheSearch) {
  WorkerPool pool({TC_TUNE_WORKER});
  Task bad = with_unroll("5");
  bad.problem = "unusable";
  const Result<Tuned> tuned = tune(bad, {.generations = 1}, pool);
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().to_string(), "error: no such def\n");
}

}  // namespace
}  // namespace tc::tune
