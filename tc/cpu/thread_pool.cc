#include "tc/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
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

/// One parallel loop while it runs; lives in its caller's frame. Its iterations are in parts, one after the other: each
/// thread begins with a part of its own, the same in every loop, so that what it has written stays in its cache, and
/// then helps with those of others.
struct ThreadPool::Loop {
  /// Threads beyond that many begin with the parts of others.
  static constexpr int kMostParts = 16;
  struct alignas(64) Part {
    std::atomic<int64_t> next{0};  // the first iteration that nobody has taken
    int64_t end = 0;
  };

  const int64_t chunk;
  const Body body;
  void* const context;
  uint8_t* const closure;
  const int part_count;
  alignas(64) std::atomic<int> helpers_awaited{0};  // that may be inside: offered the loop, and not done with it
  std::atomic<int> result{0};
  std::array<Part, kMostParts> parts;

  Loop(int64_t begin, int64_t extent, int threads, Body run, void* with, uint8_t* captured)
      // Several chunks a thread even out what differs between iterations; few keep the shared counters quiet.
      : chunk(std::max<int64_t>(1, extent / (8 * std::max(threads, 1)))),
        body(run),
        context(with),
        closure(captured),
        part_count(std::clamp(threads, 1, kMostParts)) {
    for (int p = 0; p < part_count; ++p) {
      parts[static_cast<size_t>(p)].next.store(begin + extent * p / part_count, std::memory_order_relaxed);
      parts[static_cast<size_t>(p)].end = begin + extent * (p + 1) / part_count;
    }
  }

  /// All that nobody else takes, from the part of this number on.
  void work(int first) {
    for (int p = 0; p < part_count; ++p) {
      if (!work(parts[static_cast<size_t>((first + p) % part_count)])) return;
    }
  }

  /// False if the loop has failed.
  bool work(Part& part) {
    while (true) {
      const int64_t from = part.next.fetch_add(chunk, std::memory_order_relaxed);
      const int64_t to = std::min(from + chunk, part.end);
      for (int64_t i = from; i < to; i++) {
        int code = body(context, static_cast<int>(i), closure);
        if (code == 0) continue;
        int none = 0;
        result.compare_exchange_strong(none, code, std::memory_order_relaxed);
        for (Part& other : parts) other.next.store(other.end, std::memory_order_relaxed);
        return false;
      }
      if (to >= part.end) return true;
    }
  }
};

/// A thread that helps. Its line of the cache is all that a caller touches of it.
struct alignas(64) ThreadPool::Helper {
  std::atomic<Loop*> offered{nullptr};  // by a caller, which takes it back unless the helper was faster
  std::atomic<bool> asleep{false};
  const int number;
  std::mutex mutex;  // to fall asleep
  std::condition_variable wake;

  explicit Helper(int n) : number(n) {}

  bool offer(Loop& loop) {
    if (offered.load(std::memory_order_relaxed) != nullptr) return false;
    loop.helpers_awaited.fetch_add(1, std::memory_order_relaxed);
    Loop* none = nullptr;
    if (!offered.compare_exchange_strong(none, &loop)) {
      loop.helpers_awaited.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    if (asleep.load()) {
      { std::lock_guard lock(mutex); }  // it has found nothing, and is now asleep
      wake.notify_one();
    }
    return true;
  }

  void take_back(Loop& loop) {
    if (offered.load(std::memory_order_relaxed) != &loop) return;
    Loop* mine = &loop;
    if (offered.compare_exchange_strong(mine, nullptr)) loop.helpers_awaited.fetch_sub(1, std::memory_order_relaxed);
  }

  Loop* wait_for_loop() {
    while (true) {
      if (spin_until([&] { return offered.load(std::memory_order_relaxed) != nullptr; })) {
        if (Loop* loop = take()) return loop;
        continue;
      }
      std::unique_lock lock(mutex);
      asleep.store(true);
      wake.wait(lock, [&] { return offered.load() != nullptr; });
      asleep.store(false);
    }
  }

  Loop* take() {
    // Both will be read when the loop is ours, each a way to another core's cache.
    if (const Loop* loop = offered.load(std::memory_order_relaxed)) {
      __builtin_prefetch(loop);
      __builtin_prefetch(&loop->parts[static_cast<size_t>(number % Loop::kMostParts)], 1);
    }
    return offered.exchange(nullptr);
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
  int threads = static_cast<int>(std::min<int64_t>({thread_count(), extent, kMostHelpers + 1}));
  Loop loop(begin, extent, threads, body, context, closure);
  const int helpers = threads > 1 ? offer(loop, threads - 1) : 0;
  loop.work(0);
  if (helpers > 0) wait_for_helpers(loop, helpers);
  return loop.result.load(std::memory_order_relaxed);
}

/// Offers a loop to so many helpers that have no offer. How many of all helpers were asked.
int ThreadPool::offer(Loop& loop, int wanted) {
  if (helper_count_.load(std::memory_order_acquire) < wanted) start_helpers(wanted);
  const int count = helper_count_.load(std::memory_order_acquire);
  int asked = 0;
  while (asked < count && wanted > 0) wanted -= helpers_[static_cast<size_t>(asked++)]->offer(loop) ? 1 : 0;
  return asked;
}

void ThreadPool::wait_for_helpers(Loop& loop, int asked) {
  const auto is_left = [&] { return loop.helpers_awaited.load() == 0; };
  if (is_left()) return;
  for (int h = 0; h < asked; ++h) helpers_[static_cast<size_t>(h)]->take_back(loop);
  if (spin_until(is_left)) return;
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1);
  helper_left_.wait(lock, is_left);
  waiters_.fetch_sub(1);
}

/// The loop may be gone as soon as the count is down: only the pool is touched after that.
void ThreadPool::leave(Loop& loop) {
  if (loop.helpers_awaited.fetch_sub(1) != 1 || waiters_.load() == 0) return;
  { std::lock_guard lock(mutex_); }  // a waiter that has counted itself is now asleep
  helper_left_.notify_all();
}

void ThreadPool::start_helpers(int count) {
  std::lock_guard lock(mutex_);
  for (int h = helper_count_.load(); h < count; ++h) {
    // Never destroyed, as the pool.
    helpers_[static_cast<size_t>(h)] = new Helper(h + 1);
    std::thread([this, h] { help_forever(*helpers_[static_cast<size_t>(h)]); }).detach();
    helper_count_.store(h + 1, std::memory_order_release);
  }
}

void ThreadPool::help_forever(Helper& helper) {
  while (true) {
    Loop* loop = helper.wait_for_loop();
    loop->work(helper.number);
    leave(*loop);
  }
}

int available_cores() {
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, static_cast<int>(std::min<double>(cores, std::ceil(quota_cores()))));
}

}  // namespace tc::cpu
