#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tc/support/result.h"

namespace tc::cpu {

/// A request to stop, as work on a thread of LLVM's may ask for it.
using Stop = std::function<bool()>;

/// Runs `work` on a thread of its own and waits for it. What it throws is thrown here.
///
/// LLVM ends the process where it meets a fault of its own, unless the handler of such faults does not return. Ours
/// leaves the thread asleep for ever, with all that it has, and throws InternalError where the thread is waited for.
///
/// `stop` is asked here every few milliseconds, and by `work` through its argument, never by both at once. A thread
/// that goes on for kStopGraceMs after a yes is left alone: it ends at its next question. False: it was stopped so.
/// Nothing that `work` uses may be the caller's: it may outlive the call.
bool run_on_llvm_thread(std::function<void(const Stop& stops)> work, const Stop& stop = nullptr);

/// How long a thread may go on after a request to stop, before it is left alone.
inline constexpr int kStopGraceMs = 250;

/// The same for work with a result. The Error of work that was stopped is of kind kCancelled.
template <typename T>
Result<T> on_llvm_thread(std::function<Result<T>(const Stop& stops)> work, const Stop& stop = nullptr) {
  auto result = std::make_shared<std::optional<Result<T>>>();
  const bool ended =
      run_on_llvm_thread([result, work = std::move(work)](const Stop& stops) { *result = work(stops); }, stop);
  if (!ended) return tl::unexpected(Error("the compilation was stopped").with_kind(ErrorKind::kCancelled));
  return std::move(**result);
}

}  // namespace tc::cpu
