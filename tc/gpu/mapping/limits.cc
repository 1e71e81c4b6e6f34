#include "tc/gpu/mapping/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "tc/gpu/mapping/registers.h"

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

/// Whether the options say what only the classic mapping decides: what stands below the threads.
bool schedules_threads(const options::MappingOptions& options) {
  return options.private_depth || options.intra_tile_schedule_options != options::SchedulerOptions();
}

bool has_clusters(const std::vector<int64_t>& cluster) {
  return std::any_of(cluster.begin(), cluster.end(), [](int64_t blocks) { return blocks > 1; });
}

bool has_clusters(const Kernel& kernel) {
  return kernel.recipe == Recipe::kContraction && has_clusters(kernel.chosen.cluster);
}

/// What the options ask for and the mapping does not do.
std::vector<std::string> refusals(const options::MappingOptions& options) {
  std::vector<std::string> sentences;
  const auto refuse = [&](bool asked, const std::string& sentence) {
    if (asked) sentences.push_back(sentence);
  };
  refuse(options.intra_tile_schedule_options.allow_skewing,
         "'intra_tile_schedule_options' allows skewing; statements of a tile share a loop, and only those that share "
         "none are skewed");
  refuse(!options.fix_parameters_before_scheduling.value_or(true),
         "'fix_parameters_before_scheduling' is false; schedules are made for the sizes at hand");
  return sentences;
}

/// A place for registers is that deep in some kernel.
Result<void> check_private_depth(int64_t wanted, const std::vector<Kernel>& kernels) {
  std::optional<int64_t> least;
  for (const Kernel& kernel : kernels) {
    const std::optional<int64_t> depth = register_depth(kernel);
    if (depth) least = std::min(least.value_or(*depth), *depth);
  }
  if (!least || *least <= wanted) return {};
  return fail("'private_depth' is {}, but {} band members stand above what a thread runs by itself", wanted, *least);
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

bool takes_recipes(const options::MappingOptions& options) {
  return options.map_to_blocks.empty() && !schedules_threads(options) && options.use_private_memory.value_or(true) &&
         options.match_library_calls.value_or(true) &&
         (options.tile.empty() || !options.register_tile.empty() || options.tensor_cores.value_or(false) ||
          options.chain.value_or(false));
}

bool takes_contractions(const options::MappingOptions& options) {
  return !options.strict && options.map_to_blocks.empty() && !schedules_threads(options) &&
         !options.outer_schedule_options.fusion && options.use_shared_memory.value_or(true) &&
         options.use_private_memory.value_or(true) && options.match_library_calls.value_or(true);
}

options::MappingOptions following(options::MappingOptions options, const options::MappingOptions& chosen) {
  options.tile = chosen.tile;
  options.register_tile = chosen.register_tile;
  options.map_to_threads = chosen.map_to_threads;
  if (chosen.copy_stages) options.copy_stages = chosen.copy_stages;
  options.cluster = chosen.cluster;
  options.store_boxes = chosen.store_boxes;
  options.persistent = chosen.persistent;
  options.ping_pong = chosen.ping_pong;
  options.split_results = chosen.split_results;
  if (chosen.unroll) options.unroll = chosen.unroll;
  if (chosen.tensor_cores) options.tensor_cores = chosen.tensor_cores;
  if (chosen.chain) options.chain = chosen.chain;
  if (chosen.use_shared_memory) options.use_shared_memory = chosen.use_shared_memory;
  if (chosen.use_private_memory) options.use_private_memory = chosen.use_private_memory;
  return options;
}

Result<void> check_followed(const options::MappingOptions& options, const std::vector<Kernel>& kernels,
                            const Reasons& reasons) {
  if (options.private_depth) TC_TRY_VOID(check_private_depth(*options.private_depth, kernels));
  const bool any = std::any_of(kernels.begin(), kernels.end(),
                               [](const Kernel& kernel) { return kernel.recipe != Recipe::kClassic; });
  const bool multiplies = std::any_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
    return kernel.recipe == Recipe::kContraction && kernel.chosen.tensor_cores.value_or(false);
  });
  if (options.tensor_cores.value_or(false) && !kernels.empty() && !multiplies) {
    const bool known = !reasons.options.empty() && !reasons.options[0].empty();
    return fail("'tensor_cores' is true, but no kernel uses them: {}",
                options.strict ? "strict kernels keep the order of sums"
                : known        ? reasons.options[0]
                               : "no product is large enough, or none reads its operands often enough");
  }
  const bool clusters =
      std::any_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) { return has_clusters(kernel); });
  if (has_clusters(options.cluster) && !kernels.empty() && !clusters) {
    const bool known = !reasons.options.empty() && !reasons.options[0].empty();
    return fail("'cluster' asks for blocks that share copies, but no kernel has any: {}",
                known ? reasons.options[0] : "only products by warpgroups have");
  }
  for (const auto& [name, field] : {std::pair("store_boxes", &options::MappingOptions::store_boxes),
                                    std::pair("persistent", &options::MappingOptions::persistent),
                                    std::pair("ping_pong", &options::MappingOptions::ping_pong)}) {
    const bool is_followed = std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& kernel) {
      return kernel.recipe == Recipe::kContraction && (kernel.chosen.*field).value_or(false);
    });
    if (!(options.*field).value_or(false) || kernels.empty() || is_followed) continue;
    const bool known = !reasons.options.empty() && !reasons.options[0].empty();
    return fail("'{}' is true, but no kernel follows it: {}", name,
                known ? reasons.options[0] : "only products by warpgroups do");
  }
  const bool chains = std::any_of(kernels.begin(), kernels.end(),
                                  [](const Kernel& kernel) { return kernel.chosen.chain.value_or(false); });
  const bool splits = std::any_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
    return kernel.recipe == Recipe::kContraction && !kernel.chosen.split_results.empty();
  });
  if (!options.split_results.empty() && !kernels.empty() && !splits) {
    const bool known = !reasons.options.empty() && !reasons.options[0].empty();
    return fail("'split_results' is [{}], but no kernel follows it: {}", fmt::join(options.split_results, ", "),
                known ? reasons.options[0] : "only products do that share their kernel with no other reduction");
  }
  if (options.chain.value_or(false) && !kernels.empty() && !chains) {
    const bool known = !reasons.options.empty() && !reasons.options[0].empty();
    return fail(
        "'chain' is true, but no kernel has products that follow each other: {}",
        known ? reasons.options[0] : "none reads what the one before makes, or a block has no room for its rows");
  }
  if (kernels.empty() || options.register_tile.empty() || any) return {};
  std::string sentence = "'register_tile' is set, but no kernel follows it";
  if (!reasons.options.empty())
    sentence += fmt::format(": {}", reasons.options[0]);  // of the recipe that comes nearest
  return fail("{}", sentence);
}

Result<void> check_followed(const options::KernelOptions& options, const Kernel& kernel, const std::string& reason) {
  if (options.private_depth) TC_TRY_VOID(check_private_depth(*options.private_depth, {kernel}));
  const bool contracts = kernel.recipe == Recipe::kContraction, classic = kernel.recipe == Recipe::kClassic;
  const char* ignored = nullptr;
  if (!options.register_tile.empty() && classic) ignored = "register_tile";
  if (options.copy_stages && !contracts) ignored = "copy_stages";
  if (has_clusters(options.cluster) && !has_clusters(kernel)) ignored = "cluster";
  if (options.store_boxes.value_or(false) && !kernel.chosen.store_boxes.value_or(false)) ignored = "store_boxes";
  if (options.persistent.value_or(false) && !kernel.chosen.persistent.value_or(false)) ignored = "persistent";
  if (options.ping_pong.value_or(false) && !kernel.chosen.ping_pong.value_or(false)) ignored = "ping_pong";
  const bool splits = contracts && !kernel.chosen.split_results.empty();
  if (!options.split_results.empty() && !splits) ignored = "split_results";
  if (options.unroll_copy_shared && !contracts && !classic) ignored = "unroll_copy_shared";
  if (options.tensor_cores.value_or(false) && !kernel.chosen.tensor_cores.value_or(false)) ignored = "tensor_cores";
  if (options.tensor_cores.value_or(false) && !contracts) ignored = "tensor_cores";
  if (options.chain.value_or(false) && !kernel.chosen.chain.value_or(false)) ignored = "chain";
  if (!ignored) return {};
  return fail("'{}' of the kernel {} is set, but the recipe '{}', which makes it, does not follow it{}{}", ignored,
              options::address_text(options), name_of(kernel.recipe), reason.empty() ? "" : ": ", reason);
}

}  // namespace tc::gpu
