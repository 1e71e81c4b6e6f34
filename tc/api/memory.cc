#include "tc/api/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

namespace tc::api {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

/// The number at the start of a file; kUnknown if there is no file or no number ("max").
int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : kUnknown;
}

int64_t machine_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  constexpr std::string_view kField = "MemAvailable:";
  while (std::getline(file, line)) {
    if (line.starts_with(kField)) return std::stoll(line.substr(kField.size())) * 1024;
  }
  return kUnknown;
}

/// The limit of the process's control group, less what it uses: version 2, else version 1.
int64_t group_bytes() {
  constexpr std::array<std::array<const char*, 2>, 2> kFiles = {{
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
  }};
  for (const auto& [limit_file, usage_file] : kFiles) {
    const int64_t limit = number_in(limit_file);
    const int64_t usage = number_in(usage_file);
    if (limit != kUnknown && usage != kUnknown) return std::max<int64_t>(0, limit - usage);
  }
  return kUnknown;
}

}  // namespace

int64_t available_memory_bytes() { return std::min(machine_bytes(), group_bytes()); }

std::string human_bytes(int64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace tc::api
