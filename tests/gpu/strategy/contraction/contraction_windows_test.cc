#include "tc/gpu/strategy/contraction/windows.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "tc/tile/print.h"
#include "tc/tile/simulate.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Convolutions: windows over images in shared memory.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr char kGrouped[] = R"(
def f(float(N,G,C,H,W) I, float(G,F,C,KH,KW) K, float(G,F) bias) -> (O) {
  O(n,g,f,h,w) +=! I(n,g,c,h + kh,w + kw) * K(g,f,c,kh,kw)
  O(n,g,f,h,w) = O(n,g,f,h,w) + bias(g,f)
})";
constexpr char kStrided[] = R"(
def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,2 * h + kh,2 * w + kw) * K(f,c,kh,kw) })";
constexpr char kDilated[] = R"(
def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h + 2 * kh,w + 3 * kw) * K(f,c,kh,kw) })";
constexpr char kLine[] = "def f(float(N,C,W) I, float(F,C,K) V) -> (O) { O(n,f,w) +=! I(n,c,w + k) * V(f,c,k) }";
constexpr char kVolume[] = R"(
def f(float(N,C,D,H,W) I, float(F,C,KD,KH,KW) K) -> (O) {
  O(n,f,d,h,w) +=! I(n,c,d + kd,h + kh,w + kw) * K(f,c,kd,kh,kw)
})";
constexpr char kMirrored[] = R"(
def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) {
  O(n,f,h,w) +=! I(n,c,h - kh,w - kw) * K(f,c,kh,kw) where h in 2:H, w in 2:W
})";
constexpr char kBoth[] = R"(
def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) {
  O(n,f,h,w) +=! I(n,c,h + kh,w + kw) * K(f,c,kh,kw)
  O(n,f,h,w) = O(n,f,h,w) + I(n,0,h,w)
})";
constexpr char kDepthwise[] = R"(
def f(float(N,C,H,W) I, float(C,KH,KW) K) -> (O) { O(n,c,h,w) +=! I(n,c,h + kh,w + kw) * K(c,kh,kw) })";
constexpr char kChannelsLast[] = R"(
def f(float(N,H,W,C) I, float(C,KH,KW) K) -> (O) { O(n,h,w,c) +=! I(n,h + kh,w + kw,c) * K(c,kh,kw) })";
constexpr char kHalves[] = R"(
def f(half(N,C,H,W) I, half(F,C,KH,KW) K) -> (O) { float O(n,f,h,w) +=! I(n,c,h + kh,w + kw) * K(f,c,kh,kw) })";

struct Case {
  const char* text;
  Sizes sizes;
  options::MappingOptions options = {};
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.text << " " << fmt::format("{}", c.sizes) << " " << options::to_text(c.options);
}

Sizes grouped(int64_t n, int64_t g, int64_t channels, int64_t filters, int64_t height, int64_t width) {
  return {{"N", n}, {"G", g}, {"C", channels}, {"F", filters}, {"H", height}, {"W", width}, {"KH", 3}, {"KW", 3}};
}
Sizes image(int64_t n, int64_t channels, int64_t height, int64_t width) {
  return {{"N", n}, {"C", channels}, {"H", height}, {"W", width}, {"F", 6}, {"KH", 3}, {"KW", 3}};
}
Sizes without_filters(Sizes sizes) {
  sizes.erase("F");
  return sizes;
}

const Case kCases[] = {
    {kGrouped, grouped(8, 2, 8, 8, 7, 7)},
    {kGrouped, grouped(3, 2, 16, 16, 14, 14)},
    {kGrouped, grouped(5, 1, 6, 7, 9, 11)},
    {kGrouped, grouped(8, 2, 8, 8, 7, 7), {.tile = {4, 1, 8, 5, 5, 4, 3, 3}, .register_tile = {1, 1, 2, 5, 5}}},
    {kGrouped, grouped(6, 2, 9, 8, 7, 7), {.tile = {4, 1, 8, 5, 5, 4, 3, 3}, .register_tile = {1, 1, 2, 5, 5}}},
    {kGrouped,
     grouped(8, 1, 8, 8, 7, 7),
     {.tile = {8, 1, 8, 5, 5, 8, 3, 3}, .map_to_threads = {40, 2, 2}, .register_tile = {1, 1, 4, 5, 1}}},
    {kGrouped, grouped(2, 2, 8, 8, 10, 14), {.tile = {2, 1, 8, 8, 12, 4, 3, 3}, .register_tile = {1, 1, 4, 2, 6}}},
    {kStrided, image(3, 5, 15, 17)},
    {kDilated, image(2, 4, 13, 16)},
    {kLine, {{"N", 3}, {"C", 8}, {"W", 70}, {"F", 6}, {"K", 5}}},
    {kVolume, {{"N", 2}, {"C", 4}, {"D", 6}, {"H", 6}, {"W", 8}, {"F", 4}, {"KD", 2}, {"KH", 3}, {"KW", 3}}},
    {kMirrored, image(2, 4, 12, 13)},
    {kBoth, image(4, 4, 8, 8)},
    {kDepthwise, without_filters(image(2, 3, 20, 22))},
    {kDepthwise, without_filters(image(1, 2, 61, 58))},
    {kChannelsLast, without_filters(image(2, 64, 10, 11))},
    {kChannelsLast, without_filters(image(1, 37, 9, 12))},
    {kHalves, image(4, 8, 10, 10)},
};

class Windows : public ::testing::TestWithParam<Case> {};

TEST_P(Windows, AgreeWithTheOracleAndAreProved) {
  const auto& [text, sizes, options] = GetParam();
  const ir::Program program = specialised_from(text, sizes);
  const Result<gpu::Mapping> mapping = mapped(program, options);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  // Or threads have the window's elements in registers, in strips.
  const bool is_strip = mapping->kernels[0].recipe == gpu::Recipe::kHalo;
  EXPECT_TRUE(is_strip || mapping->program.kernels[0].shared_bytes() > 0);
  EXPECT_EQ(unproved(mapping->program), "");
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, Windows, ::testing::ValuesIn(kCases));

constexpr char kAlone[] = R"(
def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h + kh,w + kw) * K(f,c,kh,kw) })";

/// What a block reads in one run of the tensor is copied as a run, by vectors, though rows of 7 are not aligned; not
/// where another statement has subscripts of its own for the tensor.
TEST(Window, SmallImagesAreCopiedAsRuns) {
  const options::MappingOptions options{.tile = {4, 6, 6, 6, 4, 3, 3}, .register_tile = {1, 2, 3, 3}};
  const auto text_of = [&](const char* def) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(def, image(4, 4, 8, 8)), options);
    return mapping ? tile::to_text(mapping->program) : mapping.error().to_string();
  };
  EXPECT_NE(text_of(kAlone).find("I_shared (1,4,256)"), std::string::npos) << text_of(kAlone);
  EXPECT_NE(text_of(kAlone).find("K_shared (1,6,36)"), std::string::npos) << text_of(kAlone);
  EXPECT_NE(text_of(kBoth).find("I_shared (1,4,4,8,8)"), std::string::npos) << text_of(kBoth);
}

/// A run of more elements than 32 bits count has a subscript for each dimension.
TEST(Window, LongRunsStayApart) {
  const options::MappingOptions options{.tile = {4, 6, 6, 6, 4, 3, 3}, .register_tile = {1, 2, 3, 3}};
  const auto text_of = [&](int64_t channels) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(kAlone, image(4, channels, 8, 8)), options);
    return mapping ? tile::to_text(mapping->program) : mapping.error().to_string();
  };
  EXPECT_NE(text_of(1 << 24).find("I_shared (3,4,256)"), std::string::npos) << text_of(1 << 24);
  EXPECT_NE(text_of(1 << 26).find("I_shared (3,4,4,8,8)"), std::string::npos) << text_of(1 << 26);
}

/// Threads of a warp that read different images and filters meet in no bank; copies may, from one image to the next.
TEST(Window, WarpsMeetInNoBank) {
  const options::MappingOptions options{.tile = {8, 1, 8, 5, 5, 8, 3, 3}, .register_tile = {1, 1, 2, 5, 5}};
  const ir::Program program = specialised_from(kGrouped, grouped(8, 1, 8, 8, 7, 7));
  const Result<gpu::Mapping> mapping = mapped(program, options);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  tile::Report report;
  ASSERT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
  EXPECT_GT(report.counters[0].shared_requests, 0);
  EXPECT_LE(report.counters[0].shared_wavefronts * 100, report.counters[0].shared_requests * 101);
}

/// Tiles divide the image: little is computed that does not exist.
TEST(Window, TilesFitTheImage) {
  for (const int64_t edge : {7, 9, 14, 28}) {
    const Sizes sizes = grouped(32, 32, 16, 16, edge, edge);
    const Result<gpu::Mapping> mapping = mapped(specialised_from(kGrouped, sizes));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    const auto out = static_cast<double>((edge - 2) * (edge - 2));
    EXPECT_LE(mapping->estimates[0].operations, 1.1 * 2 * 32 * 32 * 16 * 16 * 9 * out) << edge;
  }
}

TEST(Window, NoTilesAreTriedTwice) {
  for (const int64_t filters : {6, 16, 32, 64}) {
    Sizes sizes = image(8, 16, 9, 9);
    sizes["F"] = filters;
    const ir::Program program = specialised_from(kAlone, sizes);
    const std::optional<gpu::Contraction> contraction = gpu::contraction_of(program, program.statements[0]);
    ASSERT_TRUE(contraction);
    std::set<std::pair<std::vector<int64_t>, std::vector<int64_t>>> seen;
    for (const gpu::Tiles& tiles : gpu::window_tiles(*contraction)) {
      EXPECT_TRUE(seen.emplace(tiles.block, tiles.thread).second)
          << fmt::format("{} {}", fmt::join(tiles.block, ", "), fmt::join(tiles.thread, ", "));
    }
    EXPECT_FALSE(seen.empty());
  }
}

/// What a plan is said to need is what its kernel takes, and a little less is enough for a plan with fewer buffers, or
/// with rows closer together.
TEST(Window, ATileFitsWhatMemoryThereIs) {
  const ir::Program program = specialised_from(kAlone, [] {
    Sizes sizes = image(8, 64, 7, 7);
    sizes["F"] = 8;
    return sizes;
  }());
  options::MappingOptions options{.tile = {8, 8, 5, 5, 8, 3, 3}, .register_tile = {1, 2, 5, 5}};
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  const auto stages_within = [&](int64_t bytes) -> int64_t {
    options.max_shared_memory = bytes;
    const Result<gpu::Mapping> mapping = mapped(program, options, device);
    if (!mapping) return 0;
    EXPECT_LE(mapping->program.kernels[0].shared_bytes(), bytes);
    EXPECT_EQ(mapping->kernels[0].chosen.tile, options.tile);
    return *mapping->kernels[0].chosen.copy_stages;
  };
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const int64_t all = mapping->program.kernels[0].shared_bytes();
  EXPECT_EQ(stages_within(all), 4);
  for (const int64_t less : {1, 8, 64, 256, 512, 1024}) EXPECT_EQ(stages_within(all - less), 3) << less;
  options.copy_stages = 4;
  for (const int64_t less : {0, 1, 8, 64}) EXPECT_EQ(stages_within(all - less), 4) << less;
  EXPECT_EQ(difference(program, options, 1, device), "");
  options.max_shared_memory = 10000;
  const Result<gpu::Mapping> refused = mapped(program, options, device);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().diagnostics().at(0).message,
            "'register_tile' is set, but no kernel follows it: a block needs 59392 bytes of shared memory, of 10000");
}

}  // namespace
}  // namespace tc::testing
