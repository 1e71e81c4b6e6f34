#include "tc/cpu/perf_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "tc/support/write_log.h"

namespace tc::cpu {
namespace {

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// When this process began, in seconds since 1970; 0 if that is not known.
double process_start() {
  constexpr int kStartTime = 22;  // proc(5): field of stat, in ticks since the system's start
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string field;
  for (int f = 3; f < kStartTime; ++f) fields >> field;
  double ticks = 0;
  if (!(fields >> ticks)) return 0;
  timespec now{}, running{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &running);
  return seconds_of(now) - seconds_of(running) + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Opens the file to add to it; -1 if that fails.
int open_map(const std::string& path) {
  constexpr double kClocks = 1;  // seconds that two clocks may differ
  // Whoever may write to /tmp may have put a link there.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat known {};
  if (file < 0 || ::fstat(file, &known) != 0) return file;
  if (known.st_uid != ::geteuid()) {
    ::close(file);
    errno = EPERM;
    return -1;
  }
  if (seconds_of(known.st_mtim) < process_start() - kClocks && ::ftruncate(file, 0) != 0) return file;
  return file;
}

}  // namespace

bool wants_perf_map() {
  const char* const value = std::getenv("TENSORC_PERF_MAP");
  return value && *value && std::string_view(value) != "0";
}

void add_to_perf_map(std::span<const NamedCode> code) {
  std::string lines;
  for (const NamedCode& one : code) lines += fmt::format("{:x} {:x} {}\n", one.begin, one.bytes, one.name);
  const std::string path = fmt::format("/tmp/perf-{}.map", ::getpid());
  const int file = open_map(path);
  // One write: nothing of others comes in between.
  if (file < 0 || ::write(file, lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
    TC_LOG(kWarning, "{} does not get the names of kernels: {}", path, std::strerror(errno));
  }
  if (file >= 0) ::close(file);
}

}  // namespace tc::cpu
