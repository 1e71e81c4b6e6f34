#include "tc/cpu/llvm_thread.h"

#include <llvm/Support/ErrorHandling.h>

#include <cstdio>
#include <exception>
#include <mutex>

#include "tc/support/check.h"

namespace tc::cpu {
namespace {

/// LLVM ends the process if this returns, and may not be left by an exception: it is compiled without.
void on_fatal_error(void*, const char* reason, bool) {
  if (!on_abandonable_thread()) {  // of another user of the library: as without a handler
    std::fprintf(stderr, "LLVM ERROR: %s\n", reason);
    return;
  }
  try {
    TC_CHECK(false, "LLVM reports: {}", reason);
  } catch (...) {
    abandon_work(std::current_exception());
  }
}

std::mutex mutex;
int living = 0;  ///< handlers; those of work that LLVM has ended live for ever

}  // namespace

LlvmFaultHandler::LlvmFaultHandler() {
  const std::lock_guard lock(mutex);
  if (living++ > 0) return;
  llvm::remove_fatal_error_handler();  // installing one over another is an error of LLVM's debug builds
  llvm::install_fatal_error_handler(on_fatal_error);
}

LlvmFaultHandler::~LlvmFaultHandler() {
  const std::lock_guard lock(mutex);
  --living;
}

}  // namespace tc::cpu
