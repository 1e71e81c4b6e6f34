#include "tc/support/abandonable_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "tc/support/check.h"

namespace tc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{20};
/// How long the process waits at its end for threads that were left alone.
constexpr milliseconds kExitGrace{500};

/// What a thread and the one that waits for it share.
struct Job {
  std::mutex mutex;
  std::condition_variable changed;
  Stop stop;               ///< the caller's: null once the caller does not wait any more
  bool stopped = false;    ///< `stop` has said yes
  bool abandoned = false;  ///< nobody waits
  bool finished = false;
  std::exception_ptr error;  ///< thrown by the work

  /// With the mutex held.
  bool ask() {
    if (!abandoned && !stopped && stop) stopped = stop();
    return abandoned || stopped;
  }
};

thread_local Job* current = nullptr;

/// Threads that were left alone and still run. The globals of compilers are destroyed when the process ends.
class Abandoned {
 public:
  ~Abandoned() {
    const auto end = std::chrono::steady_clock::now() + kExitGrace;
    while (count_ > 0 && getpid() == process_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  void add() {
    if (process_.exchange(getpid()) != getpid()) count_ = 0;  // a fork has none of them
    ++count_;
  }
  void remove() { --count_; }

 private:
  std::atomic<int> count_ = 0;
  std::atomic<pid_t> process_ = 0;
};
Abandoned& abandoned_threads() {
  static Abandoned result;
  return result;
}

void finish(Job& job, std::exception_ptr error) {
  const std::lock_guard lock(job.mutex);
  job.error = std::move(error);
  job.finished = true;
  if (job.abandoned) abandoned_threads().remove();
  job.changed.notify_all();
}

void run_work(const std::shared_ptr<Job>& job, std::function<void(const Stop&)> work) {
  current = job.get();
  std::exception_ptr error;
  try {
    work([&job] {
      const std::lock_guard lock(job->mutex);
      return job->ask();
    });
  } catch (...) {
    error = std::current_exception();
  }
  current = nullptr;
  work = nullptr;  // what it holds is gone before anybody knows of the end
  finish(*job, error);
}

/// Starts a thread of its own. Halide's passes call themselves once for each statement of a sequence, of which unrolled
/// loops make hundreds of thousands; what of a stack is not used takes addresses only.
void start_thread(std::function<void()> work) {
  auto owned = std::make_unique<std::function<void()>>(std::move(work));
  const auto run = [](void* work) -> void* {
    (*std::unique_ptr<std::function<void()>>(static_cast<std::function<void()>*>(work)))();
    return nullptr;
  };
  constexpr size_t kMegabyte = size_t{1} << 20;
  for (const size_t stack_bytes : {1024 * kMegabyte, 256 * kMegabyte, 64 * kMegabyte, 8 * kMegabyte}) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, run, owned.get());
    pthread_attr_destroy(&attributes);
    if (error == 0) {
      owned.release();
      return;
    }
  }
  TC_CHECK(false, "the system grants no thread to compile on");
}

/// Waits; true if the work has ended.
bool wait(Job& job, std::unique_lock<std::mutex>& lock) {
  const auto done = [&job] { return job.finished; };
  if (!job.stop) {
    job.changed.wait(lock, done);
    return true;
  }
  while (!job.changed.wait_for(lock, kPoll, done)) {
    if (job.ask()) return job.changed.wait_for(lock, milliseconds(kStopGraceMs), done);
  }
  return true;
}

}  // namespace

bool on_abandonable_thread() { return current != nullptr; }

void abandon_work(std::exception_ptr error) {
  finish(*current, std::move(error));
  for (;;) pause();
}

bool run_abandonable(std::function<void(const Stop& stops)> work, const Stop& stop) {
  abandoned_threads();  // made before a thread runs: destroyed before the globals of what it calls
  auto job = std::make_shared<Job>();
  job->stop = stop;
  // A thread that sleeps for ever keeps `job` and `work`.
  start_thread([job, work = std::move(work)]() mutable { run_work(job, std::move(work)); });
  std::unique_lock lock(job->mutex);
  const bool ended = wait(*job, lock);
  job->stop = nullptr;
  if (!ended) {
    job->abandoned = true;
    abandoned_threads().add();
    return false;
  }
  if (job->error) std::rethrow_exception(job->error);
  return true;
}

}  // namespace tc
