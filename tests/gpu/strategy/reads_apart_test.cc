#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Short reductions and elements whose neighbours read from anywhere.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// A def, its sizes for the simulator, and larger ones.
struct Case {
  const char* name;
  const char* text;
  Sizes small, large;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"Rotations",
     "def f(float(B,V,3) x, float(B,3,3) R) -> (y) { y(b,v,i) +=! x(b,v,j) * R(b,i,j) }",
     {{"B", 3}, {"V", 37}},
     {{"B", 256}, {"V", 32768}}},
    {"Lengths", "def f(float(N,3) x) -> (y) { y(n) +=! x(n,i) * x(n,i) }", {{"N", 301}}, {{"N", 1 << 24}}},
    {"DepthwiseConvolution",
     "def f(half(B,T,C) x, half(C,K) w) -> (y) { y(b,t,c) +=! x(b,5 * t + k,c) * w(c,k) }",
     {{"B", 2}, {"T", 33}, {"C", 48}, {"K", 4}},
     {{"B", 16}, {"T", 4099}, {"C", 1024}, {"K", 4}}},
    {"Pixels",
     "def f(uint8(N,H,W,3) x, float(3) m) -> (y) { y(n,c,h,w) = float(x(n,h,w,c)) / 255.0 - m(c) }",
     {{"N", 2}, {"H", 7}, {"W", 24}},
     {{"N", 256}, {"H", 224}, {"W", 224}}},
    {"Enlarged",
     "def f(half(N,H,W) x) -> (y) { y(n,h,w) = x(n,h / 2,w / 2) where h in 0:2*H, w in 0:2*W }",
     {{"N", 2}, {"H", 5}, {"W", 20}},
     {{"N", 1024}, {"H", 128}, {"W", 128}}},
};

class ReadsApart : public ::testing::TestWithParam<Case> {};

TEST_P(ReadsApart, TakeAThreadForEachElement) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().large);
  const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
  EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kElements) << gpu::report(*mapping);
  EXPECT_LT(mapping->estimates[0].us, 7 * mapping->estimates[0].memory_us) << gpu::report(*mapping);
}

/// On a device that memory does not limit, so that small sizes are long launches.
TEST_P(ReadsApart, AgreeWithTheOracle) {
  gpu::Device slow = gpu::device_of_architecture(90);
  slow.gigahertz = 1e-4;
  slow.blocks_per_us = 1e-3;
  const ir::Program program = specialised_from(GetParam().text, GetParam().small);
  const Result<gpu::Mapping> mapping = mapped(program, {}, slow);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kElements) << gpu::report(*mapping);
  EXPECT_EQ(faults_of(program, slow), "");
}

/// What a kernel was made by makes it again.
TEST_P(ReadsApart, FollowTheirOptions) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().large);
  const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, gpu::device_of_architecture(90));
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(gpu::report(*again), gpu::report(*mapping));
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, ReadsApart, ::testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace tc::testing
