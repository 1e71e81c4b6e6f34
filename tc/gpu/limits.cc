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

/// What the options ask for and the mapping does not do.
std::vector<std::string> refusals(const options::MappingOptions& options) {
  std::vector<std::string> sentences;
  const auto refuse = [&](bool asked, const std::string& sentence) {
    if (asked) sentences.push_back(sentence);
  };
  refuse(options.intra_tile_schedule_options != options::SchedulerOptions(),
         "'intra_tile_schedule_options' is set; the points of a tile keep the order of the outer schedule");
  refuse(!options.fix_parameters_before_scheduling.value_or(true),
         "'fix_parameters_before_scheduling' is false; schedules are made for the sizes at hand");
  refuse(options.unroll.value_or(1) > 1, "'unroll' is above 1; the mapping unrolls no loops");
  refuse(options.match_library_calls.value_or(false),
         "'match_library_calls' is true; kernels are made of the program alone");
  refuse(options.unroll_copy_shared.value_or(false),
         "'unroll_copy_shared' is true; copies to shared memory are unrolled where a thread makes few");
  refuse(options.shared_depth.has_value(),
         "'shared_depth' is set; what is held in shared memory is a step of a contraction");
  refuse(options.private_depth.has_value(), "'private_depth' is set; registers are found at every depth");
  refuse(!options.register_tile.empty(),
         "'register_tile' is set; the mapping chooses what each thread computes by itself");
  refuse(options.split_reduction.has_value(), "'split_reduction' is set; the mapping decides it by itself");
  return sentences;
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
  for (std::string& sentence : refusals(options)) faults.push_back({std::nullopt, std::move(sentence), {}});
  if (!faults.empty()) return tl::unexpected(Error(nullptr, std::move(faults)));
  return {};
}

bool chooses_freely(const options::MappingOptions& options) {
  return options.tile.empty() && options.map_to_threads.empty() && options.map_to_blocks.empty() &&
         options.register_tile.empty() && !options.unroll && !options.private_depth &&
         options.use_private_memory.value_or(true);
}

}  // namespace tc::gpu
