#include "tc/gpu/strategy/split_waves.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tc/gpu/strategy/coverage.h"
#include "tc/gpu/strategy/schedule_pieces.h"
#include "tc/poly/from_ir.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Results of a product in two launches: whole waves of blocks, and the rest.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using Values = std::vector<int64_t>;

constexpr char kProduct[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

const gpu::Device kDevice = gpu::device_of_architecture(90);

options::MappingOptions options_from(const std::string& text) {
  const Result<options::MappingOptions> options = options::mapping_options_from_text(text);
  EXPECT_TRUE(options) << options.error().to_string();
  return options.value_or(options::MappingOptions());
}

std::string error_of(const std::string& text, const Sizes& sizes, const std::string& options) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options_from(options), kDevice);
  return mapping ? "none" : mapping.error().diagnostics().at(0).message;
}

TEST(SplitWaves, GivesTheRestALaunchWhereThatGains) {
  const ir::Program program = specialised_from(kProduct, {{"M", 4096}, {"N", 4096}, {"K", 4096}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 2U) << gpu::report(*mapping);
  EXPECT_EQ(mapping->kernels[0].chosen.split_results, Values({4096, 3072}));
  EXPECT_FALSE(mapping->kernels[0].is_rest);
  EXPECT_TRUE(mapping->kernels[1].is_rest);
  EXPECT_EQ(mapping->kernels[1].address.writes, "");
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) EXPECT_TRUE(coverage.faults.empty());
  const Result<gpu::Mapping> again = mapped(program, gpu::options_for(*mapping, 0), kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
}

TEST(SplitWaves, LeavesWholeWavesAndFewTilesAlone) {
  for (const Sizes& sizes : std::vector<Sizes>{{{"M", 2048}, {"N", 2048}, {"K", 2048}},
                                               {{"M", 1024}, {"N", 1024}, {"K", 1024}},
                                               {{"M", 128}, {"N", 8192}, {"K", 8192}}}) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(kProduct, sizes), {}, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
  }
}

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  const char* options;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Sizes kSmall = {{"M", 150}, {"N", 136}, {"K", 72}};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"Rows", kProduct, kSmall, "split_results: [64, 136]"},
      {"OddRows", kProduct, kSmall, "split_results: [77, 136]"},
      {"Columns", kProduct, kSmall, "split_results: [150, 64]"},
      {"OddColumns", kProduct, kSmall, "split_results: [150, 77]"},
      {"OneRow", kProduct, kSmall, "split_results: [149, 136]"},
      {"Boxes", kProduct, kSmall,
       "tile: [64, 64, 64] register_tile: [2, 16] map_to_threads: [4, 32, 1] tensor_cores: true store_boxes: true "
       "split_results: [128, 136]"},
      {"Epilogue",
       "def f(float16(M,K) A, float16(K,N) B, float16(N) b, float16(M,N) R) -> (C) {\n"
       "  C(m,n) +=! A(m,k) * B(k,n)\n  C(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)\n}",
       kSmall, "split_results: [64, 136]"},
      {"BiasBefore",
       "def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) {\n"
       "  C(m,n) = b(n)\n  C(m,n) += A(m,k) * B(k,n)\n  C(m,n) max= 0\n}",
       kSmall, "split_results: [150, 64]"},
      {"Transposed",
       "def f(float16(M,K) A, float16(K,N) B, float16(M) s) -> (D, C) {\n"
       "  C(m,n) +=! A(m,k) * B(k,n)\n  D(n,m) = C(m,n) * s(m)\n}",
       kSmall, "split_results: [64, 136]"},
      {"InOut", "def f(float(M,K) A, float(K,N) B) -> (float(M,N) C) { C(m,n) += A(m,k) * B(k,n) }", kSmall,
       "split_results: [64, 136]"},
      {"Batch",
       "def f(float16(B,M,K) A, float16(B,K,N) W) -> (C) { C(b,m,n) +=! A(b,m,k) * W(b,k,n) }",
       {{"B", 5}, {"M", 40}, {"N", 48}, {"K", 64}},
       "split_results: [3, 40, 48]"},
      {"Window",
       "def f(float16(N,H,W,C) I, float16(F,R,S,C) K) -> (O) {\n"
       "  O(n,h,w,f) +=! (h + r >= 1 && h + r <= H ? I(n,h + r - 1,w + s,c) : 0) * K(f,r,s,c) where h in 0:H\n}",
       {{"N", 3}, {"H", 8}, {"W", 10}, {"C", 64}, {"F", 64}, {"R", 3}, {"S", 3}},
       "split_results: [2, 8, 8, 64]"},
      {"PartOfATensor",
       "def f(float(M,K) A, float(K,N) B) -> (float(M,N) C) { C(m,n) += A(m,k) * B(k,n) where m in 3:100 }", kSmall,
       "split_results: [60, 136]"},
  };
  return all;
}

class SplitResults : public ::testing::TestWithParam<Case> {};

TEST_P(SplitResults, Agree) {
  const Case& c = GetParam();
  const ir::Program program = specialised_from(c.text, c.sizes);
  for (const gpu::Device& device : {kDevice, ampere()}) {
    options::MappingOptions options = options_from(c.options);
    if (!device.accelerated && options.store_boxes) continue;
    const Result<gpu::Mapping> mapping = mapped(program, options, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_GE(mapping->kernels.size(), 2U) << gpu::report(*mapping);
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
    EXPECT_EQ(unproved(mapping->program), "");
    for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
      EXPECT_TRUE(coverage.faults.empty()) << coverage.faults.front();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SplitResults, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

/// What two launches have made is read by a third, behind both.
TEST(SplitWaves, BothLaunchesComeBeforeTheirReaders) {
  const ir::Program program = specialised_from(
      "def f(float(B,I) x, float(I,J) w, float(J,N) v) -> (O) {\n"
      "  H(b,j) +=! x(b,i) * w(i,j)\n  H(b,j) = fmax(H(b,j), 0)\n  O(b,n) +=! H(b,j) * v(j,n)\n}",
      {{"B", 64}, {"I", 96}, {"J", 128}, {"N", 48}});
  const Result<gpu::Mapping> mapping =
      mapped(program, options_from("chain: false kernel { writes: \"H\" split_results: [64, 96] }"));
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const std::vector<gpu::Edge> expected = {{"H", 0, 2}, {"H", 1, 2}};
  EXPECT_EQ(mapping->edges, expected);
  EXPECT_EQ(mapping->kernels[0].address.writes, "H");
  EXPECT_EQ(mapping->kernels[2].address.writes, "O");
  EXPECT_TRUE(mapping->kernels[2].chosen.split_results.empty());
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

/// The rest chooses sizes of its own, whatever those of the first launch are.
TEST(SplitWaves, TheRestFollowsNoSizes) {
  const std::string tile = "tile: [64, 64, 64] register_tile: [2, 16] map_to_threads: [4, 32, 1] tensor_cores: true ";
  const ir::Program program = specialised_from(kProduct, {{"M", 150}, {"N", 136}, {"K", 192}});
  const Result<gpu::Mapping> mapping =
      mapped(program, options_from(tile + "copy_stages: 2 split_results: [128, 136]"), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 2U);
  EXPECT_EQ(mapping->kernels[0].chosen.tile, Values({64, 64, 64}));
  EXPECT_NE(mapping->kernels[1].chosen.tile, Values({64, 64, 64}));
}

TEST(SplitWaves, OneLaunchMayBeAskedFor) {
  const ir::Program program = specialised_from(kProduct, {{"M", 3520}, {"N", 4480}, {"K", 1856}});
  const Result<gpu::Mapping> mapping = mapped(program, options_from("split_results: [3520, 4480]"), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 1U);
  EXPECT_EQ(mapping->kernels[0].chosen.split_results, Values({3520, 4480}));
}

TEST(SplitWaves, RefusesWhatIsNoCut) {
  for (const char* values : {"64", "64, 64", "64, 136, 1", "200, 200", "64, 200"}) {
    EXPECT_EQ(error_of(kProduct, kSmall, fmt::format("split_results: [{}]", values)),
              fmt::format("'split_results' is [{}], but no kernel follows it: it must be [150, 136] but for one "
                          "number, which is less",
                          values));
  }
  const std::string other =
      "'split_results' is [128, 256], but no kernel follows it: only products do that share their kernel with no other "
      "reduction";
  EXPECT_EQ(error_of("def f(float16(M,K) A, float16(K,N) B) -> (C, Z) {\n"
                     "  C(m,n) +=! A(m,k) * B(k,n)\n  Z(m) max=! C(m,n)\n}",
                     {{"M", 256}, {"N", 256}, {"K", 256}}, "split_results: [128, 256]"),
            other);
  EXPECT_EQ(
      error_of(kProduct, {{"M", 256}, {"N", 256}, {"K", 256}}, "split_results: [128, 256] match_library_calls: false"),
      other);
  EXPECT_EQ(error_of("def f(float(M,N) A) -> (C) { C(m,n) = 2 * A(m,n) }", {{"M", 256}, {"N", 256}},
                     "split_results: [128, 256]"),
            other);
  EXPECT_EQ(
      error_of(kProduct, kSmall, "kernel { writes: \"C_sum\" split_results: [64, 64] }"),
      "'split_results' of the kernel 'C_sum' is set, but the recipe 'contraction', which makes it, does not follow it: "
      "it must be [150, 136] but for one number, which is less");
}

/// Boxes write whole tiles: one that reached beyond its launch's part would write what the other one has.
TEST(SplitWaves, BoxesDoNotReachTheOtherPart) {
  const std::string tile =
      "tile: [64, 64, 64] register_tile: [2, 16] map_to_threads: [4, 32, 1] tensor_cores: true store_boxes: true ";
  EXPECT_EQ(error_of(kProduct, kSmall, tile + "split_results: [100, 136]"),
            "'store_boxes' is true, but no kernel follows it: only products by warpgroups do");
}

TEST(SplitWaves, PiecesHaveEachInstanceOnce) {
  const ir::Program program = specialised_from(kProduct, kSmall);
  const auto context = std::make_shared<poly::Context>();
  const Result<poly::Scop> scop = poly::from_ir(std::make_shared<const ir::Program>(program), context);
  ASSERT_TRUE(scop);
  const Result<gpu::Pieces> cut = gpu::schedule_pieces(*scop, options_from("split_results: [64, 136]"));
  ASSERT_TRUE(cut) << cut.error().to_string();
  ASSERT_EQ(cut->pieces.size(), 2U);
  EXPECT_TRUE(gpu::check_pieces(*scop, *cut));
  gpu::Pieces twice = *cut;
  twice.pieces[1] = twice.pieces[0];
  const Result<void> again = gpu::check_pieces(*scop, twice);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().to_string().find("is in two pieces"), std::string::npos);
  gpu::Pieces fewer = *cut;
  fewer.pieces.pop_back();
  const Result<void> less = gpu::check_pieces(*scop, fewer);
  ASSERT_FALSE(less);
  EXPECT_NE(less.error().to_string().find("is in no piece"), std::string::npos);
}

}  // namespace
}  // namespace tc::testing
