#include "tc/support/log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tc/support/write_log.h"

namespace tc {
namespace {

/// The log of the tests goes to a list.
class Log : public ::testing::Test {
 protected:
  void listen(LogLevel most) {
    set_log(
        [this](const LogMessage& message) {
          const std::lock_guard lock(mutex_);
          texts_.emplace_back(message.text);
          files_.emplace_back(message.file);
        },
        most);
  }
  ~Log() override { set_log({}); }

  std::mutex mutex_;
  std::vector<std::string> texts_, files_;
};

TEST_F(Log, IsQuietByDefault) {
  bool is_evaluated = false;
  TC_LOG(kWarning, "{}", is_evaluated = true);
  EXPECT_FALSE(is_evaluated);
  EXPECT_FALSE(is_logged(LogLevel::kWarning));
}

TEST_F(Log, GivesWhatIsWithinTheLevel) {
  listen(LogLevel::kInfo);
  bool is_evaluated = false;
  TC_LOG(kWarning, "a {}", 1);
  TC_LOG(kInfo, "b {}", 2);
  TC_LOG(kDetail, "c {}", is_evaluated = true);
  EXPECT_EQ(texts_, (std::vector<std::string>{"a 1", "b 2"}));
  EXPECT_EQ(files_, (std::vector<std::string>{"log_test.cc", "log_test.cc"}));
  EXPECT_FALSE(is_evaluated);
}

TEST_F(Log, EndsWithAnEmptyCallbackAndWithNoLevel) {
  listen(LogLevel::kTrace);
  set_log({}, LogLevel::kTrace);
  TC_LOG(kWarning, "a");
  listen(LogLevel::kNone);
  TC_LOG(kWarning, "b");
  EXPECT_EQ(texts_, std::vector<std::string>());
}

TEST_F(Log, ExceptionsOfTheCallbackAreDropped) {
  int calls = 0;
  set_log([&](const LogMessage&) {
    ++calls;
    throw std::runtime_error("of the user's");
  });
  EXPECT_NO_THROW(TC_LOG(kInfo, "a"));
  EXPECT_NO_THROW(TC_LOG(kInfo, "b"));
  set_log([&](const LogMessage&) {
    ++calls;
    throw 1;
  });
  EXPECT_NO_THROW(TC_LOG(kInfo, "c"));
  EXPECT_EQ(calls, 3);
}

TEST_F(Log, ACallbackMaySetAnother) {
  set_log([this](const LogMessage&) { listen(LogLevel::kInfo); });
  TC_LOG(kInfo, "a");
  TC_LOG(kInfo, "b");
  EXPECT_EQ(texts_, std::vector<std::string>{"b"});
}

TEST_F(Log, ThreadsWriteWhileTheCallbackChanges) {
  std::atomic<bool> ended = false;
  std::atomic<int> heard = 0;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      while (!ended) TC_LOG(kInfo, "a message");
    });
  }
  for (int i = 0; i < 2000 || heard == 0; ++i) {
    // Each callback owns what it uses.
    auto text = std::make_shared<std::string>("a message");
    set_log([text, &heard](const LogMessage& message) { heard += message.text == *text; });
    if (i % 3 == 0) set_log({});
  }
  ended = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(heard, 0);
}

}  // namespace
}  // namespace tc
