#include "tc/options/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace tc::options {
namespace {

bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

std::vector<Fault> faults_of_list(const char* field, const std::vector<int64_t>& values, int64_t most) {
  std::vector<Fault> faults;
  if (values.size() > kMaxTiles) {
    faults.push_back({field, static_cast<int>(kMaxTiles),
                      fmt::format("'{}' has {} values; at most {} are allowed", field, values.size(), kMaxTiles)});
  }
  for (size_t i = 0; i < values.size() && i < kMaxTiles; ++i) {
    if (values[i] >= 1 && values[i] <= most) continue;
    faults.push_back({field, static_cast<int>(i),
                      fmt::format("'{}' is {} at position {}; it must be from 1 to {}", field, values[i], i, most)});
  }
  return faults;
}

void add_fault_of_range(const char* field, const std::optional<int64_t>& value, int64_t least, int64_t most,
                        std::vector<Fault>& faults) {
  if (!value || (*value >= least && *value <= most)) return;
  faults.push_back({field, 0, fmt::format("'{}' is {}; it must be from {} to {}", field, *value, least, most)});
}

void add_faults_of_axes(const char* field, const std::vector<int64_t>& values, const std::array<int64_t, 3>& most,
                        std::vector<Fault>& faults) {
  constexpr const char* kAxes[] = {"x", "y", "z"};
  if (values.size() > 3) {
    faults.push_back({field, 3, fmt::format("'{}' has {} values; there are three dimensions", field, values.size())});
  }
  for (size_t i = 0; i < values.size() && i < 3; ++i) {
    if (values[i] >= 1 && values[i] <= most[i]) continue;
    faults.push_back({field, static_cast<int>(i),
                      fmt::format("'{}' is {} in {}; it must be from 1 to {}", field, values[i], kAxes[i], most[i])});
  }
}

template <typename Options>
Result<void> validate_options(const Options& options) {
  std::vector<Diagnostic> diagnostics;
  for (Fault& fault : faults_of(options)) diagnostics.push_back({std::nullopt, std::move(fault.sentence), {}});
  if (!diagnostics.empty()) return tl::unexpected(Error(nullptr, std::move(diagnostics)));
  return {};
}

}  // namespace

std::vector<Fault> faults_of(const CpuOptions& options) {
  std::vector<Fault> faults = faults_of_list("tile", options.tile, kMaxTile);
  if (options.vector_width && (!is_power_of_two(*options.vector_width) || *options.vector_width > kMaxVectorWidth)) {
    faults.push_back({"vector_width", 0,
                      fmt::format("'vector_width' is {}; it must be a power of two from 1 to {}", *options.vector_width,
                                  kMaxVectorWidth)});
  }
  if (options.unroll && (*options.unroll < 1 || *options.unroll > kMaxUnroll)) {
    faults.push_back(
        {"unroll", 0, fmt::format("'unroll' is {}; it must be from 1 to {}", *options.unroll, kMaxUnroll)});
  }
  return faults;
}

namespace {

std::vector<Fault> faults_of_fields(const MappingOptions& options) {
  std::vector<Fault> faults = faults_of_list("tile", options.tile, kMaxTile);
  add_fault_of_range("unroll", options.unroll, 1, kMaxMappingUnroll, faults);
  const size_t before = faults.size();
  add_faults_of_axes("map_to_threads", options.map_to_threads, kMaxThreads, faults);
  int64_t threads = 1;
  for (int64_t n : options.map_to_threads) threads *= faults.size() == before ? n : 1;
  if (threads > kMaxThreadsPerBlock) {
    faults.push_back({"map_to_threads", 0,
                      fmt::format("'map_to_threads' asks for {} threads in a block; there may be {}", threads,
                                  kMaxThreadsPerBlock)});
  }
  add_faults_of_axes("map_to_blocks", options.map_to_blocks, kMaxBlocks, faults);
  add_fault_of_range("max_shared_memory", options.max_shared_memory, 0, kMaxSharedMemory, faults);
  add_fault_of_range("shared_depth", options.shared_depth, 0, kMaxDepth, faults);
  add_fault_of_range("private_depth", options.private_depth, 0, kMaxDepth, faults);
  for (Fault& fault : faults_of_list("register_tile", options.register_tile, kMaxRegisterTile)) {
    faults.push_back(std::move(fault));
  }
  add_fault_of_range("copy_stages", options.copy_stages, 1, kMaxCopyStages, faults);
  for (Fault& fault : faults_of_list("cluster", options.cluster, kMaxCluster)) faults.push_back(std::move(fault));
  add_fault_of_range("split_reduction", options.split_reduction, 1, kMaxReductionParts, faults);
  for (Fault& fault : faults_of_list("split_results", options.split_results, kMaxSplitResults)) {
    faults.push_back(std::move(fault));
  }
  add_fault_of_range("max_gathered_memory", options.max_gathered_memory, 0, kMaxGatheredMemory, faults);
  return faults;
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kMaxName && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '#';
  });
}

/// Whether some kernel may have both addresses.
bool overlap(const KernelOptions& a, const KernelOptions& b) {
  return a.writes == b.writes && (!a.occurrence || !b.occurrence || *a.occurrence == *b.occurrence);
}

void add_faults_of_kernel(const std::vector<KernelOptions>& kernels, size_t k, std::vector<Fault>& faults) {
  const KernelOptions& kernel = kernels[k];
  const int number = static_cast<int>(k);
  if (kernel.writes.empty()) {
    faults.push_back({"kernel", 0, "'kernel' has no 'writes': the name of a tensor that the kernel writes", number});
  } else if (!is_name(kernel.writes)) {
    faults.push_back({"writes", 0, "'writes' of 'kernel' is no name of a tensor", number});
  }
  if (kernel.occurrence && (*kernel.occurrence < 1 || *kernel.occurrence > kMaxOccurrence)) {
    faults.push_back({"occurrence", 0,
                      fmt::format("'occurrence' is {}; it must be from 1 to {}", *kernel.occurrence, kMaxOccurrence),
                      number});
  }
  const bool again = std::any_of(kernels.begin(), kernels.begin() + number,
                                 [&](const KernelOptions& before) { return overlap(before, kernel); });
  if (again && is_name(kernel.writes)) {
    faults.push_back({"kernel", 0, fmt::format("two of 'kernel' are about {}", address_text(kernel)), number});
  }
  for (Fault& fault : faults_of_fields(overlaid({}, kernel))) {
    faults.push_back({std::move(fault.field), fault.index, std::move(fault.sentence), number});
  }
}

}  // namespace

std::vector<Fault> faults_of(const MappingOptions& options) {
  std::vector<Fault> faults = faults_of_fields(options);
  if (options.kernel.size() > kMaxKernels) {
    faults.push_back(
        {"kernel", 0,
         fmt::format("'kernel' is given {} times; at most {} are allowed", options.kernel.size(), kMaxKernels), 0});
    return faults;
  }
  for (size_t k = 0; k < options.kernel.size(); ++k) add_faults_of_kernel(options.kernel, k, faults);
  return faults;
}

Result<void> validate(const CpuOptions& options) { return validate_options(options); }

Result<void> validate(const MappingOptions& options) { return validate_options(options); }

}  // namespace tc::options
