#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Operands of products in the order and pitch that `mma.sync` takes, on devices without `wgmma`.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using options::MappingOptions;

gpu::Device without_warpgroups(int architecture) {
  gpu::Device device = gpu::device_of_architecture(architecture);
  device.accelerated = false;
  return device;
}

constexpr char kNN[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kConvolution[] = R"(
def f(float16(N,C,H,W) I, float16(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h + kh,w + kw) * K(f,c,kh,kw) })";
constexpr char kPadded[] = R"(
def f(bfloat16(N,C,H,W) I, bfloat16(F,C,KH,KW) K) -> (O) {
  O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c,h + kh - 1,w + kw - 1) : 0) *
    K(f,c,kh,kw) where h in 0:H, w in 0:W
})";
constexpr char kLayer[] = R"(
def f(float16(N,C,H,W) I, float16(F,C,KH,KW) K, float16(F) b) -> (O) {
  O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c,h + kh - 1,w + kw - 1) : 0) *
    K(f,c,kh,kw) where h in 0:H, w in 0:W
  O(n,f,h,w) = relu(O(n,f,h,w) + b(f))
})";
constexpr char kStrided[] = R"(
def f(float16(N,C,H,W) I, float16(F,C,KH,KW) K) -> (O) {
  O(n,f,h,w) +=! (2*h + kh >= 1 && 2*h + kh <= H && 2*w + kw >= 1 && 2*w + kw <= W ?
    I(n,c,2*h + kh - 1,2*w + kw - 1) : 0) * K(f,c,kh,kw) where h in 0:(H + 1) / 2, w in 0:(W + 1) / 2
})";
constexpr char kDilated[] = R"(
def f(float16(N,C,H,W) I, float16(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h + 2*kh,w + 2*kw) * K(f,c,kh,kw) })";
constexpr char kGroups[] = R"(
def f(float16(N,G,C,H,W) I, float16(G,F,C,KH,KW) K) -> (O) {
  O(n,g,f,h,w) +=! I(n,g,c,h + kh,w + kw) * K(g,f,c,kh,kw)
})";
constexpr char kPoints[] = R"(
def f(float16(N,C,H,W) I, float16(F,C) K) -> (O) { O(n,f,h,w) +=! I(n,c,h,w) * K(f,c) })";
constexpr char kPointsOfEverySecond[] = R"(
def f(float16(N,C,H,W) I, float16(F,C) K) -> (O) { O(n,f,h,w) +=! I(n,c,2*h,2*w) * K(f,c) })";
constexpr char kLayers[] = R"(
def f(half(N,C,H,W) I, half(C,C,3,3) V, half(C,C,3,3) U) -> (half(N,C,H,W) O) {
  float A(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c, h + kh - 1, w + kw - 1)
    : half(0.0)) * V(f,c,kh,kw) where h in 0:H, w in 0:W
  half B(n,f,h,w) = half(relu(A(n,f,h,w)))
  O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? B(n,c, h + kh - 1, w + kw - 1)
    : half(0.0)) * U(f,c,kh,kw) where h in 0:H, w in 0:W
})";

Sizes image(int64_t n, int64_t c, int64_t h, int64_t w, int64_t f, int64_t k) {
  return {{"N", n}, {"C", c}, {"H", h}, {"W", w}, {"F", f}, {"KH", k}, {"KW", k}};
}

Sizes with(Sizes sizes, const std::string& name, int64_t value) {
  sizes[name] = value;
  return sizes;
}

/// The tensors that are copied, sorted.
std::vector<std::string> copied(const char* text, const Sizes& sizes, const MappingOptions& options,
                                const gpu::Device& device) {
  const ir::Program symbolic = program_from(text);
  Sizes own;
  for (const std::string& name : symbolic.sizes) own[name] = sizes.at(name);
  const Result<gpu::Prepared> prepared = gpu::prepare(specialised_from(text, own), options, device);
  if (!prepared) return {prepared.error().to_string()};
  std::vector<std::string> result;
  for (const ir::Statement& s : prepared->program.statements) {
    if (gpu::is_operand_copy(s.id)) result.push_back(s.tensor.substr(0, s.tensor.find("_copy")));
  }
  std::sort(result.begin(), result.end());
  return result;
}

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  std::vector<std::string> copies;  ///< tensors
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<std::string> kBoth = {"I", "K"};
const Case kCases[] = {
    {"odd", kNN, {{"M", 70}, {"N", 75}, {"K", 101}}, {"B"}},
    {"odd_rows_of_one", kNN, {{"M", 70}, {"N", 64}, {"K", 101}}, {"A"}},
    {"convolution", kConvolution, image(2, 32, 9, 12, 24, 3), kBoth},
    {"padded", kPadded, image(2, 32, 7, 7, 16, 3), kBoth},
    {"odd_image", kLayer, image(1, 32, 13, 17, 24, 3), kBoth},
    {"odd_channels", kLayer, image(2, 20, 7, 9, 17, 3), kBoth},
    {"strided", kStrided, image(2, 16, 9, 13, 16, 3), kBoth},
    {"dilated", kDilated, image(2, 16, 11, 12, 16, 3), {"K"}},
    {"groups", kGroups, with(image(2, 16, 7, 8, 16, 3), "G", 3), kBoth},
    {"points", kPoints, image(3, 48, 7, 7, 24, 1), {"I"}},
    {"points_of_every_second", kPointsOfEverySecond, image(2, 32, 14, 14, 24, 1), {"I"}},
    {"layers", kLayers, image(1, 32, 4, 9, 0, 0), {"I", "U", "V"}},
};

class OperandOrderOfWarps : public ::testing::TestWithParam<Case> {};

TEST_P(OperandOrderOfWarps, GivesTheSameResults) {
  const Case& c = GetParam();
  Sizes sizes;
  for (const std::string& name : program_from(c.text).sizes) sizes[name] = c.sizes.at(name);
  const ir::Program program = specialised_from(c.text, sizes);
  const MappingOptions options{.tensor_cores = true, .copy_operands = true};
  const gpu::Device device = without_warpgroups(80);
  EXPECT_EQ(copied(c.text, c.sizes, options, device), c.copies);
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_NE(tile::to_text(mapping->program).find("mma"), std::string::npos) << tile::to_text(mapping->program);
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, OperandOrderOfWarps, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Tensors that are aligned to their elements alone have copies that are aligned to vectors.
TEST(OperandOrderOfWarpsChoice, TakesTensorsThatAreAlignedToElements) {
  Sizes sizes = image(2, 32, 7, 9, 16, 3);
  const ir::Program program = specialised_from(kPadded, sizes);
  const Result<gpu::Mapping> mapping =
      mapped(program, {.tensor_cores = true, .copy_operands = true}, without_warpgroups(90), true);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 3U);
  EXPECT_EQ(unproved(mapping->program), "");
  EXPECT_EQ(difference_of_mapping(program, *mapping, 1), "");
}

/// What is asked for may be tiles of warps where a device has warpgroups, too.
TEST(OperandOrderOfWarpsChoice, TakesTilesOfWarpsOnADeviceWithWarpgroups) {
  const ir::Program program = specialised_from(kNN, {{"M", 70}, {"N", 75}, {"K", 101}});
  gpu::Device device = without_warpgroups(90);
  const Result<gpu::Mapping> by_warps = mapped(program, {.tensor_cores = true, .copy_operands = true}, device);
  ASSERT_TRUE(by_warps) << by_warps.error().to_string();
  MappingOptions options = by_warps->kernels.back().chosen;
  options.copy_operands = true;
  device.accelerated = true;
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(tile::to_text(mapping->program), tile::to_text(by_warps->program));
}

/// Copies take time, so only what gains has them.
TEST(OperandOrderOfWarpsChoice, WeighsTheCopies) {
  const std::vector<std::string> none;
  const auto square = [](int64_t size) { return Sizes{{"M", size}, {"N", size}, {"K", size}}; };
  for (const int architecture : {80, 89}) {
    const gpu::Device device = without_warpgroups(architecture);
    EXPECT_EQ(copied(kNN, square(4096), {}, device), none);
    EXPECT_EQ(copied(kConvolution, image(32, 128, 28, 28, 128, 3), {}, device), kBoth);
    EXPECT_EQ(copied(kConvolution, image(32, 128, 28, 28, 128, 3), {.copy_operands = false}, device), none);
    EXPECT_EQ(copied(kConvolution, image(32, 128, 28, 28, 128, 3), {.tensor_cores = false}, device), none);
    EXPECT_EQ(copied(kStrided, image(32, 128, 56, 56, 128, 3), {}, device), std::vector<std::string>{"K"});
    EXPECT_EQ(copied(kConvolution, image(1, 32, 13, 17, 32, 3), {}, device), none);
    EXPECT_EQ(copied(kPoints, image(32, 256, 14, 14, 512, 1), {}, device), none);
  }
}

/// The product itself is one launch, with what is done to its results.
TEST(OperandOrderOfWarpsChoice, MakesALayerThreeLaunches) {
  for (const int architecture : {80, 90}) {
    const ir::Program program = specialised_from(kLayer, image(32, 128, 28, 28, 128, 3));
    const Result<gpu::Mapping> mapping = mapped(program, {}, without_warpgroups(architecture));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    ASSERT_EQ(mapping->kernels.size(), 3U) << gpu::report(*mapping);
    EXPECT_EQ(mapping->kernels.back().chosen.tensor_cores, true) << gpu::report(*mapping);
  }
}

}  // namespace
}  // namespace tc::testing
