#include "log.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <tc/support/log.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>

namespace nb = nanobind;

namespace tc::python {
namespace {

struct Message {
  LogLevel level;
  std::string text, file;
  int line;
  double seconds;  ///< since 1970
};

/// More than one compilation logs at the most. What is beyond is counted.
constexpr size_t kMostKept = 10'000;

/// Never destroyed: threads of the library may log while the process ends.
struct Kept {
  std::mutex mutex;
  std::deque<Message> messages;
  size_t dropped = 0;
  std::atomic<bool> any{false};
  LogLevel limit = LogLevel::kNone;  ///< what the library was told last; under the GIL
};

Kept& kept() {
  static Kept* const one = new Kept();
  return *one;
}

void keep(const LogMessage& message) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  if (all.messages.size() < kMostKept) {
    all.messages.push_back(
        {message.level, std::string(message.text), std::string(message.file), message.line, now.count()});
  } else {
    ++all.dropped;
  }
  all.any = true;
}

nb::object package() { return nb::module_::import_("tensorc._log"); }

/// Logging's numbers: WARNING is 30, INFO 20, DEBUG 10.
int number_of(LogLevel level) {
  return level == LogLevel::kWarning ? 30 : level == LogLevel::kInfo ? 20 : level == LogLevel::kDetail ? 10 : 5;
}

LogLevel limit_of(int number) {
  for (const LogLevel level : {LogLevel::kTrace, LogLevel::kDetail, LogLevel::kInfo, LogLevel::kWarning}) {
    if (number <= number_of(level)) return level;
  }
  return LogLevel::kNone;
}

}  // namespace

LogFollowed::LogFollowed() {
  const LogLevel limit = limit_of(nb::cast<int>(package().attr("level")()));
  if (limit == kept().limit) return;
  kept().limit = limit;
  set_log(keep, limit);
}

LogFollowed::~LogFollowed() {
  nb::error_scope pending;  // of what ends the scope
  pass_on_log();
}

void pass_on_log() {
  Kept& all = kept();
  if (!all.any) return;
  std::deque<Message> messages;
  size_t dropped = 0;
  {
    const std::lock_guard lock(all.mutex);
    messages.swap(all.messages);
    std::swap(dropped, all.dropped);
    all.any = false;
  }
  try {
    const nb::object log = package().attr("log");
    for (const Message& message : messages) {
      log(number_of(message.level), message.text, message.file, message.line, message.seconds);
    }
    if (dropped > 0) {
      log(number_of(LogLevel::kWarning), std::to_string(dropped) + " messages are left out", messages.back().file,
          messages.back().line, messages.back().seconds);
    }
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("the log of tensorc");
  }
}

}  // namespace tc::python
