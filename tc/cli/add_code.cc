#include "tc/cli/add_code.h"

#include <algorithm>

#include "tc/compile/gpu_target.h"
#include "tc/cuda/arch.h"
#include "tc/cuda/nvrtc.h"

namespace tc::cli {
namespace {

constexpr int kFirstWithMaps = 90;  // and with clusters

bool has_maps_or_clusters(const cuda::LaunchPlan& plan) {
  return !plan.maps.empty() || std::ranges::any_of(plan.kernels, &cuda::KernelLaunch::in_clusters);
}

}  // namespace

Result<void> add_code_for(const std::vector<std::string>& architectures, const cache::Key& key, cache::Entry& entry) {
  cache::GpuCode& code = entry.gpu;
  for (const std::string& name : architectures) {
    TC_TRY(arch, cuda::parse_arch(name));
    const bool is_there =
        name == code.arch || std::ranges::find(code.others, name, &cache::Cubin::arch) != code.others.end();
    if (is_there) continue;
    if (code.text.empty()) {
      return fail(
          "a kernel for {} on {} has no CUDA text to make code for {} of; '--keep_text' keeps it when it is "
          "compiled",
          cache::instance_text(key.problem), code.arch, name);
    }
    if (arch.number < kFirstWithMaps && has_maps_or_clusters(code.plan)) {
      return fail("the kernel for {} on {} takes tensor maps or runs in clusters, which {} does not have",
                  cache::instance_text(key.problem), code.arch, name);
    }
    TC_TRY(target, compile::target_of_arch(name));
    for (const cuda::KernelLaunch& launch : code.plan.kernels) {
      if (launch.dynamic_shared_bytes > target.device.shared_bytes) {
        return fail("the kernel for {} on {} needs {} bytes of shared memory, and a block has {} on {}",
                    cache::instance_text(key.problem), code.arch, launch.dynamic_shared_bytes,
                    target.device.shared_bytes, name);
      }
    }
    TC_TRY(nvrtc, cuda::Nvrtc::get());
    TC_TRY(compiled, nvrtc->compile(code.text, arch, {.strict = key.problem.strict}));
    code.others.push_back({name, std::move(compiled.cubin)});
  }
  return {};
}

}  // namespace tc::cli
