#pragma once

#include <isl/ctx.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

#include "tc/support/error.h"

/// An end to what isl proves: a count of its operations is no bound on time, as its numbers may grow without one.
namespace tc::ir {

/// So many milliseconds from now. A limit of years is none, and must not overflow.
inline std::chrono::steady_clock::time_point after(int64_t limit_ms) {
  constexpr int64_t kYears = 100'000'000'000;
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(std::min(limit_ms, kYears));
}

/// When the proofs for a def must have ended.
struct Deadline {
  explicit Deadline(int64_t limit_ms = 60'000, std::stop_token cancel = {})
      : limit_ms(limit_ms), end(after(limit_ms)), cancel(cancel) {}

  /// For the rest of a compilation that ends at `end`.
  Deadline(int64_t limit_ms, std::chrono::steady_clock::time_point end, std::stop_token cancel)
      : limit_ms(limit_ms), end(end), cancel(cancel) {}

  bool is_over() const { return cancel.stop_requested() || std::chrono::steady_clock::now() > end; }
  /// Throws OutOfTime if it is over. For loops that ask isl nothing.
  void check() const;

  int64_t limit_ms;
  std::chrono::steady_clock::time_point end;
  std::stop_token cancel;
};

/// Thrown where a deadline is over.
struct OutOfTime : std::exception {
  explicit OutOfTime(const Deadline& deadline);

  Error error;  ///< of kind kBudget or kCancelled
};

/// Aborts an isl context at a time, from a thread of its own. isl looks at the flag at every step of its solvers.
class IslWatchdog {
 public:
  IslWatchdog(isl_ctx* ctx, std::chrono::steady_clock::time_point end);
  ~IslWatchdog();
  IslWatchdog(const IslWatchdog&) = delete;
  IslWatchdog& operator=(const IslWatchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: started when all else is in place
};

}  // namespace tc::ir
