#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace tc {

/// A fault of the compiler itself, never of its user. Carries the place in our source; the pipeline adds
/// the pass. Caught in tc/api (and around one candidate by a tuner), nowhere else.
class InternalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail_check(const char* file, int line, const char* condition, const std::string& message);

}  // namespace tc

/// Checks an invariant of ours, in every build. The message is fmt-formatted:
///     TC_CHECK(sizes.size() <= members, "{} tile sizes outnumber {} band members", sizes.size(), members);
#define TC_CHECK(condition, ...)                                                    \
  do {                                                                              \
    if (!(condition)) {                                                             \
      ::tc::fail_check(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
    }                                                                               \
  } while (false)
