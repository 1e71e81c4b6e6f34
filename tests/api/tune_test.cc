#include "tc/api/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tc::api {
namespace {

constexpr const char* kMm = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// Does jobs in this process, as an engine of the caller's might elsewhere.
class InProcess : public tune::Executor {
 public:
  Result<void> submit(Job job) override {
    ++jobs;
    done_.push_back({job.id, tune::Loss::kNone, run_tune_job(job.bytes)});
    return {};
  }
  Result<std::vector<Done>> wait(std::chrono::milliseconds) override { return std::exchange(done_, {}); }
  int jobs = 0;

 private:
  std::vector<Done> done_;
};

TuneProgram mm() { return {.text = kMm, .request = {.sizes = {{"M", 16}, {"N", 24}, {"K", 32}}}}; }

class Tuning : public ::testing::Test {
 protected:
  Tuning() {
    std::string name = (std::filesystem::temp_directory_path() / "tensorc-tuning-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Tuning() override { std::filesystem::remove_all(folder_); }

  TuneConfig config() { return {.generations = 1, .population = 3, .threads = 1, .executor = executor_}; }
  static std::string error_of(const Result<tune::Tuned>& tuned) { return tuned ? "" : tuned.error().to_string(); }

  std::filesystem::path folder_;
  std::shared_ptr<InProcess> executor_ = std::make_shared<InProcess>();
};

TEST_F(Tuning, MeasuresOnTheCallersTensorsAndKeepsTheBest) {
  TuneConfig cached = config();
  cached.cache = (folder_ / "c.tcc").string();
  std::vector<Tensor> inputs;
  inputs.push_back(*Tensor::allocate({.shape = {16, 32}}));
  inputs.push_back(*Tensor::allocate({.shape = {32, 24}}));
  std::fill_n(inputs[0].data_as<float>(), 16 * 32, 2.0F);
  int calls = 0;
  const auto tuned = tune(mm(), inputs, cached, [&](const tune::Progress& progress) { calls = progress.done; });
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_EQ(calls, 4);
  ASSERT_EQ(tuned->history.size(), 4);
  for (const tune::Record& record : tuned->history) {
    EXPECT_TRUE(record.outcome == tune::Outcome::kDone || record.outcome == tune::Outcome::kHopeless) << record.message;
    EXPECT_GT(record.us, 0);
  }
  EXPECT_GE(tuned->speedup, 1);
  // An engine with the same cache compiles nothing.
  const auto engine = Engine::create(kMm, "tc", {.cache = cached.cache});
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto kernel = engine->compile(mm().request);
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  EXPECT_EQ(engine->statistics().compiled, 0);
  // A second search measures nothing but the last comparison.
  executor_->jobs = 0;
  const auto again = tune(mm(), inputs, cached);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_LE(executor_->jobs, 1);
}

TEST_F(Tuning, ComparesEveryResultWithTheOracles) {
  TuneConfig kept = config();
  kept.folder = folder_.string();
  ASSERT_EQ(error_of(tune(mm(), {}, kept)), "");
  // Another process's oracle has other results.
  const std::filesystem::path expected = folder_ / "expected.bin";
  ASSERT_EQ(std::filesystem::file_size(expected), 16 * 24 * 16);
  const std::string zeros(16 * 24 * 16, '\0');
  std::ofstream(expected, std::ios::binary) << zeros;
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

TEST_F(Tuning, SaysWhatIsWrong) {
  TuneConfig bad = config();
  bad.population = 0;
  EXPECT_EQ(error_of(tune(mm(), {}, bad)), "error: a population of 0\n");
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
