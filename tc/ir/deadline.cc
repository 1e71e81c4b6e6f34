#include "tc/ir/deadline.h"

#include <fmt/format.h>

namespace tc::ir {

OutOfTime::OutOfTime(const Deadline& deadline)
    : error(deadline.cancel.stop_requested()
                ? Error("the compilation was cancelled").with_kind(ErrorKind::kCancelled)
                : Error(fmt::format("this def needs more than the compile budget of {} ms", deadline.limit_ms))
                      .with_kind(ErrorKind::kBudget)) {}

void Deadline::check() const {
  if (is_over()) throw OutOfTime(*this);
}

IslWatchdog::IslWatchdog(isl_ctx* ctx, std::chrono::steady_clock::time_point end)
    : thread_([this, ctx, end] {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_until(lock, end, [this] { return done_; })) isl_ctx_abort(ctx);
      }) {}

IslWatchdog::~IslWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace tc::ir
