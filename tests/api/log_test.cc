#include "tc/support/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <regex>
#include <thread>

#include "tc/api/tc.h"
#include "tc/api/tc_c.h"
#include "tests/common/temporary_folder.h"

namespace tc::api {
namespace {

constexpr char kText[] = "def scaled(float(N) a, float s) -> (b) { b(n) = a(n) * s }";

Request scaled_of(int64_t n) { return {.sizes = {{"N", n}}}; }

/// What the library logs, with times as "T".
class EngineLog : public ::testing::Test {
 protected:
  void listen(LogLevel most) {
    set_log(
        [this](const LogMessage& message) {
          static const std::regex kTime(R"(\d+\.\d+ ms)");
          const std::lock_guard lock(mutex_);
          lines_.push_back(std::regex_replace(std::string(message.text), kTime, "T ms"));
          if (message.level == LogLevel::kWarning) ++warnings_;
        },
        most);
  }
  ~EngineLog() override { set_log({}); }

  int64_t count(const std::string& line) const { return std::ranges::count(lines_, line); }

  std::mutex mutex_;
  std::vector<std::string> lines_;
  int warnings_ = 0;
  testing::TemporaryFolder folder_;
};

TEST_F(EngineLog, InformationIsALineForEachKernel) {
  listen(LogLevel::kInfo);
  const auto engine = Engine::create(kText);
  ASSERT_TRUE(engine);
  ASSERT_TRUE(engine->compile(scaled_of(8)));
  ASSERT_TRUE(engine->compile(scaled_of(8)));
  EXPECT_EQ(lines_, std::vector<std::string>{"compiled 'scaled' for N=8 on cpu in T ms"});
}

TEST_F(EngineLog, DetailsArePassesAndWhereAKernelComesFrom) {
  listen(LogLevel::kDetail);
  const std::string cache = folder_.path("k.tcc");
  for (int i = 0; i < 2; ++i) {
    const auto engine = Engine::create(kText, "scaled.tc", {.cache = cache});
    ASSERT_TRUE(engine);
    ASSERT_TRUE(engine->compile(scaled_of(8)));
  }
  EXPECT_EQ(count("checked 'scaled.tc' in T ms; its defs: scaled"), 2);
  EXPECT_EQ(count("'scaled' for N=8 on cpu: not in the cache " + cache), 1);
  EXPECT_EQ(count("'scaled' for N=8 on cpu: in the cache " + cache), 1);
  for (const char* pass : {"parse", "specialise", "schedule", "object", "load"}) {
    EXPECT_GE(count("scaled.tc: pass " + std::string(pass) + " took T ms") +
                  count("scaled: pass " + std::string(pass) + " took T ms"),
              1)
        << pass;
  }
  EXPECT_EQ(count("scaled: pass object took T ms"), 1);
}

TEST_F(EngineLog, FailuresAreDetails) {
  listen(LogLevel::kDetail);
  const auto engine = Engine::create(kText);
  ASSERT_TRUE(engine);
  Request request = scaled_of(8);
  request.budget.isl_operations = 1;
  ASSERT_FALSE(engine->compile(request));
  EXPECT_EQ(lines_.back(), "'scaled' has no kernel: this def needs more than the compile budget of 1 isl operations");
}

TEST_F(EngineLog, WarningsAreThoseThatTheEngineGivesItsCaller) {
  listen(LogLevel::kWarning);
  const std::string cache = folder_.path("k.tcc");
  std::ofstream(cache) << "this is no cache";
  std::vector<std::string> warned;
  const auto engine =
      Engine::create(kText, "tc", {.cache = cache, .on_warning = [&](const std::string& s) { warned.push_back(s); }});
  if (engine) ASSERT_TRUE(engine->compile(scaled_of(8)));
  EXPECT_EQ(lines_, warned);
  EXPECT_EQ(warnings_, static_cast<int>(warned.size()));
}

TEST_F(EngineLog, AKernelsStrategyOnAGpu) {
  listen(LogLevel::kDetail);
  const auto engine = Engine::create(kText);
  ASSERT_TRUE(engine);
  Request request = scaled_of(1 << 12);
  ASSERT_TRUE(engine->emit(request, "tile"));
  const std::string kernel = "kernel scaled_0: a thread for each element, ";
  EXPECT_TRUE(std::ranges::any_of(lines_, [&](const std::string& line) { return line.starts_with(kernel); }));
}

TEST_F(EngineLog, CompilationsInManyThreadsLog) {
  listen(LogLevel::kTrace);
  const auto engine = Engine::create(kText);
  ASSERT_TRUE(engine);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { EXPECT_TRUE(engine->compile(scaled_of(8 + t))); });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(count("compiled 'scaled' for N=" + std::to_string(8 + t) + " on cpu in T ms"), 1);
  }
}

TEST_F(EngineLog, InC) {
  std::vector<std::string> texts;
  const auto listen = [](tc_log_level level, const char* text, void* user) {
    if (level == TC_LOG_INFO) static_cast<std::vector<std::string>*>(user)->emplace_back(text);
  };
  tc_set_log(listen, TC_LOG_TRACE, &texts);
  tc_engine* engine = nullptr;
  tc_request* request = nullptr;
  tc_kernel* kernel = nullptr;
  ASSERT_EQ(tc_engine_create(kText, nullptr, &engine), TC_OK);
  ASSERT_EQ(tc_request_create(nullptr, &request), TC_OK);
  ASSERT_EQ(tc_request_size(request, "N", 8), TC_OK);
  ASSERT_EQ(tc_compile(engine, request, &kernel), TC_OK);
  tc_kernel_destroy(kernel);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_TRUE(texts[0].starts_with("compiled 'scaled' for N=8 on cpu in ")) << texts[0];
  tc_set_log(nullptr, TC_LOG_TRACE, nullptr);
  ASSERT_EQ(tc_request_size(request, "N", 9), TC_OK);
  ASSERT_EQ(tc_compile(engine, request, &kernel), TC_OK);
  EXPECT_EQ(texts.size(), 1U);
  tc_kernel_destroy(kernel);
  tc_request_destroy(request);
  tc_engine_destroy(engine);
}

}  // namespace
}  // namespace tc::api
