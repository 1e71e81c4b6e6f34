#include "tc/api/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "tc/api/tune_problem.h"
#include "tc/api/tune_space.h"
#include "tc/cache/cache.h"
#include "tc/tune/messages.h"
#include "tests/api/tensors.h"
#include "tests/common/temporary_folder.h"

namespace tc::api {
namespace {

constexpr const char* kMm = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// Does jobs in this process, as an engine of the caller's might elsewhere.
class InProcess : public tune::Executor {
 public:
  Result<void> submit(Job job) override {
    ++jobs;
    if (before_job) before_job();
    std::string text = run_tune_job(job.bytes);
    const tune::Job asked = *tune::job_from(job.bytes);
    const auto* measure = std::get_if<tune::MeasureJob>(&asked.work);
    if (measure != nullptr && us) text = with_times(text, asked.options, *measure);
    done_.push_back({job.id, tune::Loss::kNone, std::move(text)});
    return {};
  }
  Result<std::vector<Done>> wait(std::chrono::milliseconds) override { return std::exchange(done_, {}); }

  int jobs = 0;
  std::function<void()> before_job{};
  /// Of options, measured or as what others are measured in turn with, in place of what a clock says.
  std::function<double(const std::string& options, bool is_incumbent)> us{};

 private:
  std::string with_times(const std::string& text, const std::string& options, const tune::MeasureJob& job) const {
    tune::Reply reply = *tune::reply_from(text);
    EXPECT_TRUE(reply.outcome == tune::Outcome::kDone || reply.outcome == tune::Outcome::kHopeless) << reply.message;
    EXPECT_GT(reply.hot_us, 0);
    reply.outcome = tune::Outcome::kDone;
    reply.hot_us = us(options, false);
    if (job.has_incumbent) reply.incumbent_us = us(job.incumbent_options, true);
    return to_bytes(reply);
  }
  std::vector<Done> done_;
};

TuneProgram mm() { return {.text = kMm, .request = {.sizes = {{"M", 16}, {"N", 24}, {"K", 32}}}}; }

class Tuning : public ::testing::Test {
 protected:
  TuneConfig config() { return {.generations = 1, .population = 3, .threads = 1, .executor = executor_}; }
  /// How many kernels an engine with the cache compiles when it is asked for the tuned one.
  static int64_t compiled_with(const std::string& cache) {
    const Engine engine = testing::take(Engine::create(kMm, "tc", {.cache = cache}));
    testing::take(engine.compile(mm().request));
    return engine.statistics().compiled;
  }
  static std::string error_of(const Result<tune::Tuned>& tuned) { return tuned ? "" : tuned.error().to_string(); }

  const testing::TemporaryFolder folder_;
  std::shared_ptr<InProcess> executor_ = std::make_shared<InProcess>();
};

TEST_F(Tuning, MeasuresOnTheCallersTensorsAndKeepsTheBest) {
  TuneConfig cached = config();
  cached.cache = folder_.path("c.tcc");
  std::map<std::string, double> times;  // each that comes is faster than those before
  executor_->us = [&](const std::string& options, bool) {
    return times.try_emplace(options, 100.0 / static_cast<double>(1 + times.size())).first->second;
  };
  std::vector<Tensor> inputs;
  inputs.push_back(*Tensor::allocate({.shape = {16, 32}}));
  inputs.push_back(*Tensor::allocate({.shape = {32, 24}}));
  std::fill_n(inputs[0].data_as<float>(), 16 * 32, 2.0F);
  int calls = 0;
  const auto tuned = tune(mm(), inputs, cached, [&](const tune::Progress& progress) { calls = progress.done; });
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(calls, 4);
  ASSERT_EQ(tuned->history.size(), 4);
  for (const tune::Record& record : tuned->history) EXPECT_EQ(record.outcome, tune::Outcome::kDone) << record.message;
  EXPECT_EQ(tuned->speedup, 4);
  EXPECT_EQ(compiled_with(cached.cache), 0);
  // A second search measures nothing but the last comparison.
  executor_->jobs = 0;
  const auto again = tune(mm(), inputs, cached);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(executor_->jobs, 1);
  EXPECT_EQ(again->best, tuned->best);
}

TEST_F(Tuning, TensorsPickTheInstanceOfAGenericDef) {
  TuneProgram program{.text = "def sum<T>(T(M,K) v) -> (H) { H(i) +=! v(i,k) }"};
  program.request.inputs = {TensorSpec{.type = ScalarType::kFloat64, .shape = {60, 60}}};
  std::vector<Tensor> inputs;
  inputs.push_back(*Tensor::allocate({.type = ScalarType::kFloat64, .shape = {60, 60}}));
  std::fill_n(inputs[0].data_as<double>(), 3600, 1.0);
  EXPECT_EQ(error_of(tune(program, inputs, config())), "");
  program.request.inputs = {std::nullopt};
  program.request.sizes = {{"M", 60}, {"K", 60}};
  EXPECT_NE(error_of(tune(program, {}, config())).find("nothing decides the type variable 'T'"), std::string::npos);
  program.request.types = {{"T", ScalarType::kInt64}};
  EXPECT_EQ(error_of(tune(program, {}, config())), "");
}

/// The text of mm() has symbolic sizes.
TEST_F(Tuning, AFloorIsThatOfTheRequestedSizes) {
  executor_->us = [](const std::string&, bool) { return 100.0; };
  const auto tuned = tune(mm(), {}, config());
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_GT(tuned->floor_us, 0);
}

/// The cache knows more when a run that was killed starts again; what it tries first is what it tried then.
TEST_F(Tuning, ARunThatWasKilledGoesTheSameWayAgain) {
  std::map<std::string, double> times;  // each that comes is faster than those before
  executor_->us = [&](const std::string& options, bool) {
    return times.try_emplace(options, 100.0 / static_cast<double>(1 + times.size())).first->second;
  };
  const auto search = [&](const char* file, int generations, uint64_t seed) {
    TuneConfig cached = config();
    cached.cache = folder_.path(file);
    cached.generations = generations;
    cached.seed = seed;
    const auto tuned = tune(mm(), {}, cached);
    EXPECT_TRUE(tuned) << error_of(tuned);
    return tuned ? tuned->history : std::vector<tune::Record>();
  };
  const auto at_once = search("whole.tcc", 2, 1);
  const auto killed = search("c.tcc", 1, 1);
  const auto again = search("c.tcc", 2, 1);
  ASSERT_EQ(at_once.size(), 7);
  ASSERT_EQ(again.size(), 7);
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].options, at_once[i].options) << i;
    EXPECT_EQ(again[i].remembered, i < killed.size()) << i;
  }
  // Another search begins with the best of this one.
  EXPECT_EQ(search("c.tcc", 1, 2)[1].options, again.back().options);
}

/// What has been found is not lost where the cache cannot be written any more.
TEST_F(Tuning, ACacheThatBreaksCostsNoResult) {
  TuneConfig cached = config();
  cached.cache = folder_.path("c.tcc");
  executor_->before_job = [&] { std::ofstream(cached.cache) << std::string(4096, 'x'); };
  const auto tuned = tune(mm(), {}, cached);
  ASSERT_TRUE(tuned) << error_of(tuned);
  EXPECT_EQ(tuned->history.size(), 4);
  EXPECT_EQ(tuned->not_kept, "the cache " + cached.cache + ": it is not a cache");
}

/// On a busy machine what is slower may seem faster, until the last comparison. Who reads the cache is not told so.
TEST_F(Tuning, KeepsNoTimesThatWereLuck) {
  TuneConfig cached = config();
  cached.cache = folder_.path("c.tcc");
  std::optional<std::string> compilers;  // choice, which is measured first
  executor_->us = [&](const std::string& options, bool is_incumbent) {
    if (!compilers) compilers = options;
    return options == *compilers ? 100.0 : is_incumbent ? 130.0 : 50.0;
  };
  const auto tuned = tune(mm(), {}, cached);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  ASSERT_EQ(tuned->history.size(), 4);
  EXPECT_EQ(tuned->best, compilers);
  EXPECT_EQ(tuned->speedup, 1);
  for (const tune::Record& record : tuned->history) {
    EXPECT_EQ(record.corrected, record.options != compilers);
    EXPECT_NEAR(record.us, record.options == compilers ? 100 : 130, 1e-9);
  }
  EXPECT_EQ(compiled_with(cached.cache), 0);
}

TEST(TuneProblem, IsTheSameForAWorker) {
  TuneProblem problem{.program = mm(), .arch = "sm_80", .seed = 7, .folder = "here", .data_given = true};
  problem.program.request.backend = Backend::kSimulator;
  problem.program.request.element_aligned = true;
  problem.program.request.device = 3;
  const auto read = tune_problem_from(to_bytes(problem));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->program.request.element_aligned);
  EXPECT_EQ(read->program.request.device, 3);
  EXPECT_EQ(to_bytes(*read), to_bytes(problem));
}

/// What an estimate may be wrong about is among the first that are tried: threads, and how many rows go together.
TEST(TuneSpace, BeginsWithThreadsAndSeveralRowsAtATime) {
  const testing::TemporaryFolder folder;
  const char* softmax =
      "def softmax(float(N,D) I) -> (O) { top(n) max=! I(n,d)  E(n,d) = exp(I(n,d) - top(n))  t(n) +=! E(n,d)"
      "  O(n,d) = E(n,d) / t(n) }";
  const TuneProblem problem{.program = {.text = softmax, .request = {.sizes = {{"N", 128}, {"D", 100}}}},
                            .folder = folder.path()};
  const TuneSetup setup = testing::take(set_up(problem));
  const TuneSpace space = testing::take(space_of(setup, 16));
  const auto place = [&](const options::CpuOptions& options) {
    const auto found = std::ranges::find(space.seeds, options::to_text(options));
    return found == space.seeds.end() ? PTRDIFF_MAX : found - space.seeds.begin();
  };
  EXPECT_LT(place({.parallel = true}), 10);
  EXPECT_LT(place({.tile = {2}, .parallel = true}), 10);
  EXPECT_LT(place({.tile = {8}, .parallel = true}), 10);
  EXPECT_LT(place({.vector_width = 32}), 16);

  const TuneSetup of_mm = testing::take(set_up({.program = mm(), .folder = folder.path()}));
  EXPECT_EQ(
      std::ranges::count(testing::take(space_of(of_mm, 16)).seeds, options::to_text(options::CpuOptions{.tile = {2}})),
      0)
      << "a product has blocks of its own";
}

TEST_F(Tuning, PassesOverKernelsByHand) {
  TuneConfig cached = config();
  cached.cache = folder_.path("c.tcc");
  ASSERT_TRUE(tune(mm(), {}, cached));
  const auto file = cache::Cache::open(cached.cache);
  ASSERT_TRUE(file) << file.error().to_string();
  cache::Measurement by_hand = file.value()->all_measurements().value().front();
  by_hand.options = "by hand 0123456789ab";
  by_hand.state = cache::Measurement::State::kOk;
  by_hand.time_us = 1e-3;
  ASSERT_TRUE(file.value()->add(by_hand));
  const auto again = tune(mm(), {}, cached);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_GT(again->best_us, 1e-3);
}

TEST_F(Tuning, ComparesEveryResultWithTheOracles) {
  TuneConfig kept = config();
  kept.folder = folder_.path();
  ASSERT_EQ(error_of(tune(mm(), {}, kept)), "");
  // Another process's oracle has other results.
  const std::filesystem::path expected = folder_.path("expected.bin");
  ASSERT_EQ(std::filesystem::file_size(expected), 16 * 24 * 16);
  const std::string zeros(16 * 24 * 16, '\0');
  executor_->before_job = [&] { std::ofstream(expected, std::ios::binary) << zeros; };
  TuneProgram other = mm();
  other.name = "another";  // so that this process prepares it anew
  const std::string error = error_of(tune(other, {}, kept));
  EXPECT_TRUE(
      error.starts_with("error: the options that every candidate is compared with do not work (wrong result): 'C' "))
      << error;
}

TEST_F(Tuning, TakesInOutsSubscriptsStridesAndScalars) {
  const TuneProgram gather{.text = "def g(float(N) x, int32(B) i, float a) -> (y) { y(b) = a * x(i(b)) }",
                           .request = {.sizes = {{"N", 10}, {"B", 40}}, .scalars = {{"a", 2.0}}}};
  EXPECT_EQ(error_of(tune(gather, {}, config())), "");
  const TuneProgram strided{.text = "def t(float(M,N) A) -> (B) { B(n,m) = A(m,n) }",
                            .request = {.inputs = {TensorSpec{.shape = {8, 12}, .strides = {1, 9}}}}};
  EXPECT_EQ(error_of(tune(strided, {}, config())), "");
  TuneProgram simulated = mm();
  simulated.request.backend = Backend::kSimulator;
  EXPECT_EQ(error_of(tune(simulated, {}, config())), "");
}

/// The oracle's results that lie there are of other data.
TEST_F(Tuning, TakesAFolderThatAnotherSearchHasUsed) {
  TuneConfig in_folder = config();
  in_folder.folder = folder_.path();
  for (const uint64_t seed : {1, 2}) {
    in_folder.seed = seed;
    EXPECT_EQ(error_of(tune(mm(), {}, in_folder)), "");
  }
}

TEST_F(Tuning, SaysWhatIsWrong) {
  TuneConfig bad = config();
  bad.population = 0;
  EXPECT_EQ(error_of(tune(mm(), {}, bad)), "error: a population of 0\n");
  bad = config();
  bad.threads = -1;
  EXPECT_EQ(error_of(tune(mm(), {}, bad)), "error: -1 threads\n");
  bad = config();
  bad.time_limit_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of(tune(mm(), {}, bad)), "error: a time limit of nan s\n");
  bad = config();
  bad.devices = {0, -1};
  EXPECT_EQ(error_of(tune(mm(), {}, bad)), "error: device -1: they are numbered from 0\n");
  bad.devices = {1, 0, 1};
  EXPECT_EQ(error_of(tune(mm(), {}, bad)), "error: device 1 is given twice\n");
  bad.devices = {0};
  EXPECT_EQ(error_of(tune(mm(), {}, bad)),
            "error: devices are given that measure; only the backend cuda has several\n");
  std::vector<Tensor> one;
  one.push_back(*Tensor::allocate({.shape = {16, 32}}));
  EXPECT_EQ(error_of(tune(mm(), one, config())), "error: 1 inputs are given; the def has 2\n");
  one.push_back(*Tensor::allocate({.shape = {32, 25}}));
  EXPECT_EQ(error_of(tune(mm(), one, config())), "error: input 1 is float32(32, 25); the def takes float32(32, 24)\n");
  TuneProgram sizeless = mm();
  sizeless.request.sizes.erase("K");
  EXPECT_EQ(error_of(tune(sizeless, {}, config())),
            "error: size 'K' of 'mm' has no value: no tensor that is given determines it\n");
}

}  // namespace
}  // namespace tc::api
