#pragma once

#include <fmt/format.h>

#include <atomic>
#include <string>

#include "tc/support/log.h"

/// Messages for the log. TC_LOG(kDetail, "'{}' is in the cache", name) formats only what somebody listens to.
///
/// The callback is the process's: a message is of no use to a pass, and changes nothing that a compile makes.
namespace tc {

/// The level that the callback wants; kNone without one.
extern std::atomic<LogLevel> log_limit;

inline bool is_logged(LogLevel level) { return level <= log_limit.load(std::memory_order_relaxed); }

/// Gives a message to the callback, if there is one. `path` is the source's.
void write_log(LogLevel level, const std::string& text, const char* path, int line) noexcept;

}  // namespace tc

/// Names a level without its enum. The arguments are evaluated only if the level is logged.
#define TC_LOG(level, ...)                                                                  \
  do {                                                                                      \
    if (::tc::is_logged(::tc::LogLevel::level)) [[unlikely]]                                \
      ::tc::write_log(::tc::LogLevel::level, fmt::format(__VA_ARGS__), __FILE__, __LINE__); \
  } while (false)
