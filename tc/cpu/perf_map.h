#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tc::cpu {

/// Code in this process, and what a profiler calls it.
struct NamedCode {
  uintptr_t begin = 0;
  size_t bytes = 0;
  std::string name;
};

/// Whether the user wants a perf map: the environment variable TENSORC_PERF_MAP is set, and not to 0.
bool wants_perf_map();

/// Adds code to /tmp/perf-PID.map, in which Linux's perf finds names of code that no file on a disk has. Other
/// compilers in the process may write there too. A file that a process of the same number has left is replaced. What
/// fails is a warning in the log.
void add_to_perf_map(std::span<const NamedCode> code);

}  // namespace tc::cpu
