#include <gtest/gtest.h>

#include "tc/api/schedule.h"
#include "tests/api/scheduled.h"

/// Default kernels of the strategies, written verb by verb. Each has the text that the compiler makes by itself.
namespace tc::api {
namespace {

using testing::check;
using testing::error_of;
using testing::take;
using namespace std::string_literals;

/// CUDA text without the comment that it begins with.
std::string without_header(const std::string& text) {
  size_t at = 0;
  while (text.compare(at, 2, "//") == 0) at = text.find('\n', at) + 1;
  return text.substr(at);
}

/// A def at some sizes.
struct Def {
  const char* text;
  std::map<std::string, int64_t> sizes;
  options::MappingOptions options = {};

  Request request(Backend backend) const {
    Request request{.sizes = sizes, .backend = backend};
    request.mapping = options;
    request.budget.wall_clock_ms = 600'000;  // on a machine that has much else to do
    return request;
  }
  Schedule schedule() const { return take(Schedule::create(text, request(Backend::kSimulator))); }
};

void expect_default_text(const Schedule& schedule, const Def& def) {
  const Engine engine = take(Engine::create(def.text));
  const std::string expected = take(engine.emit(def.request(Backend::kCuda), "cuda"));
  EXPECT_EQ(without_header(take(schedule.cuda_text())), without_header(expected))
      << take(schedule.to_text()) << expected.substr(0, 600);
}

/// The default kernel of a strategy, as it is recorded.
const Def kFma = {"def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
                  {{"M", 512}, {"N", 512}, {"K", 512}}};

/// Tiles of m and n, whose loops get copies for each statement.
void tile_product(Schedule& schedule, int64_t m, int64_t n) {
  take(schedule.tile({"m", "n"}, {m, n}));
  check(schedule.distribute("n_inner"));
  check(schedule.distribute("m_inner"));
}

/// The same where n stands above m. `rest` ends the names of the loops.
void tile_columns_first(Schedule& schedule, int64_t m, int64_t n, const std::string& rest = "") {
  take(schedule.tile({"n" + rest, "m" + rest}, {n, m}));
  check(schedule.distribute("m" + rest + "_inner"));
  check(schedule.distribute("n" + rest + "_inner"));
}

TEST(ScheduleTiles, AProductByMultiplyAdds) {
  Schedule schedule = kFma.schedule();
  tile_product(schedule, 32, 64);
  take(schedule.split("k", 64));
  take(schedule.split("k_inner", 8));
  take(schedule.split("m_inner", 16));
  take(schedule.split("m_inner_inner", 4));
  take(schedule.split("n_inner", 32));
  take(schedule.split("n_inner_inner", 4));
  check(schedule.reorder({"k_outer", "m_inner_outer", "m_inner_inner_outer", "m_inner_inner_inner", "n_inner_outer",
                          "n_inner_inner_outer", "n_inner_inner_inner", "k_inner_outer", "k_inner_inner"}));
  check(schedule.tensorize("m_inner_outer", TileOperation::kFma));
  check(schedule.bind("n_outer", Axis::kBlockX));
  check(schedule.bind("m_outer", Axis::kBlockY));
  check(schedule.bind("n_inner_inner_outer", Axis::kThreadX));
  check(schedule.bind("m_inner_inner_outer", Axis::kThreadY));
  check(schedule.bind("k_inner_outer", Axis::kThreadZ));
  check(schedule.promote("C", "n_outer", Memory::kRegisters));
  for (const char* operand : {"A", "B"}) {
    check(schedule.promote(operand, "k_outer", Memory::kShared));
    check(schedule.stage(operand, "k_outer", 4));
  }
  expect_default_text(schedule, kFma);
}

TEST(ScheduleTiles, AProductByWarps) {
  const Def def = {R"(
def f(float16(M,K) A, float16(K,N) B, float(N) b) -> (float(M,N) C) {
  C(m,n) +=! float(A(m,k)) * float(B(k,n))
  C(m,n) = fmax(C(m,n) + b(n), 0)
})",
                   {{"M", 1000}, {"N", 1024}, {"K", 516}},
                   {.copy_operands = false}};
  Schedule schedule = def.schedule();
  tile_product(schedule, 64, 128);
  take(schedule.split("k", 16));
  take(schedule.split("m_inner_S0", 8));
  take(schedule.split("n_inner_S0", 32));
  take(schedule.split("n_inner_S0_inner", 8));
  check(schedule.reorder({"k_outer", "m_inner_S0_outer", "m_inner_S0_inner", "n_inner_S0_outer",
                          "n_inner_S0_inner_outer", "n_inner_S0_inner_inner", "k_inner"}));
  check(schedule.tensorize("m_inner_S0_outer", TileOperation::kMma));
  check(schedule.bind("n_outer", Axis::kBlockX));
  check(schedule.bind("m_outer", Axis::kBlockY));
  check(schedule.bind("n_inner_S0_inner_outer", Axis::kWarpX));
  check(schedule.promote("C", "n_outer", Memory::kRegisters));
  for (const char* operand : {"A", "B"}) {
    check(schedule.promote(operand, "k_outer", Memory::kShared));
    check(schedule.stage(operand, "k_outer", 4));
  }
  expect_default_text(schedule, def);
}

TEST(ScheduleTiles, AProductByWarpgroups) {
  const Def def = {R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b) -> (C) {
  C(m,n) +=! A(m,k) * B(k,n)
  C(m,n) = fmax(C(m,n) + b(n), 0)
})",
                   {{"M", 2048}, {"N", 2048}, {"K", 1088}}};
  Schedule schedule = def.schedule();
  tile_product(schedule, 128, 256);
  take(schedule.split("k", 64));
  take(schedule.split("m_inner_S0", 64));
  check(schedule.reorder({"k_outer", "m_inner_S0_outer", "m_inner_S0_inner", "n_inner_S0", "k_inner"}));
  check(schedule.reorder({"n_outer", "m_outer"}));
  check(schedule.tensorize("m_inner_S0_outer", TileOperation::kWgmma));
  check(schedule.bind("n_outer", Axis::kBlockX));
  check(schedule.bind("m_outer", Axis::kBlockX));
  check(schedule.bind("m_inner_S0_outer", Axis::kWarpgroup));
  check(schedule.promote("C_sum", "m_outer", Memory::kRegisters));
  check(schedule.promote("C", "m_outer", Memory::kShared, Fetch::kBoxes));
  for (const char* operand : {"A", "B"}) {
    check(schedule.promote(operand, "k_outer", Memory::kShared, Fetch::kBoxes));
    check(schedule.stage(operand, "k_outer", 4));
  }
  EXPECT_EQ(take(schedule.to_text()),
            R"(f(float16(2048,1088) A, float16(1088,2048) B, float16(2048) b) -> (float16(2048,2048) C) on sim
for n_outer in 0:8  # block.x
  for m_outer in 0:16  # block.x
    buffer C_sum 128 x 256 in registers
    buffer C 128 x 256 in shared memory, by boxes
    for m_inner_S0_init in 0:128
      for n_inner_S0_init in 0:256
        S0_init: C_sum(m, n) = 0.0
    for k_outer in 0:17
      buffer A 128 x 64 in shared memory, by boxes, 4 stages
      buffer B 64 x 256 in shared memory, by boxes, 4 stages
      for m_inner_S0_outer in 0:2  # warpgroup, a tile: wgmma
        for m_inner_S0_inner in 0:64
          for n_inner_S0 in 0:256
            for k_inner in 0:64
              S0: C_sum(m, n) += float32(A(m, k)) * float32(B(k, n))
    for m_inner_S1 in 0:128
      for n_inner_S1 in 0:256
        S1: C(m, n) = float16(C_sum(m, n))
    for m_inner in 0:128
      for n_inner in 0:256
        S2: C(m, n) = fmax(C(m, n) + b(n), float16(0))
)");
  expect_default_text(schedule, def);
}

constexpr const char* kHalves = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// What products of warpgroups have when tiles, blocks and warpgroups have been said: `sums` is the innermost loop of
/// blocks.
void fetch_by_boxes(Schedule& schedule, const std::string& sums, int64_t stages, const std::string& steps = "k_outer") {
  check(schedule.promote("C_sum", sums, Memory::kRegisters));
  for (const char* operand : {"A", "B"}) {
    check(schedule.promote(operand, steps, Memory::kShared, Fetch::kBoxes));
    check(schedule.stage(operand, steps, stages));
  }
}

/// Warpgroups with 64 columns of the result each, which are the rows of their instructions. `rest` is in the names of
/// the loops.
void multiply_across(Schedule& schedule, const std::vector<std::string>& blocks, const std::string& rest = "") {
  const std::string m = "m" + rest + "_inner_S0", n = "n" + rest + "_inner_S0", k = "k" + rest;
  take(schedule.split(n, 64));
  check(schedule.reorder(blocks));
  check(schedule.reorder({k + "_outer", n + "_outer", m, n + "_inner", k + "_inner"}));
  check(schedule.tensorize(n + "_outer", TileOperation::kWgmma));
  for (const std::string& loop : blocks) {
    check(schedule.bind(loop, loop == blocks.back() ? Axis::kCluster : Axis::kBlockX));
  }
  check(schedule.bind(n + "_outer", Axis::kWarpgroup));
}

TEST(ScheduleTiles, AProductInClusters) {
  const Def def = {kHalves, {{"M", 2104}, {"N", 2104}, {"K", 2104}}, {.copy_operands = false}};
  Schedule schedule = def.schedule();
  tile_product(schedule, 176, 192);
  take(schedule.split("k", 64));
  take(schedule.split("m_outer", 2));
  multiply_across(schedule, {"m_outer_outer", "n_outer", "m_outer_inner"});
  fetch_by_boxes(schedule, "m_outer_inner", 3);
  check(schedule.promote("C", "m_outer_inner", Memory::kShared, Fetch::kBoxes));
  expect_default_text(schedule, def);
}

/// Loops of 128 x 256 results of halves, which warpgroups multiply in steps of 64. `group` rows of blocks go before the
/// next column, `innermost` where a cluster has them; 0: all columns of a row first.
void multiply_by_warpgroups(Schedule& schedule, int64_t group = 0, Axis innermost = Axis::kBlockX) {
  tile_product(schedule, 128, 256);
  take(schedule.split("k", 64));
  take(schedule.split("m_inner_S0", 64));
  std::vector<std::string> blocks = {"m_outer", "n_outer"};
  if (group > 0) {
    take(schedule.split("m_outer", group));
    blocks = {"m_outer_outer", "n_outer", "m_outer_inner"};
    check(schedule.reorder(blocks));
  }
  check(schedule.reorder({"k_outer", "m_inner_S0_outer", "m_inner_S0_inner", "n_inner_S0", "k_inner"}));
  check(schedule.tensorize("m_inner_S0_outer", TileOperation::kWgmma));
  for (const std::string& loop : blocks) check(schedule.bind(loop, loop == blocks.back() ? innermost : Axis::kBlockX));
  check(schedule.bind("m_inner_S0_outer", Axis::kWarpgroup));
  fetch_by_boxes(schedule, blocks.back(), 4);
}

const Def k4096 = {kHalves, {{"M", 4096}, {"N", 4096}, {"K", 4096}}};

/// What the compiler makes by itself: blocks of the first launch go on, by two teams of a warpgroup with 128 rows; what
/// they would leave over is a second launch, in clusters.
TEST(ScheduleTiles, AProductOf4096) {
  Schedule schedule = k4096.schedule();
  check(schedule.reorder({"n", "m"}));
  EXPECT_EQ(take(schedule.partition("n", 3072)), std::pair("n"s, "n_rest"s));
  check(schedule.launch("n_rest"));

  tile_columns_first(schedule, 128, 192);
  take(schedule.split("k", 64));
  take(schedule.split("m_outer", 16));
  take(schedule.split("m_inner_S0", 64));
  check(schedule.reorder({"m_outer_outer", "n_outer", "m_outer_inner"}));
  check(schedule.reorder({"k_outer", "m_inner_S0_outer", "m_inner_S0_inner", "n_inner_S0", "k_inner"}));
  check(schedule.tensorize("m_inner_S0_outer", TileOperation::kWgmma));
  for (const char* loop : {"m_outer_outer", "n_outer", "m_outer_inner"}) check(schedule.bind(loop, Axis::kBlockX));
  check(schedule.persist("m_outer_inner", 2));
  fetch_by_boxes(schedule, "m_outer_inner", 4);
  check(schedule.promote("C", "m_outer_inner", Memory::kShared, Fetch::kBoxes));

  tile_columns_first(schedule, 256, 128, "_rest");
  take(schedule.split("k_rest", 64));
  take(schedule.split("n_rest_outer", 2));
  multiply_across(schedule, {"m_rest_outer", "n_rest_outer_outer", "n_rest_outer_inner"}, "_rest");
  fetch_by_boxes(schedule, "n_rest_outer_inner", 4, "k_rest_outer");
  check(schedule.promote("C", "n_rest_outer_inner", Memory::kShared, Fetch::kBoxes));
  expect_default_text(schedule, k4096);
}

/// As one launch.
TEST(ScheduleTiles, AProductOf4096AtOnce) {
  const Def whole = {kHalves, k4096.sizes, {.split_results = {4096, 4096}}};
  Schedule schedule = k4096.schedule();
  tile_product(schedule, 256, 128);
  take(schedule.split("k", 64));
  take(schedule.split("n_outer", 16));
  take(schedule.split("n_outer_inner", 2));
  multiply_across(schedule, {"n_outer_outer", "m_outer", "n_outer_inner_outer", "n_outer_inner_inner"});
  fetch_by_boxes(schedule, "n_outer_inner_inner", 4);
  check(schedule.promote("C", "n_outer_inner_inner", Memory::kShared, Fetch::kBoxes));
  expect_default_text(schedule, whole);
}

/// Without a word about results threads store them.
TEST(ScheduleTiles, AProductWhoseThreadsStore) {
  Schedule schedule = Def{kHalves, {{"M", 4096}, {"N", 4096}, {"K", 4096}}}.schedule();
  multiply_by_warpgroups(schedule, 2, Axis::kCluster);
  const std::string text = take(schedule.cuda_text());
  EXPECT_NE(text.find("*(uint4*)&C["), std::string::npos);
  EXPECT_EQ(text.find("store_box("), std::string::npos);
}

TEST(ScheduleTiles, OrdersOfBlocks) {
  Schedule schedule = Def{kHalves, {{"M", 4096}, {"N", 4096}, {"K", 4096}}}.schedule();
  multiply_by_warpgroups(schedule, 16);
  const std::string text = take(schedule.cuda_text());
  EXPECT_NE(text.find("const int m_block = (block_x / 256 * 16 + block_x % 16) * 128;\n"
                      "  const int n_block = block_x / 16 % 16 * 256;\n"),
            std::string::npos)
      << text;
}

/// What tiles have beyond the results is not stored, whatever the order of blocks.
TEST(ScheduleTiles, TilesBeyondTheResults) {
  for (const int64_t group : {0, 2}) {
    Schedule schedule = Def{kHalves, {{"M", 200}, {"N", 264}, {"K", 72}}}.schedule();
    multiply_by_warpgroups(schedule, group);
    check(schedule.check());
  }
}

TEST(ScheduleTiles, ElementsOfThreads) {
  const Def def = {"def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) * sigmoid(B(i)) }", {{"N", 1000000}}};
  Schedule schedule = def.schedule();
  take(schedule.split("i", 1024));
  take(schedule.split("i_inner", 4));
  check(schedule.tensorize("i_inner_outer", TileOperation::kPointwise));
  check(schedule.bind("i_outer", Axis::kBlockX));
  check(schedule.bind("i_inner_outer", Axis::kThreadX));
  check(schedule.vectorize("i_inner_inner"));
  expect_default_text(schedule, def);
}

TEST(ScheduleTiles, RowsOfThreads) {
  const Def def = {R"(
def f(float(N,D) I) -> (O) {
  m(n) max=! I(n,d)
  s(n) +=! exp(I(n,d) - m(n))
  O(n,d) = exp(I(n,d) - m(n)) / s(n)
})",
                   {{"N", 4096}, {"D", 1000}}};
  Schedule schedule = def.schedule();
  take(schedule.split("n", 4));
  for (const std::string d : {"d", "d_1", "d_2"}) {
    take(schedule.split(d, 256));
    take(schedule.split(d + "_inner", 4));
  }
  check(schedule.tensorize("n_inner", TileOperation::kReduce));
  check(schedule.bind("n_outer", Axis::kBlockX));
  check(schedule.bind("n_inner", Axis::kThreadY));
  for (const std::string d : {"d", "d_1", "d_2"}) {
    check(schedule.bind(d + "_inner_outer", Axis::kThreadX));
    check(schedule.vectorize(d + "_inner_inner"));
  }
  check(schedule.promote("I", "n_inner", Memory::kRegisters));
  expect_default_text(schedule, def);
}

// --- what is refused ------------------------------------------------------------------------------------------------

TEST(ScheduleTiles, NoTileOfACpuOrAStrictRequest) {
  Schedule of_cpu = take(Schedule::create(kHalves, {.sizes = {{"M", 512}, {"N", 512}, {"K", 512}}}));
  EXPECT_EQ(error_of(of_cpu.tensorize("m", TileOperation::kWgmma)),
            "error: a CPU has no tile operations: unroll and vectorize loops\n");
  Schedule strict = Def{kHalves, {{"M", 512}, {"N", 512}, {"K", 512}}, {.strict = true}}.schedule();
  EXPECT_EQ(error_of(strict.tensorize("m", TileOperation::kWgmma)),
            "error: cannot make 'm' a tile: the request is strict, its order is that of the source\n");
}

TEST(ScheduleTiles, NoProductIsNoTile) {
  Schedule schedule = Def{"def f(float(N) A) -> (C) { C(i) = 2 * A(i) }", {{"N", 1024}}}.schedule();
  take(schedule.split("i", 256));
  EXPECT_EQ(error_of(schedule.tensorize("i_inner", TileOperation::kFma)),
            "error: S0 begins no product that reads its operands often enough\n");
  EXPECT_EQ(error_of(schedule.tensorize("i_inner", TileOperation::kReduce)),
            "error: there is no reduction inside of the shared loops\n");
  EXPECT_EQ(error_of(schedule.promote("A", "i_outer", Memory::kShared, Fetch::kBoxes)),
            "error: boxes of 'A' come to a tile operation: tensorize a loop below 'i_outer' first\n");
  check(schedule.bind("i_inner", Axis::kWarpX));
  EXPECT_EQ(error_of(schedule.compile()), "error: 'i_inner' is on warp.x, which only loops of a tile operation are\n");
}

/// Results in shared memory are those of a block, and boxes of wgmma store them.
TEST(ScheduleTiles, WhereResultsAreStaged) {
  Schedule schedule = Def{kHalves, {{"M", 4096}, {"N", 4096}, {"K", 4096}}}.schedule();
  multiply_by_warpgroups(schedule, 2, Axis::kCluster);
  EXPECT_EQ(error_of(schedule.promote("C", "n_outer", Memory::kShared, Fetch::kBoxes)),
            "error: results are those of a block: promote 'C' at 'm_outer_inner', not at 'n_outer'\n");
  EXPECT_EQ(error_of(schedule.promote("C", "m_outer_inner", Memory::kShared)), "error: boxes of wgmma store 'C'\n");
  check(schedule.promote("C", "m_outer_inner", Memory::kShared, Fetch::kBoxes));
  EXPECT_NE(take(schedule.cuda_text()).find("store_box("), std::string::npos);
}

/// Two statements of which a tile has one.
TEST(ScheduleTiles, ATileHasTheWholeLaunch) {
  Schedule schedule = Def{
      "def f(float(M,K) A, float(K,N) B) -> (C, D) { C(m,n) +=! A(m,k) * B(k,n)\n D(m,k) = A(m,k) }",
      {{"M", 512},
       {"N", 512},
       {"K", 512}}}.schedule();
  EXPECT_EQ(error_of(schedule.tensorize("k", TileOperation::kFma)),
            "error: one tile has S0_init, S0, but the launch runs S0_init, S0, S1\n");
}

TEST(ScheduleTiles, WhatWarpgroupsDoNot) {
  const Def def = {kHalves, {{"M", 512}, {"N", 512}, {"K", 512}}};
  Schedule schedule = def.schedule();
  tile_product(schedule, 100, 256);
  take(schedule.split("k", 64));
  check(schedule.reorder({"k_outer", "m_inner_S0", "n_inner_S0", "k_inner"}));
  EXPECT_EQ(error_of(schedule.tensorize("m_inner_S0", TileOperation::kWgmma)),
            "error: no tile of 100 x 256 x 64 by wgmma: warpgroups have no such rows and columns\n");
  EXPECT_EQ(error_of(schedule.tensorize("m_inner", TileOperation::kWgmma)),
            "error: 'm_inner' does not stand above S0\n");
}

TEST(ScheduleTiles, WhichBlocksPersist) {
  Schedule plain = k4096.schedule();
  EXPECT_EQ(error_of(plain.persist("m")),
            "error: only blocks of a tile operation persist: tensorize a loop below 'm' first\n");
  Schedule schedule = k4096.schedule();
  tile_product(schedule, 256, 128);
  take(schedule.split("k", 64));
  take(schedule.split("m_inner_S0", 64));
  check(schedule.reorder({"k_outer", "m_inner_S0_outer", "m_inner_S0_inner", "n_inner_S0", "k_inner"}));
  Schedule by_warps = schedule, in_cluster = schedule;
  check(by_warps.tensorize("m_inner_S0_outer", TileOperation::kMma));
  EXPECT_EQ(error_of(by_warps.persist("n_outer")), "error: 'n_outer' cannot persist; only products by wgmma can\n");
  check(schedule.tensorize("m_inner_S0_outer", TileOperation::kWgmma));
  EXPECT_EQ(error_of(schedule.persist("m_outer")),
            "error: blocks persist at the innermost loop on them, which is 'n_outer' and not 'm_outer'\n");
  EXPECT_EQ(error_of(schedule.persist("n_outer", 3)), "error: a block has 1 or 2 teams; it cannot have 3\n");
  EXPECT_EQ(error_of(schedule.persist("n_outer", 2)),
            "error: no tile of 256 x 128 x 64 by wgmma: a warpgroup that takes turns has no more than 128 rows\n");
  check(schedule.persist("n_outer"));
  EXPECT_EQ(error_of(schedule.persist("n_outer")), "error: the blocks of 'n_outer' persist already\n");
  for (const char* loop : {"m_outer", "n_outer"}) check(schedule.bind(loop, Axis::kBlockX));
  check(schedule.bind("m_inner_S0_outer", Axis::kWarpgroup));
  fetch_by_boxes(schedule, "n_outer", 4);
  take(in_cluster.split("n_outer", 2));
  check(in_cluster.tensorize("m_inner_S0_outer", TileOperation::kWgmma));
  check(in_cluster.bind("n_outer_inner", Axis::kCluster));
  EXPECT_EQ(error_of(in_cluster.persist("n_outer_inner")),
            "error: 'n_outer_inner' is on a cluster, whose blocks have one tile each: none persist\n");
  const std::string text = take(schedule.cuda_text());
  EXPECT_NE(text.find("for (int tile = block_x; tile < 512; tile += 132)"), std::string::npos) << text;
}

TEST(ScheduleTiles, WhatIsLeftToSay) {
  const Def def = {kHalves, {{"M", 4096}, {"N", 4096}, {"K", 4096}}};
  Schedule schedule = def.schedule();
  tile_product(schedule, 128, 256);
  take(schedule.split("k", 64));
  take(schedule.split("m_inner_S0", 64));
  check(schedule.reorder({"k_outer", "m_inner_S0_outer", "m_inner_S0_inner", "n_inner_S0", "k_inner"}));
  check(schedule.tensorize("m_inner_S0_outer", TileOperation::kWgmma));
  EXPECT_EQ(error_of(schedule.split("m_outer", 2)),
            "error: the launch of 'm_outer' has the tile 'm_inner_S0_outer'; its loop stays as it is\n");
  EXPECT_EQ(error_of(schedule.unroll("k_inner")),
            "error: 'k_inner' is unrolled; a product lays its tile's loops out by itself\n");
  EXPECT_EQ(error_of(schedule.compile()), "error: operands are in shared memory: promote 'A' there at 'k_outer'\n");
  EXPECT_EQ(error_of(schedule.bind("n_outer", Axis::kBlockY)),
            "error: 'n_outer' is on block.y; blocks of warpgroups are on block.x\n");
  EXPECT_EQ(error_of(schedule.bind("k_outer", Axis::kBlockX)),
            "error: cannot run iterations of 'k_outer' at once: S0[m = 0, n = 0, k = 0] and S0[m = 0, n = 0, k = 64] "
            "must not (reduction dependence)\n");
  EXPECT_EQ(error_of(schedule.bind("n_outer", Axis::kCluster)), "error: a cluster has 16 blocks; it may have 8\n");
  EXPECT_EQ(error_of(schedule.bind("m_inner_S0_inner", Axis::kWarpgroup)),
            "error: 'm_inner_S0_inner' has 64 iterations in steps of 1; along 'm' there are 2 warpgroups in steps of "
            "64\n");
  EXPECT_EQ(error_of(schedule.promote("A", "k_outer", Memory::kShared)),
            "error: wgmma takes operands that come in boxes; 'A' comes in vectors\n");
  EXPECT_EQ(error_of(schedule.promote("A", "n_outer", Memory::kShared, Fetch::kBoxes)),
            "error: operands come for each tile: promote 'A' at 'k_outer', not at 'n_outer'\n");
  EXPECT_EQ(error_of(schedule.promote("C", "n_outer", Memory::kRegisters)), "error: a product has no sums in 'C'\n");
  EXPECT_EQ(error_of(schedule.promote("C_sum", "m_outer", Memory::kRegisters)),
            "error: sums are those of a block: promote 'C_sum' at 'n_outer', not at 'm_outer'\n");
  check(schedule.promote("A", "k_outer", Memory::kShared, Fetch::kBoxes));
  check(schedule.stage("A", "k_outer", 4));
  EXPECT_EQ(error_of(schedule.stage("A", "k_outer", 8)), "error: cannot stage 'A': 'A' has 4 stages over 'k_outer'\n");
  check(schedule.promote("B", "k_outer", Memory::kShared, Fetch::kBoxes));
  EXPECT_EQ(error_of(schedule.compile()), "error: sums are in registers: promote 'C_sum' there at 'n_outer'\n");
  check(schedule.promote("C_sum", "n_outer", Memory::kRegisters));
  EXPECT_EQ(error_of(schedule.compile()),
            "error: no loop over 'm' is bound to warpgroup: there are 2 in steps of 64\n");
  check(schedule.bind("m_inner_S0_outer", Axis::kWarpgroup));
  EXPECT_EQ(error_of(schedule.compile()),
            "error: 'm_outer' stands above the tile 'm_inner_S0_outer' and is not bound to blocks\n");
  check(schedule.bind("m_outer", Axis::kBlockX));
  check(schedule.bind("n_outer", Axis::kBlockX));
  EXPECT_EQ(error_of(schedule.compile()), "error: all operands have 4 stages; 'B' has 1\n");
  check(schedule.stage("B", "k_outer", 4));
  EXPECT_NE(take(schedule.cuda_text()).find("multiply_f16_m64n256k64_kn(C_sum_sum, "), std::string::npos);
}

/// Loops count from 0 where ranges do not, and parts of loops from where they begin.
TEST(ScheduleTiles, RangesThatBeginElsewhere) {
  const Def def = {"def f(float(M,N) A) -> (C) { C(m,n) = A(m,n) + 1 where m in 8:64, n in 0:1024 }",
                   {{"M", 64}, {"N", 1024}}};
  Schedule schedule = def.schedule();
  take(schedule.split("n", 4));
  check(schedule.tensorize("n_outer", TileOperation::kPointwise));
  Schedule parts = def.schedule();
  take(parts.partition("m", 20));
  check(parts.launch("m_rest"));
  take(parts.split("n_rest", 4));
  check(parts.tensorize("n_rest_outer", TileOperation::kPointwise));
}

TEST(ScheduleTiles, LoopsOfThreadsAreThoseOfThePlan) {
  const Def def = {"def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) }", {{"N", 1000000}}};
  Schedule schedule = def.schedule();
  take(schedule.split("i", 1024));
  take(schedule.split("i_inner", 4));
  check(schedule.tensorize("i_inner_outer", TileOperation::kPointwise));
  EXPECT_EQ(error_of(schedule.compile()), "error: no loop of the tile 'i_inner_outer' is bound to threads\n");
  check(schedule.bind("i_inner_outer", Axis::kThreadX));
  EXPECT_EQ(error_of(schedule.compile()),
            "error: 'i_outer' stands above the tile 'i_inner_outer' and is not bound to blocks\n");
  Schedule other = schedule;
  check(other.bind("i_outer", Axis::kBlockY));
  EXPECT_EQ(error_of(other.compile()), "error: 'i_outer' is on block.y; blocks along 'i' are on block.x\n");
  check(schedule.bind("i_outer", Axis::kBlockX));
  EXPECT_EQ(error_of(schedule.compile()),
            "error: along 'i' threads move vectors of 4 neighbours: vectorize such a loop\n");
  check(schedule.vectorize("i_inner_inner"));
  expect_default_text(schedule, def);
}

TEST(ScheduleTiles, RowsStayWhereTheyAreHeld) {
  const Def def = {"def f(float(N,D) I) -> (O) { s(n) +=! I(n,d)\n O(n,d) = I(n,d) / s(n) }",
                   {{"N", 4096}, {"D", 1024}}};
  Schedule schedule = def.schedule();
  take(schedule.split("n", 4));
  for (const std::string d : {"d", "d_1"}) {
    take(schedule.split(d, 256));
    take(schedule.split(d + "_inner", 4));
  }
  check(schedule.tensorize("n_inner", TileOperation::kReduce));
  check(schedule.bind("n_outer", Axis::kBlockX));
  check(schedule.bind("n_inner", Axis::kThreadY));
  check(schedule.bind("d_inner_outer", Axis::kThreadX));
  check(schedule.vectorize("d_inner_inner"));
  EXPECT_EQ(error_of(schedule.compile()), "error: no loop over 'd' is bound to thread.x: there are 64 in steps of 4\n");
  check(schedule.bind("d_1_inner_outer", Axis::kThreadX));
  check(schedule.vectorize("d_1_inner_inner"));
  EXPECT_EQ(error_of(schedule.compile()), "error: rows of 'I' stay in registers: promote it there at 'n_inner'\n");
  Schedule shared = schedule;
  check(shared.promote("I", "n_inner", Memory::kShared));
  EXPECT_EQ(error_of(schedule.promote("I", "n_outer", Memory::kShared)),
            "error: rows are those of a tile: promote 'I' at 'n_inner', not at 'n_outer'\n");
  take(shared.compile());
  check(schedule.promote("I", "n_inner", Memory::kRegisters));
  expect_default_text(schedule, def);
}

}  // namespace
}  // namespace tc::api
