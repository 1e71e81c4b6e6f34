#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tc {

/// What a message of the log is about. Each level has those above it too.
enum class LogLevel : uint8_t {
  kNone,     ///< no message; for set_log()
  kWarning,  ///< something works, but not as it should: a damaged cache entry, an option that no kernel can follow
  kInfo,     ///< a line for each kernel that is compiled, and for each search
  kDetail,   ///< where a kernel comes from, each pass with its time, each candidate of a search
  kTrace,    ///< each look-up: kernels found in memory, keys of the cache
};

/// A message of the log, as its callback gets it. The views end with the call.
struct LogMessage {
  LogLevel level = LogLevel::kInfo;
  std::string_view text;  ///< a sentence, without a line break at its end
  std::string_view file;  ///< of the source that says it: "pipeline.cc"
  int line = 0;
};

using LogCallback = std::function<void(const LogMessage&)>;

/// Gives messages up to a level to a callback. An empty one ends the log. A process starts without a log.
///
/// Calls come from any thread, several at a time, and in the middle of the library's work: the callback should return
/// soon, and neither call the library nor wait for a thread that does. Its exceptions are dropped. The callback before
/// may still run in other threads when set_log() returns; it is destroyed when the last of them is done.
void set_log(LogCallback callback, LogLevel most = LogLevel::kInfo);

}  // namespace tc
