#include "tc/cli/export_maps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tc/cuda/tensor_maps.h"

namespace tc::cli {
namespace {

constexpr char kMapDriver[] =
    R"(extern int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, const uint64_t* extents,
                                  const uint64_t* byte_strides, const unsigned* box, const unsigned* steps,
                                  int interleave, int swizzle, int promotion, int fill);
)";

constexpr char kClusterDriver[] = R"(struct tensorc_attribute {
  int id, padding;
  unsigned value[16];
};
struct tensorc_config {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const struct tensorc_attribute* attributes;
  unsigned attribute_count;
};
extern int cuLaunchKernelEx(const struct tensorc_config* config, void* function, void** arguments, void** extra);
)";

constexpr int kMapWords = cuda::kMapBytes / 8;

/// "4u, 2u, 1u".
std::string unsigned_text(const auto& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += fmt::format("{}{}u", text.empty() ? "" : ", ", number);
  return text;
}

std::string encode_text(size_t index, const cuda::MapArgument& map, const std::string& address) {
  const cuda::MapCodes codes = cuda::codes_of(map);
  const std::vector<int64_t> steps(map.extents.size(), 1);
  // C has no array without elements.
  const std::string strides = map.byte_strides.empty() ? "0u" : unsigned_text(map.byte_strides);
  return fmt::format(R"(  {{
    const uint64_t tensorc_extents[] = {{{}}}, tensorc_strides[] = {{{}}};
    const unsigned tensorc_box[] = {{{}}}, tensorc_steps[] = {{{}}};
    int status = cuTensorMapEncodeTiled({}, {}, {}, (void*)(uintptr_t)({} + {}),
                                        tensorc_extents, tensorc_strides, tensorc_box, tensorc_steps, {}, {}, {}, {});
    if (status != 0) return status;
  }}
)",
                     unsigned_text(map.extents), strides, unsigned_text(map.box), unsigned_text(steps), map_text(index),
                     map.type, map.extents.size(), address, map.byte_offset, codes.interleave, codes.swizzle,
                     codes.promotion, codes.fill);
}

}  // namespace

std::string extra_driver_text(const cuda::LaunchPlan& plan) {
  std::string text;
  if (!plan.maps.empty()) text += kMapDriver;
  if (std::ranges::any_of(plan.kernels, &cuda::KernelLaunch::in_clusters)) text += kClusterDriver;
  return text;
}

std::string encode_text(const cuda::LaunchPlan& plan,
                        const std::function<std::string(const cuda::KernelArgument&)>& address_of) {
  if (plan.maps.empty()) return "";
  std::string text = fmt::format(
      "  /* Tensor maps, each of {0} bytes, aligned to them. */\n  uint64_t tensorc_memory[{1}];\n  uint64_t* const "
      "tensorc_maps = (uint64_t*)(((uintptr_t)tensorc_memory + {2}) / {0} * {0});\n",
      cuda::kMapBytes, kMapWords * (plan.maps.size() + 1), cuda::kMapBytes - 1);
  for (size_t i = 0; i < plan.maps.size(); ++i) text += encode_text(i, plan.maps[i], address_of(plan.maps[i].of));
  return text;
}

std::string map_text(size_t index) { return fmt::format("tensorc_maps + {}", kMapWords * index); }

std::string cluster_launch_text(size_t k, const cuda::KernelLaunch& launch) {
  return fmt::format(R"(    const struct tensorc_attribute tensorc_cluster = {{4, 0, {{{}}}}};
    const struct tensorc_config tensorc_config = {{{{{}}}, {{{}}}, {}u, stream, &tensorc_cluster, 1}};
    int status = cuLaunchKernelEx(&tensorc_config, kernels->functions[{}], arguments, 0);
)",
                     unsigned_text(launch.cluster), unsigned_text(launch.grid), unsigned_text(launch.block),
                     launch.dynamic_shared_bytes, k);
}

}  // namespace tc::cli
