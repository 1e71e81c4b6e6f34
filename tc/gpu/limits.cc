#include "tc/gpu/limits.h"

#include <fmt/format.h>

#include <numeric>

namespace tc::gpu {
namespace {

constexpr const char* kAxes[] = {"x", "y", "z"};

void check_axes(const char* option, const std::vector<int64_t>& values, const std::array<int64_t, 3>& most,
                std::vector<Diagnostic>& faults) {
  if (values.size() > 3) {
    faults.push_back(
        {std::nullopt, fmt::format("'{}' has {} values; there are three dimensions", option, values.size()), {}});
  }
  for (size_t i = 0; i < std::min<size_t>(values.size(), 3); ++i) {
    if (values[i] >= 1 && values[i] <= most[i]) continue;
    faults.push_back({std::nullopt,
                      fmt::format("'{}' is {} in {}; it must be from 1 to {}", option, values[i], kAxes[i], most[i]),
                      {}});
  }
}

}  // namespace

Result<void> check_limits(const options::MappingOptions& options, const Device& device) {
  std::vector<Diagnostic> faults;
  for (size_t i = 0; i < options.tile.size(); ++i) {
    if (options.tile[i] >= 1 && options.tile[i] <= options::kMaxTile) continue;
    faults.push_back(
        {std::nullopt,
         fmt::format("'tile' is {} at position {}; it must be from 1 to {}", options.tile[i], i, options::kMaxTile),
         {}});
  }
  check_axes("map_to_threads", options.map_to_threads, device.block, faults);
  check_axes("map_to_blocks", options.map_to_blocks, device.grid, faults);
  if (faults.empty()) {
    const int64_t threads =
        std::accumulate(options.map_to_threads.begin(), options.map_to_threads.end(), int64_t{1}, std::multiplies<>());
    if (threads > device.threads_per_block) {
      faults.push_back({std::nullopt,
                        fmt::format("'map_to_threads' asks for {} threads in a block; the device has at most {}",
                                    threads, device.threads_per_block),
                        {}});
    }
  }
  if (!faults.empty()) return tl::unexpected(Error(nullptr, std::move(faults)));
  return {};
}

}  // namespace tc::gpu
