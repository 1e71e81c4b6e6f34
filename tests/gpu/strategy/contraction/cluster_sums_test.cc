#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/common/tile_mutants.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Products whose steps are dealt out to the blocks of a cluster: on the simulator as on the oracle, verified and
/// certified.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const gpu::Device kDevice = gpu::device_of_architecture(90);

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kNN[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kNT[] = "def f(bfloat16(M,K) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kToFloat[] =
    "def f(float16(M,K) A, float16(K,N) B) -> (float(M,N) C) { C(m,n) +=! float(B(k,n)) * float(A(m,k)) }";
constexpr char kEpilogue[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b, float16(M,N) R) -> (C, D) {
  C(m,n) +=! A(m,k) * B(k,n)
  D(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)
})";
constexpr char kPooled[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (C, float16(M,J) P) {
  C(m,n) +=! A(m,k) * B(k,n)
  P(m,j) = fmax(C(m,2 * j), C(m,2 * j + 1)) where j in 0:J
})";
constexpr char kInPlace[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (float16(M,N) C) {
  C(m,n) += A(m,k) * B(k,n)
})";
constexpr char kPaddedLast[] = R"(
def f(float16(N,H,W,C) I, float16(O,3,3,C) F) -> (float16(N,H,W,O) R) {
  R(n,h,w,o) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c)
    : half(0.0)) * F(o,kh,kw,c) where h in 0:H, w in 0:W
})";
constexpr char kBatch[] = "def f(float16(B,M,K) X, float16(B,K,N) Y) -> (Z) { Z(b,m,n) +=! X(b,m,k) * Y(b,k,n) }";
constexpr char kFloat8[] = R"(
def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (float16(M,N) C) { C(m,n) +=! half(A(m,k)) * half(B(n,k)) })";
constexpr char kTf32[] = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kGated[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(K,N) G) -> (C) {
  T(m,n) +=! A(m,k) * B(k,n)
  C(m,n) +=! A(m,k) * G(k,n)
  C(m,n) = C(m,n) * T(m,n)
})";
constexpr char kReduced[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (C, Q) {
  C(m,n) +=! A(m,k) * B(k,n)
  Q(n) max=! C(m,n)
})";

options::MappingOptions dealt_out(options::MappingOptions options, int64_t parts, size_t axes = 2) {
  options.cluster.assign(axes, 1);
  options.cluster.push_back(parts);
  return options;
}
options::MappingOptions in_steps_of(int64_t values, options::MappingOptions options) {
  options.tile.back() = values;
  return options;
}
options::MappingOptions with_tf32(options::MappingOptions options) {
  options.tf32 = true;
  return options;
}

const Case kCases[] = {
    {"nn, two", kNN, {{"M", 64}, {"N", 64}, {"K", 128}}, dealt_out(warpgroup_tile(1, 64, 2), 2)},
    {"nn, two warpgroups, four", kNN, {{"M", 128}, {"N", 128}, {"K", 512}}, dealt_out(warpgroup_tile(2, 128, 3), 4)},
    {"nn, eight", kNN, {{"M", 64}, {"N", 64}, {"K", 1024}}, dealt_out(warpgroup_tile(1, 64, 2), 8)},
    {"nn, eight of few groups", kNN, {{"M", 64}, {"N", 32}, {"K", 512}}, dealt_out(warpgroup_tile(1, 32, 2), 8)},
    {"nn, parts of two lengths", kNN, {{"M", 64}, {"N", 64}, {"K", 64 * 7}}, dealt_out(warpgroup_tile(1, 64, 2), 2)},
    {"nn, three parts", kNN, {{"M", 64}, {"N", 96}, {"K", 64 * 8}}, dealt_out(warpgroup_tile(1, 96, 3), 3)},
    {"nn, partial", kNN, {{"M", 70}, {"N", 72}, {"K", 64 * 4 + 8}}, dealt_out(warpgroup_tile(1, 64, 2), 4)},
    {"nn, several tiles", kNN, {{"M", 200}, {"N", 136}, {"K", 200}}, dealt_out(warpgroup_tile(1, 64, 2), 2)},
    {"nn, pairs of columns", kNN, {{"M", 64}, {"N", 48}, {"K", 136}}, dealt_out(warpgroup_tile(1, 48, 3), 2)},
    {"nt, odd rows", kNT, {{"M", 33}, {"N", 41}, {"K", 136}}, dealt_out(warpgroup_tile(1, 48, 2), 2)},
    {"nt, odd rows by eights", kNT, {{"M", 33}, {"N", 61}, {"K", 136}}, dealt_out(warpgroup_tile(1, 64, 2), 2)},
    {"float result", kToFloat, {{"M", 64}, {"N", 64}, {"K", 256}}, dealt_out(warpgroup_tile(1, 64, 2), 4)},
    {"epilogue", kEpilogue, {{"M", 72}, {"N", 80}, {"K", 256}}, dealt_out(warpgroup_tile(1, 64, 2), 2)},
    {"pooled", kPooled, {{"M", 64}, {"N", 64}, {"K", 128}, {"J", 32}}, dealt_out(warpgroup_tile(1, 64, 2), 2)},
    {"in place", kInPlace, {{"M", 64}, {"N", 64}, {"K", 256}}, dealt_out(warpgroup_tile(1, 64, 2), 4)},
    {"batch", kBatch, {{"B", 2}, {"M", 64}, {"N", 64}, {"K", 136}}, dealt_out(warpgroup_tile(1, 64, 2, {1}), 2, 3)},
    {"padded convolution",
     kPaddedLast,
     {{"N", 18}, {"C", 72}, {"H", 2}, {"W", 3}, {"O", 24}},
     dealt_out(warpgroup_box(1, {16, 2, 2, 24}, {2, 1, 1, 6}, 3), 4, 4)},
    {"float8", kFloat8, {{"M", 70}, {"N", 64}, {"K", 384}}, dealt_out(in_steps_of(128, warpgroup_tile(1, 64, 3)), 2)},
    {"tf32",
     kTf32,
     {{"M", 64}, {"N", 64}, {"K", 128}},
     with_tf32(dealt_out(in_steps_of(32, warpgroup_tile(1, 64, 3)), 4))},
};

class ClusterSums : public ::testing::TestWithParam<Case> {};

TEST_P(ClusterSums, AgreeWithTheOracleAndAreProved) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  EXPECT_EQ(mapping->program.kernels[0].cluster_blocks(), GetParam().options.cluster.back());
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

TEST_P(ClusterSums, OptionsAskForTheSameKernel) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
}

INSTANTIATE_TEST_SUITE_P(Cases, ClusterSums, ::testing::ValuesIn(kCases));

/// Why warpgroups have no such plan of a def's first product.
std::string refusal(const char* text, const Sizes& sizes, const options::MappingOptions& options) {
  const ir::Program program = specialised_from(text, sizes);
  const std::optional<gpu::Contraction> contraction = gpu::contraction_of(program, program.statements[0]);
  if (!contraction) return "it is no contraction";
  const Result<gpu::ContractionPlan> plan = gpu::plan_warpgroups(*contraction, options, kDevice);
  return plan ? "" : plan.error().to_string();
}

/// 416 threads have 128 registers each, as warps are dealt out to the four parts of a processor. The assembler takes 26
/// beside the sums at least.
TEST(PlansOfWarpgroups, ThreeHaveNoMoreThan102SumsEach) {
  const auto tile = [](int64_t rows) {
    options::MappingOptions options{.tile = {rows, 192, 64}, .map_to_threads = {96, 4, 1}};
    options.register_tile = {rows / 4, 2};
    options.tensor_cores = options.store_boxes = true;
    options.copy_stages = 2;
    return options;
  };
  const Sizes sizes = {{"M", 1032}, {"N", 4104}, {"K", 256}};
  EXPECT_EQ(refusal(kNN, sizes, tile(200)), "");
  const std::string said = refusal(kNN, sizes, tile(216));
  EXPECT_NE(said.find("a thread needs 134 registers, of 128"), std::string::npos) << said;
}

TEST(ClusterSums, AreRefusedWithTheReason) {
  const Sizes sizes = {{"M", 128}, {"N", 128}, {"K", 256}};
  const auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  options::MappingOptions options = dealt_out(warpgroup_tile(1, 64, 2), 2);
  EXPECT_EQ(refusal(kNN, sizes, options), "");
  options.cluster = {2, 1, 2};
  expect(refusal(kNN, sizes, options), "blocks of a cluster share boxes or steps, not both");
  options.cluster = {1, 1, 8};
  expect(refusal(kNN, sizes, options), "4 steps are not dealt out to 8 blocks");
  options.cluster = {1, 1, 2};
  options.store_boxes = true;
  expect(refusal(kNN, sizes, options), "blocks of a cluster that deal out steps store no boxes");
  options.store_boxes = {};
  options.persistent = true;
  expect(refusal(kNN, sizes, options), "blocks of a cluster have one tile each");
  const ir::Program program = specialised_from(kNN, sizes);
  const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
  ASSERT_FALSE(mapping);
  expect(mapping.error().to_string(), "'cluster' asks for blocks that share copies, but no kernel has any");
}

/// Products that share operands have kernels of their own. Results are not reduced in tiles.
TEST(ClusterSums, AreOfOneProductAndItsPoints) {
  const options::MappingOptions options = dealt_out(warpgroup_tile(1, 64, 2), 2);
  const ir::Program gated = specialised_from(kGated, {{"M", 128}, {"N", 64}, {"K", 256}});
  const Result<gpu::Mapping> mapping = mapped(gated, options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 2U);
  for (const tile::Kernel& kernel : mapping->program.kernels) EXPECT_EQ(kernel.cluster_blocks(), 2);
  EXPECT_EQ(difference_of_mapping(gated, *mapping), "");
  EXPECT_FALSE(mapped(specialised_from(kReduced, {{"M", 128}, {"N", 64}, {"K", 256}}), options, kDevice));
}

std::vector<int64_t> cluster_by_default(const char* text, const Sizes& sizes) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {}, kDevice);
  return mapping && mapping->kernels.size() == 1 ? mapping->kernels[0].chosen.cluster : std::vector<int64_t>{-1};
}

/// Where tiles are too few for the processors, and the reduction is long.
TEST(ClusterSums, AreTakenWhereTilesAreFew) {
  using Blocks = std::vector<int64_t>;
  EXPECT_EQ(cluster_by_default(kNT, {{"M", 512}, {"N", 512}, {"K", 4096}}), Blocks({1, 1, 3}));
  EXPECT_EQ(cluster_by_default(kNT, {{"M", 64}, {"N", 8192}, {"K", 8192}}), Blocks({1, 1, 2}));
  EXPECT_EQ(cluster_by_default(kNT, {{"M", 1024}, {"N", 1024}, {"K", 256}}), Blocks());
  EXPECT_EQ(cluster_by_default(kNT, {{"M", 128}, {"N", 8192}, {"K", 8192}}), Blocks({2, 1}));
}

/// Without a barrier or a part of the exchange a kernel is refused, or its results are wrong.
TEST(ClusterSums, MutantsAreCaught) {
  const ir::Program program = specialised_from(kNN, {{"M", 64}, {"N", 64}, {"K", 256}});
  const options::MappingOptions options = dealt_out(warpgroup_tile(1, 64, 2), 2);
  const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  int steps = 0;
  for (const tile::Mutant& mutant : tile::mutants(mapping->program)) {
    if (mutant.what.find("cluster") == std::string::npos) continue;
    ++steps;
    EXPECT_NE(unproved(mutant.program), "") << mutant.what;
  }
  EXPECT_EQ(steps, 4);
}

}  // namespace
}  // namespace tc::testing
