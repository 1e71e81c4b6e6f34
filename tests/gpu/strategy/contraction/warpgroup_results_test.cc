#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "tc/gpu/rewrite/statements.h"
#include "tc/support/check.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// How products of warpgroups leave their results: by boxes, and from tile to tile of a block that goes on.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

gpu::Device device_with(int64_t processors) {
  gpu::Device device = gpu::device_of_architecture(90);
  device.processors = processors;
  return device;
}

struct Counts {
  int stores = 0, copies = 0, shuffles = 0;
};

Counts counts_of(const tile::Program& program) {
  Counts result;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      result.stores += tile::box_store_of(node) ? 1 : 0;
      result.copies += tile::box_of(node) ? 1 : 0;
      result.shuffles += std::holds_alternative<tile::Shuffle>(node.node) ? 1 : 0;
    });
  }
  return result;
}

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options;
  int64_t processors = 132;
  bool is_rolled = false;  ///< results are finished in rolled loops
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

options::MappingOptions by_boxes(options::MappingOptions options) {
  options.store_boxes = true;
  return options;
}

options::MappingOptions persistent(options::MappingOptions options) {
  options.persistent = true;
  return options;
}

options::MappingOptions in_clusters(options::MappingOptions options, std::vector<int64_t> blocks) {
  options.cluster = std::move(blocks);
  return options;
}

/// Tiles whose rows are an instruction's columns, so that results lie across it.
options::MappingOptions across(int64_t rows, int64_t columns, int64_t stages) {
  options::MappingOptions options;
  options.tile = {rows, columns, 64};
  options.map_to_threads = {columns / 2, 4, 1};
  options.register_tile = {rows / 4, 2};
  options.copy_stages = stages;
  options.tensor_cores = options.store_boxes = true;
  return options;
}

/// The same by teams of one warpgroup that take turns.
options::MappingOptions across_by_turns(int64_t rows, int64_t columns, int64_t stages) {
  options::MappingOptions options = across(rows, columns, stages);
  options.map_to_threads[0] = 32;
  options.register_tile[1] *= columns / 64;
  options.ping_pong = options.persistent = true;
  return options;
}

/// Tiles of two warpgroups by turns, each of the rows of one or two instructions.
options::MappingOptions by_turns(options::MappingOptions options, size_t rows = 0) {
  const int64_t atoms = options.map_to_threads[1] / 32;
  options.map_to_threads[1] = 32;
  options.register_tile[rows] *= atoms;
  options.ping_pong = options.persistent = true;
  options.copy_operands = false;
  return options;
}

constexpr char kNN[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kTT[] = "def f(bfloat16(K,M) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(k,m) * B(n,k) }";
constexpr char kToFloat[] =
    "def f(float16(M,K) A, float16(K,N) B) -> (float(M,N) C) { C(m,n) +=! float(B(k,n)) * float(A(m,k)) }";
constexpr char kEpilogue[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b, float16(M,N) R) -> (C, D) {
  C(m,n) +=! A(m,k) * B(k,n)
  D(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)
})";
constexpr char kTwoTypes[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (float(M,N) C, float16(M,N) D) {
  C(m,n) +=! float(A(m,k)) * float(B(k,n))
  D(m,n) = half(fmax(C(m,n), 0))
})";
constexpr char kInPlace[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (float16(M,N) C) {
  C(m,n) += A(m,k) * B(k,n)
})";
constexpr char kSumOfProducts[] = R"(
def f(float16(M,K) x, float16(K,N) W, float16(M,L) h, float16(L,N) U, float16(N) b) -> (C) {
  C(m,n) +=! x(m,k) * W(k,n)
  C(m,n) += h(m,l) * U(l,n)
  C(m,n) = fmax(C(m,n) + b(n), 0)
})";
constexpr char kGated[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(K,N) G) -> (float16(M,N) O) {
  P(m,n) +=! float(A(m,k)) * float(B(k,n))
  Q(m,n) +=! float(A(m,k)) * float(G(k,n))
  O(m,n) = half(P(m,n) * fmax(Q(m,n), 0))
})";
constexpr char kGelu[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b) -> (float16(M,N) D) {
  float C(m,n) +=! A(m,k) * B(k,n)
  D(m,n) = half(0.5 * x * (1.0 + tanh(0.8 * (x + 0.045 * x * x * x)))) where x = C(m,n) + b(n)
})";
constexpr char kGeluAndSums[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (float(M,N) C, float16(M,N) D) {
  C(m,n) +=! float(A(m,k)) * float(B(k,n))
  D(m,n) = half(0.5 * C(m,n) * (1.0 + tanh(0.8 * (C(m,n) + 0.045 * C(m,n) * C(m,n) * C(m,n)))))
})";
constexpr char kGatedByGelu[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(K,N) G) -> (float16(M,N) O) {
  P(m,n) +=! float(A(m,k)) * float(B(k,n))
  Q(m,n) +=! float(A(m,k)) * float(G(k,n))
  O(m,n) = half(P(m,n) * 0.5 * x * (1.0 + tanh(0.8 * (x + 0.045 * x * x * x)))) where x = Q(m,n)
})";
constexpr char kGatedBack[] = R"(
def f(bfloat16(M,K) A, bfloat16(K,M) D, bfloat16(N,K) B) -> (float(M,N) O) {
  P(m,n) +=! float(B(n,k)) * float(A(m,k))
  Q(m,n) +=! float(D(k,m)) * float(B(n,k))
  O(m,n) = P(m,n) * fmax(Q(m,n), 0)
})";
constexpr char kThreeProducts[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(K,N) G, float16(N,K) H) -> (float16(M,N) O) {
  float P(m,n) +=! A(m,k) * B(k,n)
  float Q(m,n) +=! A(m,k) * G(k,n)
  float R(m,n) +=! A(m,k) * H(n,k)
  O(m,n) = half(P(m,n) * fmax(Q(m,n), 0) + R(m,n))
})";
constexpr char kPaddedLast[] = R"(
def f(float16(N,H,W,C) I, float16(O,3,3,C) F) -> (float16(N,H,W,O) R) {
  R(n,h,w,o) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c)
    : float16(0.0)) * F(o,kh,kw,c) where h in 0:H, w in 0:W
})";
constexpr char kBatch[] = "def f(float16(B,M,K) A, float16(B,K,N) D) -> (C) { C(b,m,n) +=! A(b,m,k) * D(b,k,n) }";
constexpr char kFourAxes[] =
    "def f(float16(A,B,C,D) X, float16(D,B,E,F) Y) -> (Z) { Z(a,c,e,f) +=! X(a,b,c,d) * Y(d,b,e,f) }";
constexpr char kMixed8[] = R"(
def f(float8_e5m2(M,K) A, float8_e4m3(N,K) B, float16(N) b) -> (float16(M,N) C) {
  C(m,n) +=! half(A(m,k)) * half(B(n,k))
  C(m,n) = fmax(C(m,n) + b(n), 0)
})";

options::MappingOptions tile_of_float8(int64_t warpgroups, int64_t columns, int64_t stages) {
  options::MappingOptions options = warpgroup_tile(warpgroups, columns, stages);
  options.tile.back() = 128;
  return options;
}

const Case kCases[] = {
    {"boxes", kNN, {{"M", 128}, {"N", 128}, {"K", 128}}, by_boxes(warpgroup_tile(2, 128, 2))},
    {"boxes, partial", kNN, {{"M", 70}, {"N", 72}, {"K", 136}}, by_boxes(warpgroup_tile(1, 64, 2))},
    {"boxes, one slab", kNN, {{"M", 64}, {"N", 64}, {"K", 64}}, by_boxes(warpgroup_tile(1, 64, 2))},
    {"boxes, slabs of 32", kTT, {{"M", 64}, {"N", 160}, {"K", 64}}, by_boxes(warpgroup_tile(1, 160, 2))},
    {"boxes, slabs of 8", kNN, {{"M", 100}, {"N", 232}, {"K", 64}}, by_boxes(warpgroup_tile(2, 104, 2))},
    {"boxes, floats", kToFloat, {{"M", 130}, {"N", 64}, {"K", 128}}, by_boxes(warpgroup_tile(3, 64, 2))},
    {"boxes, epilogue", kEpilogue, {{"M", 72}, {"N", 80}, {"K", 128}}, by_boxes(warpgroup_tile(1, 64, 2))},
    {"boxes, two types", kTwoTypes, {{"M", 64}, {"N", 64}, {"K", 64}}, by_boxes(warpgroup_tile(1, 64, 2))},
    {"boxes, in place", kInPlace, {{"M", 64}, {"N", 64}, {"K", 64}}, by_boxes(warpgroup_tile(1, 64, 2))},
    {"boxes, gated", kGated, {{"M", 128}, {"N", 64}, {"K", 64}}, by_boxes(warpgroup_tile(2, 64, 3))},
    {"boxes of an image",
     kPaddedLast,
     {{"N", 2}, {"C", 64}, {"H", 9}, {"W", 7}, {"O", 40}},
     by_boxes(warpgroup_box(2, {1, 16, 8, 40}, {1, 2, 1, 10}, 3))},
    {"boxes, four axes",
     kFourAxes,
     {{"A", 3}, {"B", 2}, {"C", 32}, {"D", 64}, {"E", 3}, {"F", 128}},
     by_boxes(warpgroup_box(1, {4, 16, 128}, {1, 2, 32}, 2))},
    {"boxes, batch", kBatch, {{"B", 3}, {"M", 64}, {"N", 64}, {"K", 72}}, by_boxes(warpgroup_tile(1, 64, 2, {1}))},
    {"boxes, float8", kMixed8, {{"M", 130}, {"N", 96}, {"K", 256}}, by_boxes(tile_of_float8(2, 96, 3))},
    {"persistent", kNN, {{"M", 320}, {"N", 192}, {"K", 192}}, persistent(warpgroup_tile(1, 64, 3)), 1},
    {"persistent, a tile each", kNN, {{"M", 64}, {"N", 64}, {"K", 128}}, persistent(warpgroup_tile(1, 64, 2))},
    {"persistent, partial", kNN, {{"M", 330}, {"N", 200}, {"K", 136}}, persistent(warpgroup_tile(2, 64, 2)), 2},
    {"persistent, sum of products",
     kSumOfProducts,
     {{"M", 256}, {"N", 192}, {"K", 128}, {"L", 64}},
     persistent(warpgroup_tile(1, 64, 2)),
     2},
    {"persistent, float8", kMixed8, {{"M", 330}, {"N", 96}, {"K", 208}}, persistent(tile_of_float8(1, 32, 2)), 1},
    {"both", kNN, {{"M", 330}, {"N", 256}, {"K", 136}}, by_boxes(persistent(warpgroup_tile(2, 128, 2))), 1},
    {"both, one slab", kNN, {{"M", 320}, {"N", 192}, {"K", 64}}, by_boxes(persistent(warpgroup_tile(1, 64, 2))), 1},
    {"both, several results",
     kEpilogue,
     {{"M", 320}, {"N", 192}, {"K", 128}},
     by_boxes(persistent(warpgroup_tile(1, 64, 2))),
     1},
    {"both, in place",
     kInPlace,
     {{"M", 320}, {"N", 128}, {"K", 64}},
     by_boxes(persistent(warpgroup_tile(1, 64, 2))),
     1},
    {"both, batch",
     kBatch,
     {{"B", 5}, {"M", 64}, {"N", 64}, {"K", 72}},
     by_boxes(persistent(warpgroup_tile(1, 64, 2, {1}))),
     1},
    {"across", kNN, {{"M", 70}, {"N", 136}, {"K", 80}}, across(32, 128, 2)},
    {"across, whole tiles", kNN, {{"M", 128}, {"N", 128}, {"K", 128}}, across(64, 64, 2)},
    {"across, slabs", kTT, {{"M", 160}, {"N", 128}, {"K", 64}}, across(160, 128, 2)},
    {"across, an epilogue", kEpilogue, {{"M", 100}, {"N", 72}, {"K", 136}}, across(72, 64, 2)},
    {"across, in place", kInPlace, {{"M", 90}, {"N", 192}, {"K", 64}}, across(48, 64, 2)},
    {"across, in clusters", kNN, {{"M", 300}, {"N", 256}, {"K", 640}}, in_clusters(across(96, 128, 3), {1, 2})},
    {"across, persistent", kNN, {{"M", 200}, {"N", 136}, {"K", 72}}, persistent(across(32, 64, 2)), 1},
    {"across, turns", kNN, {{"M", 200}, {"N", 256}, {"K", 136}}, across_by_turns(32, 128, 2), 1},
    {"across, turns, one slab", kEpilogue, {{"M", 150}, {"N", 192}, {"K", 64}}, across_by_turns(48, 64, 2), 1},
    {"across, many columns", kNN, {{"M", 1100}, {"N", 64}, {"K", 64}}, across(176, 64, 2)},
    {"turns", kNN, {{"M", 330}, {"N", 200}, {"K", 192}}, by_turns(warpgroup_tile(2, 64, 3)), 1},
    {"turns, one instruction", kNN, {{"M", 330}, {"N", 200}, {"K", 136}}, by_turns(warpgroup_tile(1, 96, 2)), 2},
    {"turns, one step", kTT, {{"M", 256}, {"N", 160}, {"K", 64}}, by_turns(warpgroup_tile(2, 160, 2)), 1},
    {"turns, a tile each", kNN, {{"M", 128}, {"N", 64}, {"K", 128}}, by_turns(warpgroup_tile(2, 64, 2))},
    {"turns, boxes", kNN, {{"M", 330}, {"N", 256}, {"K", 136}}, by_boxes(by_turns(warpgroup_tile(2, 192, 2))), 1},
    {"turns, one slab each", kNN, {{"M", 330}, {"N", 192}, {"K", 72}}, by_boxes(by_turns(warpgroup_tile(1, 64, 2))), 1},
    {"turns, an epilogue",
     kEpilogue,
     {{"M", 272}, {"N", 136}, {"K", 128}},
     by_boxes(by_turns(warpgroup_tile(2, 64, 2))),
     1},
    {"turns, two types",
     kTwoTypes,
     {{"M", 200}, {"N", 96}, {"K", 64}},
     by_boxes(by_turns(warpgroup_tile(2, 96, 3))),
     1},
    {"turns, in place", kInPlace, {{"M", 320}, {"N", 128}, {"K", 64}}, by_turns(warpgroup_tile(2, 128, 2)), 1},
    {"turns, gated", kGated, {{"M", 320}, {"N", 64}, {"K", 64}}, by_boxes(by_turns(warpgroup_tile(1, 64, 3))), 1},
    {"turns, sum of products",
     kSumOfProducts,
     {{"M", 256}, {"N", 192}, {"K", 128}, {"L", 64}},
     by_turns(warpgroup_tile(2, 64, 2)),
     2},
    {"turns, float8", kMixed8, {{"M", 330}, {"N", 96}, {"K", 208}}, by_turns(tile_of_float8(2, 48, 2)), 1},
    {"turns, an image",
     kPaddedLast,
     {{"N", 4}, {"C", 64}, {"H", 9}, {"W", 7}, {"O", 40}},
     by_boxes(by_turns(warpgroup_box(2, {1, 16, 8, 40}, {1, 2, 1, 10}, 3), 1)),
     1},
    {"turns, an image in several",
     kPaddedLast,
     {{"N", 5}, {"C", 64}, {"H", 9}, {"W", 7}, {"O", 40}},
     by_boxes(by_turns(warpgroup_box(2, {2, 8, 8, 40}, {1, 2, 1, 10}, 3), 0)),
     1},
    {"turns, batch",
     kBatch,
     {{"B", 5}, {"M", 130}, {"N", 64}, {"K", 72}},
     by_boxes(by_turns(warpgroup_tile(2, 64, 2, {1}), 1)),
     1},
    {"a gated pair by turns, stored by boxes",
     kGated,
     {{"M", 200}, {"N", 136}, {"K", 200}},
     by_boxes(by_turns(warpgroup_tile(1, 64, 3))),
     1},
    {"a gated pair in clusters",
     kGated,
     {{"M", 250}, {"N", 200}, {"K", 200}},
     in_clusters(warpgroup_tile(2, 64, 3), {2, 1})},
    {"a gated pair with one matrix of columns, and rows in two orders",
     kGatedBack,
     {{"M", 200}, {"N", 104}, {"K", 136}},
     persistent(warpgroup_tile(2, 96, 2)),
     1},
    {"three products of one matrix",
     kThreeProducts,
     {{"M", 200}, {"N", 136}, {"K", 136}},
     by_boxes(persistent(warpgroup_tile(2, 64, 2))),
     2},
    {"a gelu in rolled loops, rows of two instructions",
     kGelu,
     {{"M", 200}, {"N", 120}, {"K", 1304}},
     by_boxes(by_turns(warpgroup_tile(2, 128, 2))),
     1,
     true},
    {"the same of one instruction",
     kGelu,
     {{"M", 130}, {"N", 160}, {"K", 1304}},
     by_boxes(by_turns(warpgroup_tile(1, 160, 2))),
     1,
     true},
    {"a gelu in rolled loops, two results",
     kGeluAndSums,
     {{"M", 140}, {"N", 96}, {"K", 1304}},
     by_boxes(by_turns(warpgroup_tile(2, 96, 2))),
     1,
     true},
    {"a gelu in rolled loops, two products",
     kGatedByGelu,
     {{"M", 130}, {"N", 120}, {"K", 904}},
     by_boxes(by_turns(warpgroup_tile(1, 128, 2))),
     1,
     true},
    {"a gelu that would take longer than the other team's products",
     kGelu,
     {{"M", 200}, {"N", 136}, {"K", 512}},
     by_boxes(by_turns(warpgroup_tile(2, 128, 2))),
     1},
};

/// The longest vectors in which kernels read a tensor of global memory; 1 where values read single elements of it.
int vector_of(const tile::Program& program, const std::string& tensor) {
  int longest = 0;
  bool by_elements = false;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      if (const auto* move = std::get_if<tile::Move>(&node.node); move && move->source == tensor)
        longest = std::max(longest, move->elements);
      tile::for_each_expr(node, [&](const Halide::Expr& e) {
        by_elements |= gpu::reads(e, [&](const auto* call) { return call->name == tensor; });
      });
    });
  }
  return by_elements ? 1 : longest;
}

class WarpgroupResults : public ::testing::TestWithParam<Case> {};

TEST_P(WarpgroupResults, AgreeWithTheOracleAndAreProved) {
  const Case& c = GetParam();
  const gpu::Device device = device_with(c.processors);
  const ir::Program program = specialised_from(c.text, c.sizes);
  const Result<gpu::Mapping> mapping = mapped(program, c.options, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  const tile::Kernel& kernel = mapping->program.kernels[0];
  const Counts counts = counts_of(mapping->program);
  EXPECT_GE(counts.copies, 1);
  EXPECT_EQ(counts.stores > 0, c.options.store_boxes.value_or(false));
  if (c.options.persistent.value_or(false))
    EXPECT_NE(tile::to_text(kernel).find("for tile in block_x:"), std::string::npos);
  EXPECT_EQ(tile::to_text(kernel).find("2 teams of 4 warps") != std::string::npos, c.options.ping_pong.value_or(false));
  EXPECT_EQ(tile::to_text(kernel).find(" rolled") != std::string::npos, c.is_rolled);
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, device);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
}

INSTANTIATE_TEST_SUITE_P(Cases, WarpgroupResults, ::testing::ValuesIn(kCases));

constexpr char kReduced[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b, float16(M,N) R) -> (float s) {
  float C(m,n) +=! A(m,k) * B(k,n)
  s +=! fabs(C(m,n) + b(n) - R(m,n))
})";

constexpr char kWide[] = R"(
def f(float16(M,K) A, float16(K,N) B, float(N) b, float(M,N) R) -> (float16(M,N) D) {
  float C(m,n) +=! A(m,k) * B(k,n)
  D(m,n) = half(fmax(C(m,n) + b(n), 0) * sigmoid(R(m,n)))
})";

/// A thread reads what its neighbouring results need at once: 8 of those that it stores, of float32 by two vectors;
/// pairs of those that boxes store or that it reduces. Rows of an odd number of elements hold no such vectors.
TEST(WarpgroupResults, ReadVectorsOfWhatTheyAreCombinedWith) {
  struct Read {
    const char* text;
    int64_t columns;
    bool boxes;
    int vector;
  };
  for (const Read& read : {Read{kEpilogue, 128, false, 8}, Read{kEpilogue, 128, true, 2}, Read{kReduced, 128, false, 2},
                           Read{kReduced, 120, false, 2}, Read{kEpilogue, 125, false, 1}, Read{kWide, 128, false, 4},
                           Read{kWide, 128, true, 2}}) {
    SCOPED_TRACE(fmt::format("{} columns of {}", read.columns, read.text));
    options::MappingOptions options = warpgroup_tile(2, 64, 2);
    options.store_boxes = read.boxes;
    const ir::Program program = specialised_from(read.text, {{"M", 128}, {"N", read.columns}, {"K", 64}});
    const Result<gpu::Mapping> mapping = mapped(program, options, device_with(132));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(vector_of(mapping->program, "R"), read.vector);
    EXPECT_EQ(vector_of(mapping->program, "b"), read.vector);
    EXPECT_EQ(difference_of_mapping(program, *mapping, 3), "");
  }
}

/// Few processors have several tiles each.
TEST(WarpgroupResults, RandomTilesAgree) {
  int stores = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const WarpgroupProduct tile = random_warpgroup_product(seed);
    if (!tile.options.store_boxes && !tile.options.persistent) continue;
    const std::string what = fmt::format("{}\n{}{}", seed, tile.text, options::to_text(tile.options));
    const gpu::Device device = device_with(1);
    const ir::Program program = specialised_from(tile.text, tile.sizes);
    const Result<gpu::Mapping> mapping = mapped(program, tile.options, device);
    ASSERT_TRUE(mapping) << what << mapping.error().to_string();
    stores += counts_of(mapping->program).stores > 0 ? 1 : 0;
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "") << what;
    if (seed % 4 == 0) EXPECT_EQ(unproved(mapping->program), "") << what;
  }
  EXPECT_GT(stores, 0);
}

std::string refusal(const char* text, const Sizes& sizes, const options::MappingOptions& options) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, device_with(132));
  return mapping ? "" : mapping.error().to_string();
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\ngot: " << text;
}

TEST(WarpgroupResults, AreNotStoredByBoxesWhereThesePassThem) {
  const Sizes sizes = {{"M", 128}, {"N", 128}, {"K", 128}};
  const options::MappingOptions boxes = by_boxes(warpgroup_tile(1, 64, 2));
  expect_part(refusal("def f(float16(M,K) A, float16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }",
                      {{"M", 128}, {"N", 68}, {"K", 128}}, boxes),
              "'store_boxes' is true, but no kernel follows it");
  expect_part(refusal("def f(float16(M,K) A, float16(K,N) B) -> (C) { C(n,m) +=! A(m,k) * B(k,n) }", sizes, boxes), "");
  options::MappingOptions in_cluster = persistent(warpgroup_tile(1, 64, 2));
  in_cluster.cluster = {2, 1};
  expect_part(refusal(kNN, sizes, in_cluster), "'cluster' asks for blocks that share copies, but no kernel has any");
  options::MappingOptions by_elements = by_boxes({});
  by_elements.tensor_cores = false;
  expect_part(refusal(kNN, sizes, by_elements), "'store_boxes' is true, but no kernel follows it");
}

/// Products of one matrix go through the same steps, for which its boxes come once. Others have steps of their own.
TEST(WarpgroupResults, OfOneMatrixShareTheirSteps) {
  const auto copies = [](const char* text, const Sizes& sizes) {
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> mapping = mapped(program, warpgroup_tile(2, 64, 2), device_with(132));
    TC_CHECK(mapping && mapping->program.kernels.size() == 1, "no kernel, or several");
    return counts_of(mapping->program).copies;
  };
  EXPECT_EQ(copies(kGated, {{"M", 128}, {"N", 64}, {"K", 128}}), 3);
  EXPECT_EQ(copies(kGatedBack, {{"M", 128}, {"N", 64}, {"K", 128}}), 3);
  EXPECT_EQ(copies(kThreeProducts, {{"M", 128}, {"N", 64}, {"K", 128}}), 4);
  EXPECT_EQ(copies(kSumOfProducts, {{"M", 128}, {"N", 64}, {"K", 128}, {"L", 128}}), 4);
}

/// Beside their sums the assembler wants registers, or it serialises products, which takes four times as long.
TEST(WarpgroupResults, OfOneMatrixLeaveRegisters) {
  const ir::Program program = specialised_from(kGated, {{"M", 4096}, {"N", 8192}, {"K", 1024}});
  for (const std::vector<int64_t>& tile : {std::vector<int64_t>{}, {128, 136, 64}, {128, 144, 64}, {128, 160, 64}}) {
    const Result<gpu::Mapping> mapping = mapped(program, {.tile = tile, .tensor_cores = true}, device_with(132));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    if (!tile.empty()) EXPECT_EQ(mapping->program.kernels.size() == 1, tile[1] == 136) << tile[1];
    for (const tile::Kernel& kernel : mapping->program.kernels) {
      int64_t sums = 0;
      tile::for_each_node(kernel.body, [&](const tile::Node& node) {
        const tile::Tensor* tensor = tile::allocated_tensor(node);
        if (tensor && tensor->name.ends_with("_sum")) sums += tensor->elements();
      });
      EXPECT_LE(sums + 32, tile::registers_at_start(kernel.block[0])) << tile::to_text(kernel);
    }
  }
}

/// Two warpgroups take turns where each block goes through tiles that one of them has room for.
TEST(WarpgroupResults, DoNotTakeTurnsWhereTheyCannot) {
  const Sizes sizes = {{"M", 256}, {"N", 256}, {"K", 128}};
  const char* not_followed = "'ping_pong' is true, but no kernel follows it";
  options::MappingOptions options{.tile = {128, 128, 64}, .ping_pong = true, .tensor_cores = true};
  EXPECT_EQ(refusal(kNN, sizes, options), "");
  expect_part(refusal(kReduced, sizes, options), not_followed);  // threads reduce the results of a block's one tile
  options.tile = {192, 96, 64};                                  // rows
  expect_part(refusal(kNN, sizes, options), not_followed);
  options.tile = {128, 256, 64};  // sums
  expect_part(refusal(kNN, sizes, options), not_followed);
  options.tile = {128, 128, 64};
  options.persistent = false;
  expect_part(refusal(kNN, sizes, options), not_followed);
  options.persistent = std::nullopt;
  options.cluster = {2, 1};
  expect_part(refusal(kNN, sizes, options), "'cluster' asks for blocks that share copies, but no kernel has any");
}

}  // namespace
}  // namespace tc::testing
