#include "tc/cpu/runtime.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace tc::cpu {
namespace {

/// More threads than cores, so that loops are shared even on a small machine.
class Runtime : public testing::Test {
 protected:
  void SetUp() override { set_thread_count(4); }
  void TearDown() override { set_thread_count(0); }
};

template <typename Function>
int in_parallel(int begin, int extent, Function& body) {
  auto call = [](void* context, int i) { return (*static_cast<Function*>(context))(i); };
  return parallel_for(begin, extent, call, &body);
}

TEST_F(Runtime, EveryIterationRunsOnce) {
  for (int extent : {0, 1, 2, 3, 7, 64, 1000, 10007}) {
    std::vector<std::atomic<int>> seen(extent + 1);
    auto body = [&](int i) { return seen[i - 5]++, 0; };
    EXPECT_EQ(in_parallel(5, extent, body), 0);
    for (int i = 0; i < extent; i++) ASSERT_EQ(seen[i], 1) << i << " of " << extent;
  }
}

TEST_F(Runtime, WhatABodyWritesIsVisibleAfterwards) {
  std::vector<int> out(5000);
  for (int round = 0; round < 200; round++) {
    auto body = [&](int i) { return out[i] = round + i, 0; };
    ASSERT_EQ(in_parallel(0, 5000, body), 0);
    for (int i = 0; i < 5000; i++) ASSERT_EQ(out[i], round + i);
  }
}

TEST_F(Runtime, SeveralThreadsTakePart) {
  std::set<std::thread::id> threads;
  std::mutex mutex;
  std::condition_variable another;
  bool alone = false;
  auto body = [&](int) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    another.notify_all();
    // The others may be slow to wake on a busy machine.
    alone = alone || !another.wait_for(lock, std::chrono::seconds(60), [&] { return threads.size() > 1; });
    return 0;
  };
  EXPECT_EQ(in_parallel(0, 40, body), 0);
  EXPECT_GT(threads.size(), 1u);
  EXPECT_LE(threads.size(), 4u);
}

/// So that what it writes in one loop is in its cache in the next.
TEST_F(Runtime, AThreadBeginsWithThePartThatItHasInEveryLoop) {
  set_thread_count(2);
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> first = -1;
    auto body = [&, caller = std::this_thread::get_id()](int i) {
      int none = -1;
      if (std::this_thread::get_id() != caller) return first.compare_exchange_strong(none, i), 0;
      for (int ms = 0; first < 0 && ms < 60'000; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return 0;
    };
    EXPECT_EQ(in_parallel(0, 40, body), 0);
    EXPECT_EQ(first, 20);
  }
}

#ifndef __SANITIZE_THREAD__  // which allows a forked child no threads
TEST_F(Runtime, AForkedChildHasThreadsOfItsOwn) {
  const auto count_threads = [] {
    std::set<std::thread::id> threads;
    std::mutex mutex;
    auto body = [&](int) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::lock_guard lock(mutex);
      return threads.insert(std::this_thread::get_id()), 0;
    };
    return in_parallel(0, 40, body) == 0 ? threads.size() : 0;
  };
  ASSERT_GT(count_threads(), 1u);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // one that waits for its parent's helpers ends by it
    bool several = true;
    for (int round = 0; round < 20; ++round) several = count_threads() > 1 && several;
    ::_exit(several ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "one thread alone";
  EXPECT_GT(count_threads(), 1u);
}
#endif

TEST_F(Runtime, OneThreadMeansTheCaller) {
  set_thread_count(1);
  EXPECT_EQ(thread_count(), 1);
  auto body = [me = std::this_thread::get_id()](int) { return std::this_thread::get_id() == me ? 0 : 1; };
  EXPECT_EQ(in_parallel(0, 1000, body), 0);
}

TEST_F(Runtime, TheFirstErrorIsReturnedAndTheRestSkipped) {
  std::atomic<int> ran = 0;
  auto body = [&](int i) { return ran++, i == 3 ? 77 : 0; };
  EXPECT_EQ(in_parallel(0, 1000000, body), 77);
  EXPECT_LT(ran, 1000000);
}

TEST_F(Runtime, NestedLoopsFinish) {
  std::atomic<int> count = 0;
  auto outer = [&](int) {
    auto middle = [&](int) {
      auto inner = [&](int) { return count++, 0; };
      return in_parallel(0, 10, inner);
    };
    return in_parallel(0, 10, middle);
  };
  EXPECT_EQ(in_parallel(0, 10, outer), 0);
  EXPECT_EQ(count, 1000);
}

TEST_F(Runtime, ManyCallersAtOnce) {
  std::atomic<int> count = 0;
  auto caller = [&] {
    for (int round = 0; round < 300; round++) {
      auto body = [&](int i) {
        count++;
        if (i % 16) return 0;
        auto nested = [&](int) { return count++, 0; };
        return in_parallel(0, 3, nested);
      };
      in_parallel(0, 32, body);
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; i++) callers.emplace_back(caller);
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(count, 6 * 300 * (32 + 2 * 3));
}

TEST_F(Runtime, TheNumberOfThreadsMayChangeMeanwhile) {
  std::atomic<bool> done = false;
  std::thread changer([&] {
    for (int i = 0; !done; i++) set_thread_count(1 + i % 6);
  });
  std::atomic<int64_t> sum = 0;
  for (int round = 0; round < 500; round++) {
    auto body = [&](int i) { return sum += i, 0; };
    EXPECT_EQ(in_parallel(0, 100, body), 0);
  }
  done = true;
  changer.join();
  EXPECT_EQ(sum, 500 * 4950);
}

TEST_F(Runtime, ScratchIsAlignedAndReused) {
  void* first = allocate_scratch(100000);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  std::memset(first, 1, 100000);
  release_scratch(first);
  EXPECT_EQ(allocate_scratch(90000), first);
  void* second = allocate_scratch(90000);
  EXPECT_NE(second, first);
  release_scratch(first);
  release_scratch(second);
  release_scratch(nullptr);
  trim_scratch();
}

TEST_F(Runtime, ScratchMayBeReleasedElsewhere) {
  std::vector<void*> blocks;
  for (int i = 0; i < 50; i++) blocks.push_back(allocate_scratch(1000 * (i + 1)));
  std::thread([&] {
    for (void* block : blocks) release_scratch(block);
  }).join();
}

TEST_F(Runtime, ScratchThatCannotBeIsNull) {
  EXPECT_EQ(allocate_scratch(SIZE_MAX), nullptr);
  EXPECT_EQ(allocate_scratch(SIZE_MAX / 2), nullptr);
}

TEST_F(Runtime, KnowsItsOwnFunctionsOnly) {
  EXPECT_NE(runtime_symbol("halide_do_par_for"), nullptr);
  EXPECT_NE(runtime_symbol("tc_f64_erf"), nullptr);
  EXPECT_EQ(runtime_symbol("system"), nullptr);
  EXPECT_EQ(runtime_symbol("tc_f32_nothing"), nullptr);
}

}  // namespace
}  // namespace tc::cpu
