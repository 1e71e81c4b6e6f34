#include "tc/gpu/limits.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>

namespace tc::gpu {
namespace {

constexpr const char* kAxes[] = {"x", "y", "z"};

void check_axes(const char* option, const std::vector<int64_t>& values, const std::array<int64_t, 3>& most,
                std::vector<Diagnostic>& faults) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] <= most[i]) continue;
    faults.push_back({std::nullopt,
                      fmt::format("'{}' is {} in {}; the device has at most {}", option, values[i], kAxes[i], most[i]),
                      {}});
  }
}

}  // namespace

Result<void> check_limits(const options::MappingOptions& options, const Device& device) {
  TC_TRY_VOID(options::validate(options));
  std::vector<Diagnostic> faults;
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
