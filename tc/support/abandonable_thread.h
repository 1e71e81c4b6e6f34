#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tc/support/result.h"

namespace tc {

/// A request to stop, as work on an abandonable thread may ask for it.
using Stop = std::function<bool()>;

/// Runs `work` on a thread of its own and waits for it. What it throws is thrown here. For compilers of others, which
/// neither keep a time limit nor return from every fault.
///
/// `stop` is asked here every few milliseconds, and by `work` through its argument, never by both at once. A thread
/// that goes on for kStopGraceMs after a yes is left alone: it ends at its next question. False: it was stopped so.
/// Nothing that `work` uses may be the caller's: it may outlive the call.
bool run_abandonable(std::function<void(const Stop& stops)> work, const Stop& stop = nullptr);

/// How long a thread may go on after a request to stop, before it is left alone.
inline constexpr int kStopGraceMs = 250;

/// Whether this thread runs such work.
bool on_abandonable_thread();

/// Ends the work of this thread, of which on_abandonable_thread() is true: `error` is thrown where it is waited for.
/// The thread sleeps for ever, with all that it has. For handlers of faults that may neither return nor throw.
[[noreturn]] void abandon_work(std::exception_ptr error);

/// run_abandonable() for work with a result. The Error of work that was stopped is of kind kCancelled.
template <typename T>
Result<T> abandonable(std::function<Result<T>(const Stop& stops)> work, const Stop& stop = nullptr) {
  auto result = std::make_shared<std::optional<Result<T>>>();
  const bool ended =
      run_abandonable([result, work = std::move(work)](const Stop& stops) { *result = work(stops); }, stop);
  if (!ended) return tl::unexpected(Error("the compilation was stopped").with_kind(ErrorKind::kCancelled));
  return std::move(**result);
}

}  // namespace tc
