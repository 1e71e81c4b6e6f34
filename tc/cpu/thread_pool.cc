#include "tc/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace tc::cpu {
namespace {

/// How long a thread stays awake for what comes next. To be woken takes a few tens of microseconds on a virtual
/// machine: as much as many a loop.
constexpr std::chrono::microseconds kAwake{100};

/// Waits, awake, until `ready` or until the time is up. Whether it is ready.
template <typename Ready>
bool spin_until(Ready ready) {
  constexpr int kPausesPerLook = 8;  // at the clock
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (ready()) return true;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// The cgroup's limit in cores, or a huge number.
double quota_cores() {
  double quota = 0, period = 0;
  std::string first;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> first >> period && first != "max") {
    return std::stod(first) / period;
  }
  if (std::ifstream v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); v1 >> quota && quota > 0) {
    if (std::ifstream length("/sys/fs/cgroup/cpu/cpu.cfs_period_us"); length >> period && period > 0) {
      return quota / period;
    }
  }
  return 1e9;
}

}  // namespace

/// One parallel loop while it runs; lives in its caller's frame.
struct ThreadPool::Loop {
  std::atomic<int64_t> next;  // the first iteration that nobody has taken
  const int64_t end;
  const int64_t chunk;
  const Body body;
  void* const context;
  uint8_t* const closure;
  int helpers_wanted;
  std::atomic<int> helpers_inside{0};
  std::atomic<int> result{0};

  bool has_work() const { return next.load(std::memory_order_relaxed) < end; }

  void work() {
    while (true) {
      int64_t from = next.fetch_add(chunk, std::memory_order_relaxed);
      int64_t to = std::min(from + chunk, end);
      for (int64_t i = from; i < to; i++) {
        int code = body(context, static_cast<int>(i), closure);
        if (code == 0) continue;
        int none = 0;
        result.compare_exchange_strong(none, code, std::memory_order_relaxed);
        next.store(end, std::memory_order_relaxed);
        return;
      }
      if (to >= end) return;
    }
  }
};

std::atomic<ThreadPool*>& ThreadPool::current() {
  static std::atomic<ThreadPool*> pool = [] {
    ::pthread_atfork(nullptr, nullptr, &ThreadPool::start_anew);
    return new ThreadPool(available_cores());
  }();
  return pool;
}

ThreadPool& ThreadPool::instance() { return *current().load(std::memory_order_acquire); }

/// The parent's pool is left as it is: its lock may be taken, and threads asleep in it, by threads that the child
/// lacks.
void ThreadPool::start_anew() { current().store(new ThreadPool(instance().thread_count()), std::memory_order_release); }

ThreadPool::ThreadPool(int threads) : thread_count_(threads) {}

void ThreadPool::set_thread_count(int count) {
  thread_count_.store(count > 0 ? count : available_cores(), std::memory_order_relaxed);
}

int ThreadPool::run(int begin, int end, Body body, void* context, uint8_t* closure) {
  int64_t extent = static_cast<int64_t>(end) - begin;
  int threads = static_cast<int>(std::min<int64_t>(thread_count(), extent));
  // Several chunks a thread even out what differs between iterations; few keep the shared counter quiet.
  int64_t chunk = std::max<int64_t>(1, extent / (8 * std::max(threads, 1)));
  Loop loop{begin, end, chunk, body, context, closure, threads - 1};
  if (threads > 1) open(loop);
  loop.work();
  if (threads > 1) close_and_wait(loop);
  return loop.result.load(std::memory_order_relaxed);
}

void ThreadPool::open(Loop& loop) {
  int wake;
  {
    std::lock_guard lock(mutex_);
    start_helpers(loop.helpers_wanted);
    loops_.push_back(&loop);
    generation_.fetch_add(1, std::memory_order_relaxed);
    wake = std::min(sleepers_, loop.helpers_wanted);
  }
  for (int i = 0; i < wake; i++) loop_opened_.notify_one();
}

void ThreadPool::close_and_wait(Loop& loop) {
  {
    std::lock_guard lock(mutex_);
    std::erase(loops_, &loop);
  }
  if (spin_until([&] { return loop.helpers_inside.load() == 0; })) return;
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1);
  helper_left_.wait(lock, [&] { return loop.helpers_inside.load() == 0; });
  waiters_.fetch_sub(1);
}

/// The loop may be gone as soon as the count is down: only the pool is touched after that.
void ThreadPool::leave(Loop& loop) {
  if (loop.helpers_inside.fetch_sub(1) != 1 || waiters_.load() == 0) return;
  { std::lock_guard lock(mutex_); }  // a waiter that has counted itself is now asleep
  helper_left_.notify_all();
}

void ThreadPool::start_helpers(int count) {
  for (; helpers_ < count; helpers_++) std::thread([this] { help_forever(); }).detach();
}

void ThreadPool::help_forever() {
  while (true) {
    Loop* loop = wait_for_loop();
    loop->work();
    leave(*loop);
  }
}

ThreadPool::Loop* ThreadPool::joinable_loop() {
  for (Loop* loop : loops_) {
    if (loop->helpers_wanted == 0 || !loop->has_work()) continue;
    loop->helpers_wanted--;
    loop->helpers_inside.fetch_add(1);
    return loop;
  }
  return nullptr;
}

ThreadPool::Loop* ThreadPool::wait_for_loop() {
  while (true) {
    uint64_t seen;
    {
      std::lock_guard lock(mutex_);
      if (Loop* loop = joinable_loop()) return loop;
      seen = generation_.load(std::memory_order_relaxed);
    }
    if (spin_until([&] { return generation_.load(std::memory_order_relaxed) != seen; })) continue;
    std::unique_lock lock(mutex_);
    if (Loop* loop = joinable_loop()) return loop;
    sleepers_++;
    loop_opened_.wait(lock);
    sleepers_--;
    if (Loop* loop = joinable_loop()) return loop;
  }
}

int available_cores() {
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, static_cast<int>(std::min<double>(cores, std::ceil(quota_cores()))));
}

}  // namespace tc::cpu
