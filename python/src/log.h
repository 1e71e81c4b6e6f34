#pragma once

/// The library's log, for the logger "tensorc" of Python's logging.
namespace tc::python {

/// While there is one, the library logs what the logger wants. Its messages are kept where they come from, in any
/// thread, with locks of the library's held; pass_on_log() and the end of the scope give them to the logger, in the
/// thread that holds the GIL. Needs the GIL at both ends.
class LogFollowed {
 public:
  LogFollowed();
  ~LogFollowed();
  LogFollowed(const LogFollowed&) = delete;
  LogFollowed& operator=(const LogFollowed&) = delete;
};

/// Gives the messages that are kept to the logger. Needs the GIL; a handler's exception ends here.
void pass_on_log();

}  // namespace tc::python
