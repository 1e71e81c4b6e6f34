#include "tc/cli/launch_lines.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace tc::cli {
namespace {

/// The three numbers that a word of a line is about; null: none.
std::array<int64_t, 3>* extents_of(const std::string& word, cuda::KernelLaunch& launch) {
  if (word == "grid") return &launch.grid;
  if (word == "block") return &launch.block;
  if (word == "cluster") return &launch.cluster;
  return nullptr;
}

Result<void> take_line(const std::string& line, cuda::LaunchPlan& plan) {
  std::istringstream words(line);
  std::string slashes, launch, symbol, word;
  words >> slashes >> launch >> symbol;
  const auto place = std::ranges::find(plan.kernels, symbol, &cuda::KernelLaunch::symbol);
  if (place == plan.kernels.end()) return fail("'{}': there is no kernel '{}'", line, symbol);
  while (words >> word) {
    if (std::array<int64_t, 3>* extents = extents_of(word, *place)) {
      words >> (*extents)[0] >> (*extents)[1] >> (*extents)[2];
    } else if (word == "shared") {
      words >> place->dynamic_shared_bytes;
    } else if (word == "map") {
      return fail("'{}': a kernel by hand takes the tensor maps that the compiler's takes, and no others", line);
    } else {
      return fail("'{}': '{}' is none of grid, block, cluster and shared", line, word);
    }
    if (!words) return fail("'{}': a number is missing behind '{}'", line, word);
  }
  for (size_t d = 0; d < 3; ++d) {
    if (place->cluster[d] < 1 || place->grid[d] % place->cluster[d] != 0) {
      return fail("'{}': a cluster of {} blocks does not divide a grid of {}", line, place->cluster[d], place->grid[d]);
    }
  }
  return {};
}

}  // namespace

Result<cuda::LaunchPlan> with_launch_lines(cuda::LaunchPlan plan, const std::string& text) {
  for (cuda::KernelLaunch& launch : plan.kernels) launch.waits = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("// launch ")) TC_TRY_VOID(take_line(line, plan));
  }
  return plan;
}

}  // namespace tc::cli
