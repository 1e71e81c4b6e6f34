#include "tc/cli/launch_lines.h"

#include <gtest/gtest.h>

namespace tc::cli {
namespace {

cuda::LaunchPlan plan() {
  cuda::LaunchPlan plan;
  plan.kernels = {{.symbol = "f", .grid = {8, 1, 1}, .block = {64, 1, 1}, .arguments = {}, .waits = true},
                  {.symbol = "g", .grid = {6, 1, 1}, .arguments = {}}};
  return plan;
}

std::string error_of(const std::string& text) {
  const auto result = with_launch_lines(plan(), text);
  return result ? "" : result.error().to_string();
}

TEST(LaunchLines, ReplaceNumbersOfThePlan) {
  const auto result = with_launch_lines(
      plan(), "// launch f grid 4 2 1 cluster 2 2 1 shared 100\n// launch g block 32 2 1\n__global__ void f() {}\n");
  ASSERT_TRUE(result) << result.error().to_string();
  const cuda::KernelLaunch &f = result->kernels[0], &g = result->kernels[1];
  using Extents = std::array<int64_t, 3>;
  EXPECT_EQ(f.grid, (Extents{4, 2, 1}));
  EXPECT_EQ(f.block, (Extents{64, 1, 1}));
  EXPECT_EQ(f.cluster, (Extents{2, 2, 1}));
  EXPECT_EQ(f.dynamic_shared_bytes, 100);
  EXPECT_FALSE(f.waits);
  EXPECT_EQ(g.block, (Extents{32, 2, 1}));
  EXPECT_EQ(g.cluster, (Extents{1, 1, 1}));
}

TEST(LaunchLines, Errors) {
  EXPECT_EQ(error_of("// launch h grid 1 1 1"), "error: '// launch h grid 1 1 1': there is no kernel 'h'\n");
  EXPECT_EQ(error_of("// launch f grid 1 1"), "error: '// launch f grid 1 1': a number is missing behind 'grid'\n");
  EXPECT_EQ(error_of("// launch f threads 1"),
            "error: '// launch f threads 1': 'threads' is none of grid, block, cluster and shared\n");
  EXPECT_EQ(
      error_of("// launch f map A 64 64"),
      "error: '// launch f map A 64 64': a kernel by hand takes the tensor maps that the compiler's takes, and no "
      "others\n");
  EXPECT_EQ(error_of("// launch g cluster 4 1 1"),
            "error: '// launch g cluster 4 1 1': a cluster of 4 blocks does not divide a grid of 6\n");
}

}  // namespace
}  // namespace tc::cli
