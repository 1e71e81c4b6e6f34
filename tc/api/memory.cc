#include "tc/api/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <thread>

namespace tc::api {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

/// The number at the start of a file; kUnknown if there is no file or no number ("max").
int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : kUnknown;
}

/// The number behind each name that begins a line of a file, all of one reading of the file.
std::map<std::string, int64_t> numbers_in(const std::string& path) {
  std::map<std::string, int64_t> numbers;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t number = 0;
    if (words >> name >> number) numbers.emplace(name, number);
  }
  return numbers;
}

int64_t machine_bytes(const std::string& root) {
  const std::map<std::string, int64_t> numbers = numbers_in(root + "/proc/meminfo");
  const auto kibibytes = numbers.find("MemAvailable:");
  return kibibytes == numbers.end() ? kUnknown : kibibytes->second * 1024;
}

/// Where a version of control groups says what a group may use, what it uses, and what of that is files' pages.
struct GroupFiles {
  const char *limit, *usage, *statistics, *active_file, *inactive_file;
};
constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                                  "/sys/fs/cgroup/memory.stat", "active_file", "inactive_file"};
constexpr GroupFiles kVersion1 = {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                  "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat",
                                  "total_active_file", "total_inactive_file"};

/// The limit of the process's control group, less what it uses and could not drop: version 2, else version 1.
int64_t group_bytes(const std::string& root) {
  for (const GroupFiles& files : {kVersion2, kVersion1}) {
    const int64_t limit = number_in(root + files.limit);
    int64_t used = number_in(root + files.usage);
    if (limit == kUnknown || used == kUnknown) continue;
    const std::map<std::string, int64_t> statistics = numbers_in(root + files.statistics);
    for (const char* name : {files.active_file, files.inactive_file, "slab_reclaimable"}) {
      const auto bytes = statistics.find(name);
      if (bytes != statistics.end()) used -= bytes->second;
    }
    return std::clamp<int64_t>(limit - used, 0, limit);
  }
  return kUnknown;
}

/// How often, and how long apart, a figure of 0 is read again.
constexpr int kReadings = 4;
constexpr std::chrono::milliseconds kApart{30};

}  // namespace

int64_t settled_bytes(const std::function<int64_t()>& read) {
  for (int reading = 0; reading < kReadings; ++reading) {
    if (reading > 0) std::this_thread::sleep_for(kApart);
    if (const int64_t bytes = read(); bytes > 0) return bytes;
  }
  return kUnknown;
}

int64_t available_memory_bytes(const std::string& root) {
  return std::min(settled_bytes([&] { return machine_bytes(root); }), settled_bytes([&] { return group_bytes(root); }));
}

std::string human_bytes(int64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace tc::api
