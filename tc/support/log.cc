#include "tc/support/log.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "tc/support/write_log.h"

namespace tc {
namespace {

struct Log {
  std::mutex mutex;
  std::shared_ptr<const LogCallback> callback;
};

/// Never destroyed: threads of the library may write while the process ends.
Log& the_log() {
  static Log* const log = new Log();
  return *log;
}

}  // namespace

constinit std::atomic<LogLevel> log_limit{LogLevel::kNone};

void set_log(LogCallback callback, LogLevel most) {
  const LogLevel limit = callback ? most : LogLevel::kNone;
  std::shared_ptr<const LogCallback> shared;
  if (limit != LogLevel::kNone) shared = std::make_shared<const LogCallback>(std::move(callback));
  Log& log = the_log();
  const std::lock_guard<std::mutex> lock(log.mutex);
  log.callback.swap(shared);  // the one before goes behind the lock: its destructor may be the user's
  log_limit.store(limit, std::memory_order_relaxed);
}

void write_log(LogLevel level, const std::string& text, const char* path, int line) noexcept {
  try {
    std::shared_ptr<const LogCallback> callback;
    {
      Log& log = the_log();
      const std::lock_guard<std::mutex> lock(log.mutex);
      callback = log.callback;
    }
    if (!callback) return;
    const char* const slash = std::strrchr(path, '/');
    (*callback)({.level = level, .text = text, .file = slash ? slash + 1 : path, .line = line});
  } catch (...) {  // the callback's own: nothing of the user's is thrown through the library
  }
}

}  // namespace tc
