#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tc/support/abandonable_thread.h"

namespace tc::cpu {

/// While one lives, LLVM's faults on abandonable threads end the work there, and not the process: InternalError is
/// thrown where the work is waited for. LLVM ends the process unless the handler of its faults does not return.
class LlvmFaultHandler {
 public:
  LlvmFaultHandler();
  ~LlvmFaultHandler();
  LlvmFaultHandler(const LlvmFaultHandler&) = delete;
  LlvmFaultHandler& operator=(const LlvmFaultHandler&) = delete;
};

/// abandonable() for work that calls LLVM.
template <typename T>
Result<T> on_llvm_thread(std::function<Result<T>(const Stop& stops)> work, const Stop& stop = nullptr) {
  // The thread may outlive this call.
  auto handler = std::make_shared<LlvmFaultHandler>();
  return abandonable<T>([handler, work = std::move(work)](const Stop& stops) { return work(stops); }, stop);
}

}  // namespace tc::cpu
