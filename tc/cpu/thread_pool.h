#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tc::cpu {

/// Threads that help with parallel loops. A loop's caller works on it itself, so a loop ends even if no helper ever
/// comes; a helper finishes its share of one loop before it looks at another. Whoever waits, waits only for
/// helpers inside its own loop, and these only for loops that they began: there is no cycle, hence no deadlock.
///
/// A loop of some microseconds is worth sharing only if few lines go from one core's cache to another's, each of which
/// takes 0.05 to 0.2 us: a caller offers its loop to each helper in a line of that helper's, and takes back what is
/// still there when all is done.
///
/// Idle helpers spin for some microseconds, then sleep. The pool is never destroyed: helpers may be asleep in it
/// when the process ends. A forked child, which has none of its parent's helpers, begins with a pool of its own.
class ThreadPool {
 public:
  using Body = int (*)(void* context, int i, uint8_t* closure);

  static ThreadPool& instance();

  int thread_count() const { return thread_count_.load(std::memory_order_relaxed); }
  void set_thread_count(int count);

  /// Runs body for each i in [begin, end); see parallel_for in runtime.h.
  int run(int begin, int end, Body body, void* context, uint8_t* closure);

 private:
  struct Loop;
  struct Helper;
  static constexpr int kMostHelpers = 1023;

  explicit ThreadPool(int threads);
  static std::atomic<ThreadPool*>& current();
  static void start_anew();
  void start_helpers(int count);
  void help_forever(Helper& helper);
  int offer(Loop& loop, int wanted);
  void wait_for_helpers(Loop& loop, int asked);
  void leave(Loop& loop);

  std::atomic<int> thread_count_;
  std::array<Helper*, kMostHelpers> helpers_{};  // the first helper_count_
  std::atomic<int> helper_count_{0};
  std::mutex mutex_;  // to start helpers, and to fall asleep
  std::condition_variable helper_left_;
  std::atomic<int> waiters_{0};  // callers asleep until their helpers leave
};

/// Cores that this process may use: its affinity mask, and its cgroup's quota rounded up.
int available_cores();

}  // namespace tc::cpu
