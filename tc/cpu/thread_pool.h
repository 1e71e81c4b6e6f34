#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tc::cpu {

/// Threads that help with parallel loops. A loop's caller works on it itself, so a loop ends even if no helper ever
/// comes; a helper finishes its share of one loop before it looks at another. Whoever waits, waits only for
/// helpers inside its own loop, and these only for loops that they began: there is no cycle, hence no deadlock.
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

  explicit ThreadPool(int threads);
  static std::atomic<ThreadPool*>& current();
  static void start_anew();
  void start_helpers(int count);
  void help_forever();
  Loop* wait_for_loop();
  Loop* joinable_loop();
  void leave(Loop& loop);
  void open(Loop& loop);
  void close_and_wait(Loop& loop);

  std::atomic<int> thread_count_;
  std::mutex mutex_;  // guards all below that is not atomic
  std::condition_variable loop_opened_, helper_left_;
  std::vector<Loop*> loops_;
  int helpers_ = 0;
  int sleepers_ = 0;
  std::atomic<uint64_t> generation_{0};  // counts loops opened: what spinning helpers watch
  std::atomic<int> waiters_{0};          // callers asleep until their helpers leave
};

/// Cores that this process may use: its affinity mask, and its cgroup's quota rounded up.
int available_cores();

}  // namespace tc::cpu
