#include "interrupt.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gil.h"
#include "log.h"
#include "warnings.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};

/// Only in the main thread does it do anything.
void look_for_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// A thread that says when its work has ended.
class Running {
 public:
  explicit Running(const std::function<void()>& work)
      : thread_([this, &work] {
          const KeptWarnings kept(warnings_);
          try {
            work();
          } catch (...) {
            thrown_ = std::current_exception();
          }
          const std::lock_guard lock(mutex_);
          ended_ = true;
          changed_.notify_all();
        }) {}
  ~Running() {
    const GilReleased released;  // the work may want the GIL
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Whether the work ends by then.
  bool ends_within(std::chrono::milliseconds time) {
    const GilReleased released;
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return ended_; });
  }
  /// Once it has ended: warns of what it was warned of, and throws what it threw.
  void pass_on() const {
    warn(warnings_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::exception_ptr thrown_;
  std::vector<std::string> warnings_;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace

void run_interruptibly(std::stop_source stop, const std::function<void()>& work,
                       const std::function<void()>& meanwhile) {
  const LogFollowed log;
  Running running(work);
  try {
    while (!running.ends_within(kBetweenLooks)) {
      look_for_signals();
      pass_on_log();
      if (meanwhile) meanwhile();
    }
    if (meanwhile) meanwhile();
    running.pass_on();
  } catch (...) {
    stop.request_stop();
    throw;
  }
}

void wait_while(const std::function<bool()>& busy) {
  while (busy()) {
    {
      const GilReleased released;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    look_for_signals();
  }
}

}  // namespace tc::python
