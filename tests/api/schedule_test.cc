#include "tc/api/schedule.h"

#include <gtest/gtest.h>

#include "tests/api/scheduled.h"

namespace tc::api {
namespace {

using testing::check;
using testing::elements_of;
using testing::error_of;
using testing::expect_same;
using testing::floats;
using testing::small_integers;
using testing::take;
using testing::tensor_of;

constexpr const char* kMatmul = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";

Schedule matmul(int64_t m, int64_t n, int64_t k) {
  return take(Schedule::create(kMatmul, {.sizes = {{"M", m}, {"N", n}, {"K", k}}, .backend = Backend::kSimulator}));
}

/// Runs the schedule's kernel, and compares every element.
void expect_product(const Schedule& schedule, int64_t m, int64_t n, int64_t depth) {
  const std::vector<float> a = small_integers(m * depth, 7), b = small_integers(depth * n, 3);
  std::vector<Tensor> inputs;
  inputs.push_back(tensor_of<float>(floats({m, depth}), a));
  inputs.push_back(tensor_of<float>(floats({depth, n}), b));
  const CompiledKernel kernel = take(schedule.compile());
  std::vector<Tensor> outputs = take(kernel.allocate_outputs());
  const Result<void> done = kernel.run(inputs, outputs);
  ASSERT_TRUE(done) << done.error().to_string();
  std::vector<float> expected(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < n; ++j) {
        expected[static_cast<size_t>(i * n + j)] +=
            a[static_cast<size_t>(i * depth + k)] * b[static_cast<size_t>(k * n + j)];
      }
    }
  }
  EXPECT_EQ(elements_of<float>(outputs[0]), expected) << take(schedule.tile_text());
}

TEST(Schedule, LoopsAreNamedAsTheirIndices) {
  Schedule schedule = matmul(32, 32, 32);
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i", "j", "k"}));
  EXPECT_EQ(take(schedule.split("k", 8)), (Schedule::Loops{"k_outer", "k_inner"}));
  EXPECT_EQ(take(schedule.tile({"i", "j"}, {4, 8})),
            (std::vector<std::string>{"i_outer", "j_outer", "i_inner", "j_inner"}));
  check(schedule.distribute("j_inner"));
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i_outer", "j_outer", "i_inner", "j_inner_S0_init", "j_inner",
                                                        "k_outer", "k_inner"}));
  EXPECT_EQ(take(schedule.fuse("i_outer", "j_outer")), "i_outer_j_outer");
  expect_product(schedule, 32, 32, 32);
}

TEST(Schedule, RefusalsNameTwoInstancesAndChangeNothing) {
  Schedule schedule = matmul(4, 4, 4);
  EXPECT_EQ(error_of(schedule.bind("k", Axis::kThreadX)),
            "error: cannot run iterations of 'k' at once: S0[i = 0, j = 0, k = 0] and S0[i = 0, j = 0, k = 1] must not "
            "(reduction dependence)\n");
  EXPECT_EQ(error_of(schedule.split("kk", 4)), "error: there is no loop 'kk'; did you mean 'k'?\n");
  EXPECT_EQ(error_of(schedule.split("k", 0)), "error: cannot split 'k' by 0\n");
  EXPECT_EQ(error_of(schedule.reorder({"k", "j"})), "error: cannot reorder k, j: below 'j' stands no single loop\n");
  EXPECT_EQ(error_of(schedule.promote("D", "i", Memory::kShared)), "error: there is no tensor 'D'\n");
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i", "j", "k"}));
  check(schedule.bind("i", Axis::kBlockX));
  EXPECT_EQ(error_of(schedule.split("i", 2)), "error: 'i' is bound; its loop stays as it is\n");
  expect_product(schedule, 4, 4, 4);
}

TEST(Schedule, AnOrderThatADependenceForbidsIsRefused) {
  Schedule schedule = take(
      Schedule::create("def f(float(N) A) -> (T, B) { T(i) = A(i)  B(i) +=! T(i + k) where i in 0:N - 2, k in 0:3 }",
                       {.sizes = {{"N", 12}}, .backend = Backend::kSimulator}));
  const std::vector<std::string> loops = schedule.loops();
  ASSERT_EQ(loops.size(), 3U);
  check(schedule.bind(loops[0], Axis::kThreadX));
  const Result<void> second = schedule.bind(loops[2], Axis::kThreadX);
  ASSERT_FALSE(second);
  EXPECT_EQ(error_of(second),
            "error: cannot run iterations of 'k' at once: S1[i = 0, k = 0] and S1[i = 0, k = 1] must not (reduction "
            "dependence)\n");
}

/// Blocks of 8 x 16 results that go through k in steps of 8.
void tile_and_bind(Schedule& schedule) {
  take(schedule.tile({"i", "j"}, {8, 16}));
  for (const char* loop : {"j_inner", "i_inner"}) check(schedule.distribute(loop));
  take(schedule.split("k", 8));
  check(schedule.reorder({"k_outer", "i_inner", "j_inner", "k_inner"}));
  check(schedule.bind("i_outer", Axis::kBlockY));
  check(schedule.bind("j_outer", Axis::kBlockX));
  for (const std::string part : {"", "_S0_init"}) {
    check(schedule.bind("i_inner" + part, Axis::kThreadY));
    check(schedule.bind("j_inner" + part, Axis::kThreadX));
  }
}

/// Tiles that leave parts at the edges, with every way to fill shared memory.
TEST(Schedule, SharedMemoryAtTheEdges) {
  for (const Fetch fetch : {Fetch::kOneThread, Fetch::kCooperative, Fetch::kVectorized}) {
    Schedule schedule = matmul(21, 36, 20);
    tile_and_bind(schedule);
    check(schedule.promote("A", "k_outer", Memory::kShared, fetch));
    check(schedule.promote("B", "k_outer", Memory::kShared, fetch));
    EXPECT_EQ(error_of(schedule.promote("A", "k_inner", Memory::kShared)),
              "error: 'k_inner' is run by threads; a buffer stands above what is on threads\n");
    expect_product(schedule, 21, 36, 20);
  }
}

/// Copies run ahead of the loop by every number of steps, fewer and more than it has.
TEST(Schedule, StagedCopies) {
  for (const auto& [depth, stages] : std::vector<std::pair<int64_t, int64_t>>{{3, 2}, {20, 4}, {40, 2}, {40, 3}}) {
    Schedule schedule = matmul(21, 36, depth);
    tile_and_bind(schedule);
    for (const char* tensor : {"A", "B"}) {
      check(schedule.promote(tensor, "k_outer", Memory::kShared));
      check(schedule.stage(tensor, "k_outer", stages));
    }
    expect_product(schedule, 21, 36, depth);
  }
}

TEST(Schedule, WhatIsStagedAndNot) {
  Schedule schedule = matmul(16, 16, 64);
  tile_and_bind(schedule);
  EXPECT_EQ(error_of(schedule.stage("A", "k_outer", 2)), "error: 'A' is not held in shared memory below 'k_outer'\n");
  check(schedule.promote("A", "k_outer", Memory::kShared));
  check(schedule.promote("B", "k_outer", Memory::kShared));
  check(schedule.promote("B", "j_outer", Memory::kShared));
  EXPECT_EQ(error_of(schedule.stage("A", "k_outer", 9)), "error: cannot stage 'A': 9 stages; there may be 2 to 8\n");
  check(schedule.stage("A", "k_outer", 3));
  EXPECT_EQ(error_of(schedule.stage("B", "k_outer", 2)), "error: cannot stage 'B': 'A' has 3 stages over 'k_outer'\n");
  EXPECT_EQ(error_of(schedule.stage("B", "j_outer", 2)),
            "error: cannot stage 'B': the iterations of 'j_outer' run at once\n");
}

TEST(Schedule, WhatTheLaunchWritesIsNotStaged) {
  Schedule schedule =
      take(Schedule::create("def f(float(N,M) A) -> (T, B) { T(i,j) = A(i,j) + 1  B(i,j) = T(i,j) * T(i,j) }",
                            {.sizes = {{"N", 4}, {"M", 8}}, .backend = Backend::kSimulator}));
  ASSERT_EQ(schedule.loops(), (std::vector<std::string>{"i", "j"}));
  check(schedule.bind("j", Axis::kThreadX));
  check(schedule.promote("T", "i", Memory::kShared));
  EXPECT_EQ(error_of(schedule.stage("T", "i", 2)),
            "error: cannot stage 'T': S1[i = 0, j = 0] reads what S0[i = 0, j = 0] writes in the same launch\n");
}

constexpr const char* kRowSum = "def row_sum(float(N,M) x) -> (s) { s(i) +=! x(i,k) }";

/// Parts that fill the reduction and that do not, by threads of a block.
TEST(Schedule, ReductionSplitAcrossThreads) {
  for (const Part part : {Part::kChunk, Part::kCyclic}) {
    for (const int64_t length : {64, 50, 9}) {
      const std::map<std::string, int64_t> sizes = {{"N", 3}, {"M", length}};
      Schedule schedule = take(Schedule::create(kRowSum, {.sizes = sizes, .backend = Backend::kSimulator}));
      const ReductionLoops made = take(schedule.split_reduction("k", 8, part));
      EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i", "k_part", "k_rest", "k_together"}));
      check(schedule.bind("i", Axis::kBlockX));
      check(schedule.bind(made.part, Axis::kThreadX));
      EXPECT_EQ(made.partial, "s_parts");
      check(schedule.promote(made.partial, "i", Memory::kShared));
      expect_same(schedule, kRowSum, sizes);
    }
  }
}

TEST(Schedule, CountsWhatARunDoes) {
  const Schedule schedule =
      take(Schedule::create("def f(int32 a, float b, float(N) x) -> (y) { y(i) = b * x(i) * float(a) }",
                            {.sizes = {{"N", 4}}, .backend = Backend::kSimulator}));
  std::vector<Tensor> inputs, outputs, wrong;
  inputs.push_back(tensor_of<float>(floats({4}), {1, 2, 3, 4}));
  outputs.push_back(tensor_of<float>(floats({4}), {0, 0, 0, 0}));
  wrong.push_back(tensor_of<float>(floats({5}), {0, 0, 0, 0, 0}));
  const std::vector<Scalar> scalars = {2.0, uint64_t{1} << 63};  // as a call takes them
  const Counters counters = take(schedule.count(inputs, outputs, scalars));
  EXPECT_EQ(counters.global_bytes_read, 16);
  EXPECT_EQ(counters.global_bytes_written, 16);
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{0x1p64F, 0x1p65F, 0x1.8p65F, 0x1p66F}));
  EXPECT_EQ(error_of(schedule.count(inputs, wrong, scalars)), "error: 'y' is float32(5); the def takes float32(4)\n");
  EXPECT_EQ(error_of(schedule.count(inputs, outputs, std::vector<Scalar>{2.5, 1})),
            "error: scalar 'a' is 2.5; int32 holds integers from -2147483648 to 2147483647\n");
  const std::vector<Tensor> none(1);
  EXPECT_EQ(error_of(schedule.count(none, outputs, scalars)), "error: 'x' is empty\n");
}

/// Neighbours come in parts of one length: of 7 parts of 10 iterations, 5 have all.
TEST(Schedule, PartsOfAReductionAsManyAsThereAre) {
  const std::map<std::string, int64_t> sizes = {{"N", 3}, {"M", 10}};
  for (const auto& [part, parts] : {std::pair(Part::kChunk, 5), std::pair(Part::kCyclic, 7)}) {
    Schedule schedule = take(Schedule::create(kRowSum, {.sizes = sizes, .backend = Backend::kSimulator}));
    const ReductionLoops made = take(schedule.split_reduction("k", 7, part));
    EXPECT_EQ(made.parts, parts);
    check(schedule.bind("i", Axis::kBlockX));
    check(schedule.bind(made.part, Axis::kThreadX));
    check(schedule.promote(made.partial, "i", Memory::kShared));
    const std::string text = take(schedule.tile_text());
    EXPECT_NE(text.find(fmt::format("block ({},1,1)", parts)), std::string::npos) << text;
    expect_same(schedule, kRowSum, sizes);
  }
}

/// Partial results by blocks of one launch, added up by those of another.
TEST(Schedule, ReductionSplitAcrossBlocks) {
  const std::map<std::string, int64_t> sizes = {{"N", 20}, {"M", 50}};
  Schedule schedule = take(Schedule::create(kRowSum, {.sizes = sizes, .backend = Backend::kSimulator}));
  const ReductionLoops made = take(schedule.split_reduction("k", 4));
  check(schedule.distribute("i"));
  EXPECT_EQ(schedule.loops(),
            (std::vector<std::string>{"i_S0_parts_init", "k_part", "k_rest", "i_S0_init", "i", "k_together"}));
  check(schedule.launch("i_S0_init"));
  EXPECT_EQ(error_of(schedule.launch("k_together")),
            "error: no launch can begin at 'k_together'; at the top stand i_S0_parts_init, i_S0_init, i\n");
  check(schedule.reorder({made.part, "i_S0_parts_init"}));
  check(schedule.bind("i_S0_parts_init", Axis::kThreadX));
  check(schedule.bind(made.part, Axis::kBlockX));
  for (const char* loop : {"i_S0_init", "i"}) check(schedule.bind(loop, Axis::kThreadX));
  expect_same(schedule, kRowSum, sizes);
  EXPECT_NE(take(schedule.cuda_text()).find("row_sum_1"), std::string::npos);
}

/// Partial results that shuffles combine; more of them than a warp has lanes, and less.
TEST(Schedule, ReductionByAWarp) {
  for (const int64_t parts : {96, 64, 32}) {
    const std::map<std::string, int64_t> sizes = {{"N", 3}, {"M", 200}};
    Schedule schedule = take(Schedule::create(kRowSum, {.sizes = sizes, .backend = Backend::kSimulator}));
    const ReductionLoops made = take(schedule.split_reduction("k", parts, Part::kCyclic));
    EXPECT_EQ(error_of(schedule.reduce_by_warp(made.part)), "error: 'k_part' is no reduction to one element\n");
    check(schedule.bind("i", Axis::kBlockX));
    check(schedule.bind(made.part, Axis::kThreadX));
    check(schedule.reduce_by_warp(made.together));
    check(schedule.promote(made.partial, "i", Memory::kShared));
    expect_same(schedule, kRowSum, sizes);
    EXPECT_EQ(error_of(schedule.split(made.together, 2)),
              "error: a warp shares 'k_together'; its loop stays as it is\n");
  }
  Schedule narrow = take(Schedule::create(kRowSum, {.sizes = {{"N", 3}, {"M", 64}}, .backend = Backend::kSimulator}));
  check(narrow.bind("i", Axis::kBlockX));
  check(narrow.reduce_by_warp("k"));
  EXPECT_EQ(error_of(narrow.compile()), "error: no warp has 'k': a block has 1 threads in x, no multiple of 32\n");
}

TEST(Schedule, ReductionsThatAreNotSplit) {
  Schedule schedule = matmul(4, 4, 8);
  EXPECT_EQ(error_of(schedule.split_reduction("j", 2)),
            "error: cannot split the reduction over 'j': S0_init, S0 stand below it\n");
  EXPECT_EQ(error_of(schedule.split_reduction("k", 9)),
            "error: cannot split the reduction over 'k' into 9 parts: it has 8 iterations\n");
  take(schedule.split("k", 4));
  EXPECT_EQ(error_of(schedule.split_reduction("k_inner", 2)),
            "error: 'k_inner' does not run over a whole index that S0 reduces over\n");
  Schedule strict = take(Schedule::create(
      kRowSum, {.sizes = {{"N", 4}, {"M", 8}}, .backend = Backend::kSimulator, .mapping = {.strict = true}}));
  EXPECT_EQ(error_of(strict.split_reduction("k", 2)),
            "error: cannot split the reduction over 'k': the request is strict, its order is that of the source\n");
  Schedule twice = take(Schedule::create("def f(float(N,K,L) x) -> (s) { s(i) +=! x(i,k,l) }",
                                         {.sizes = {{"N", 4}, {"K", 8}, {"L", 8}}, .backend = Backend::kSimulator}));
  EXPECT_EQ(error_of(twice.split_reduction("k", 2)),
            "error: cannot split the reduction over 'k': the loops l stand below it; reorder them first\n");
}

constexpr const char* kBiased =
    "def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) { C(i,j) +=! A(i,k) * B(k,j)  C(i,j) = C(i,j) + b(j) }";

/// Each statement under loops of its own.
Schedule apart(const char* text, const std::map<std::string, int64_t>& sizes) {
  Request request{.sizes = sizes, .backend = Backend::kSimulator};
  request.mapping.outer_schedule_options.fusion = options::Fusion::kMin;
  return take(Schedule::create(text, request));
}

/// The rest counts from 0, whatever the loop stands below; each part is bound by itself.
TEST(Schedule, IterationsAreParted) {
  Schedule schedule = matmul(20, 12, 9);
  EXPECT_EQ(take(schedule.partition("j", 8)), (Schedule::Loops{"j", "j_rest"}));
  EXPECT_EQ(take(schedule.to_text()), R"(mm(float32(20,9) A, float32(9,12) B) -> (float32(20,12) C) on sim
for i in 0:20
  for j in 0:8
    S0_init: C(i, j) = 0.0
    for k in 0:9
      S0: C(i, j) += A(i, k) * B(k, j)
  for j_rest in 0:4
    S0_init: C(i, j) = 0.0
    for k_rest in 0:9
      S0: C(i, j) += A(i, k) * B(k, j)
)");
  check(schedule.bind("i", Axis::kBlockX));
  check(schedule.bind("j", Axis::kThreadX));
  expect_product(schedule, 20, 12, 9);
  check(schedule.promote("A", "i", Memory::kShared));
  expect_product(schedule, 20, 12, 9);
  EXPECT_EQ(error_of(schedule.partition("j_rest", 4)),
            "error: cannot partition 'j_rest' at 4: all iterations are before it\n");
  EXPECT_EQ(error_of(schedule.partition("k", 0)), "error: cannot partition 'k' at 0: no iterations are before it\n");
  EXPECT_EQ(error_of(schedule.partition("j", 4)), "error: 'j' is bound; its loop stays as it is\n");
  EXPECT_EQ(error_of(schedule.partition("q", 4)), "error: there is no loop 'q'; there are i, j, k, j_rest, k_rest\n");
}

TEST(Schedule, PartsAreLaunches) {
  Schedule schedule = matmul(20, 12, 9);
  take(schedule.tile({"i", "j"}, {8, 4}));
  EXPECT_EQ(take(schedule.partition("i_outer", 2)), (Schedule::Loops{"i_outer", "i_outer_rest"}));
  EXPECT_EQ(error_of(schedule.partition("i_inner", 8)),
            "error: cannot partition 'i_inner' at 8: all iterations are before it\n");
  check(schedule.launch("i_outer_rest"));
  for (const std::string rest : {"", "_rest"}) {
    check(schedule.bind("i_outer" + rest, Axis::kBlockX));
    check(schedule.bind("i_inner" + rest, Axis::kThreadY));
    check(schedule.bind("j_inner" + rest, Axis::kThreadX));
  }
  expect_product(schedule, 20, 12, 9);
  EXPECT_NE(take(schedule.tile_text()).find("kernel mm_1 grid (1,1,1) block (4,4,1)"), std::string::npos)
      << take(schedule.tile_text());
}

/// What a buffer of one part holds is that part's alone.
TEST(Schedule, PartsHaveBuffersOfTheirOwn) {
  Schedule schedule = matmul(64, 32, 9);
  take(schedule.tile({"i", "j"}, {8, 32}));
  take(schedule.partition("i_outer", 2));
  check(schedule.launch("i_outer_rest"));
  for (const std::string rest : {"", "_rest"}) {
    check(schedule.bind("i_outer" + rest, Axis::kBlockX));
    check(schedule.bind("i_inner" + rest, Axis::kThreadY));
    check(schedule.bind("j_inner" + rest, Axis::kThreadX));
  }
  for (const char* tensor : {"C", "A"}) {
    Schedule held = schedule;
    check(held.promote(tensor, "i_outer_rest", Memory::kShared));
    expect_product(held, 64, 32, 9);
  }
  check(schedule.promote("C", "i_outer_rest", Memory::kRegisters));
  expect_product(schedule, 64, 32, 9);
}

/// What one launch computes for another one stays in memory, also if it is another part of the same statement.
TEST(Schedule, PartsInLaunchesPassValuesOn) {
  constexpr const char* kTwo = "def f(float(N) x) -> (y) { t(i) = 2 * x(i)  y(i) = t(i) + 1 }";
  Schedule schedule = take(Schedule::create(kTwo, {.sizes = {{"N", 64}}, .backend = Backend::kSimulator}));
  check(schedule.distribute("i"));
  take(schedule.partition("i", 32));
  check(schedule.merge("i_S0", "i"));
  check(schedule.launch("i_rest"));
  expect_same(schedule, kTwo, {{"N", 64}});
}

TEST(Schedule, PartsThatAreMergedRunBesideEachOther) {
  Schedule schedule = matmul(64, 3, 2);
  take(schedule.partition("i", 16));
  check(schedule.merge("i", "i_rest"));
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i", "j", "k", "j_rest", "k_rest"}));
  EXPECT_NE(take(schedule.to_text()).find("for i in 0:48\n"), std::string::npos) << take(schedule.to_text());
  check(schedule.bind("i", Axis::kBlockX));
  expect_product(schedule, 64, 3, 2);
}

/// A part of a reduction's iterations is no reduction of all.
TEST(Schedule, SumsInParts) {
  Schedule schedule = matmul(4, 3, 40);
  take(schedule.partition("k", 32));
  expect_product(schedule, 4, 3, 40);
  EXPECT_EQ(error_of(schedule.split_reduction("k", 4)),
            "error: 'k' does not run over a whole index that S0 reduces over\n");
}

TEST(Schedule, NeighboursShareALoop) {
  const std::map<std::string, int64_t> sizes = {{"M", 9}, {"N", 7}, {"K", 5}};
  Schedule schedule = apart(kBiased, sizes);
  ASSERT_EQ(schedule.loops(), (std::vector<std::string>{"i", "j", "i_1", "j_1", "k", "i_2", "j_2"}));
  EXPECT_EQ(error_of(schedule.merge("i", "i_2")),
            "error: cannot merge 'i' and 'i_2': the second does not stand right behind the first\n");
  check(schedule.merge("i", "i_1"));
  check(schedule.merge("i", "i_2"));
  check(schedule.merge("j", "j_1"));
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i", "j", "k", "j_2"}));
  check(schedule.bind("i", Axis::kBlockX));
  check(schedule.bind("j", Axis::kThreadX));
  check(schedule.bind("j_2", Axis::kThreadX));
  expect_same(schedule, kBiased, sizes);
}

/// The first and the last of what a tile needs are done in it.
TEST(Schedule, StatementsSinkIntoATile) {
  const std::map<std::string, int64_t> sizes = {{"M", 9}, {"N", 20}, {"K", 5}};
  Schedule schedule = apart(kBiased, sizes);
  take(schedule.tile({"i_1", "j_1"}, {4, 8}));
  check(schedule.sink("i", "j_1_outer"));
  check(schedule.sink("i_2", "j_1_outer"));
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i_1_outer", "j_1_outer", "i", "j", "i_1_inner", "j_1_inner",
                                                        "k", "i_2", "j_2"}));
  check(schedule.bind("i_1_outer", Axis::kBlockY));
  check(schedule.bind("j_1_outer", Axis::kBlockX));
  for (const char* loop : {"i", "i_1_inner", "i_2"}) check(schedule.bind(loop, Axis::kThreadY));
  for (const char* loop : {"j", "j_1_inner", "j_2"}) check(schedule.bind(loop, Axis::kThreadX));
  expect_same(schedule, kBiased, sizes);
}

constexpr const char* kWindows =
    "def f(float(N) A) -> (T, B) { T(i) = A(i)  B(i) +=! T(i + k) where i in 0:N - 2, k in 0:3 }";

/// Where some iterations of a loop set no element, a register for it would write back what it never got.
TEST(Schedule, NoRegistersWhereALoopMayBeEmpty) {
  Schedule schedule = take(Schedule::create(kWindows, {.sizes = {{"N", 20}}, .backend = Backend::kSimulator}));
  take(schedule.split("k", 1));
  check(schedule.sink("i", "k_inner"));
  check(schedule.distribute("k_inner"));
  take(schedule.split("k_outer", 1));
  expect_same(schedule, kWindows, {{"N", 20}});
  check(schedule.bind("i", Axis::kThreadX));
  EXPECT_EQ(error_of(schedule.promote("T", "k_inner_S0", Memory::kRegisters)),
            "error: cannot hold 'T' in registers: in some iterations of the loops above it is not used\n");
  check(schedule.promote("B", "k_outer_outer", Memory::kRegisters));
  expect_same(schedule, kWindows, {{"N", 20}});
}

/// The lanes of a warp share an iteration of one reduction, and of nothing else.
TEST(Schedule, NothingSinksIntoAReductionByAWarp) {
  constexpr const char* kText = "def f(float(N,M) x) -> (s, t) { t(i) = x(i,0)  s(i) +=! x(i,k)  t(i) += s(i) }";
  Schedule schedule = take(Schedule::create(kText, {.sizes = {{"N", 4}, {"M", 64}}, .backend = Backend::kSimulator}));
  check(schedule.reduce_by_warp("k"));
  EXPECT_EQ(error_of(schedule.sink("S2", "k")), "error: 'k' is no reduction to one element\n");
}

TEST(Schedule, WhatNeighboursNeedOfEachOther) {
  const char* window = "def f(float(N) A) -> (T, B) { T(i) = A(i)  B(i) +=! T(i + k) where i in 0:N - 2, k in 0:3 }";
  Schedule schedule = apart(window, {{"N", 12}});
  ASSERT_EQ(schedule.loops(), (std::vector<std::string>{"i", "i_1", "i_2", "k"}));
  EXPECT_EQ(error_of(schedule.sink("i", "i_1")),
            "error: cannot sink 'i' below 'i_1': S0[i = 0] has nothing to do with it\n");
  check(schedule.merge("i_1", "i_2"));
  EXPECT_EQ(error_of(schedule.merge("i", "i_1")),
            "error: cannot merge 'i' and 'i_1': S0[i = 1] must run before S1[i = 0, k = 1] (flow dependence), and the "
            "schedule does not see to it\n");
  check(schedule.sink("S0", "i_1"));
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i_1", "i", "k"}));
  expect_same(schedule, window, {{"N", 12}});
}

/// Blocks do not wait for each other, launches do.
TEST(Schedule, WhatBlocksNeedOfEachOtherIsForAnotherLaunch) {
  const char* window = "def f(float(N) A) -> (T, B) { T(i) = A(i)  B(i) +=! T(i + k) where i in 0:N - 2, k in 0:3 }";
  Schedule schedule = apart(window, {{"N", 12}});
  check(schedule.merge("i_1", "i_2"));
  for (const char* loop : {"i", "i_1"}) check(schedule.bind(loop, Axis::kBlockX));
  EXPECT_EQ(error_of(schedule.compile()), "error: S1[i = 0, k = 1] in one block needs S0[i = 1] in another\n");
  check(schedule.launch("i_1"));
  expect_same(schedule, window, {{"N", 12}});
}

TEST(Schedule, RegisterTilesAtTheEdges) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{32, 32, 16}, {21, 36, 20}, {5, 7, 3}}) {
    Schedule schedule = matmul(m, n, k);
    take(schedule.tile({"i", "j"}, {16, 16}));
    const std::vector<std::string> inner = take(schedule.tile({"i_inner", "j_inner"}, {2, 4}));
    for (auto loop = inner.rbegin(); loop != inner.rend(); ++loop) check(schedule.distribute(*loop));
    take(schedule.split("k", 8));
    check(schedule.reorder({"k_outer", inner[0], inner[1], "k_inner", inner[2], inner[3]}));
    check(schedule.bind("i_outer", Axis::kBlockY));
    check(schedule.bind("j_outer", Axis::kBlockX));
    for (const std::string part : {"", "_S0_init"}) {
      check(schedule.bind(inner[0] + part, Axis::kThreadY));
      check(schedule.bind(inner[1] + part, Axis::kThreadX));
      check(schedule.unroll(inner[2] + part));
      check(schedule.unroll(inner[3] + part));
    }
    check(schedule.promote("A", "k_outer", Memory::kShared));
    check(schedule.promote("B", "k_outer", Memory::kShared));
    check(schedule.promote("C", "j_outer", Memory::kRegisters));
    expect_product(schedule, m, n, k);
  }
}

}  // namespace
}  // namespace tc::api
