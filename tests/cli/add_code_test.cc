#include "tc/cli/add_code.h"

#include <gtest/gtest.h>

namespace tc::cli {
namespace {

TEST(AddCode, MapsAndClustersNeedTheirArchitecture) {
  const cache::Key key{.problem = {.sizes = {64}, .backend = cache::Backend::kCuda, .target = "sm_90a"}};
  const auto refusal = [&](const cuda::LaunchPlan& plan) {
    cache::Entry entry;
    entry.gpu = {.arch = "sm_90a", .cubin = {}, .plan = plan, .text = "text"};
    const Result<void> result = add_code_for({"sm_80"}, key, entry);
    return result ? "" : result.error().to_string();
  };
  cuda::LaunchPlan plan;
  plan.kernels.resize(1);
  plan.kernels[0].cluster = {2, 1, 1};
  EXPECT_EQ(refusal(plan),
            "error: the kernel for 64 on sm_90a takes tensor maps or runs in clusters, which sm_80 does not have\n");
  plan.kernels[0].cluster = {1, 1, 1};
  plan.maps.resize(1);
  EXPECT_EQ(refusal(plan),
            "error: the kernel for 64 on sm_90a takes tensor maps or runs in clusters, which sm_80 does not have\n");
}

}  // namespace
}  // namespace tc::cli
