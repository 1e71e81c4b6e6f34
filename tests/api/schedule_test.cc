#include "tc/api/schedule.h"

#include <gtest/gtest.h>

#include "tests/api/tensors.h"

namespace tc::api {
namespace {

using testing::elements_of;
using testing::error_of;
using testing::floats;
using testing::take;
using testing::tensor_of;

constexpr const char* kMatmul = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";

Schedule matmul(int64_t m, int64_t n, int64_t k) {
  return take(Schedule::create(kMatmul, {.sizes = {{"M", m}, {"N", n}, {"K", k}}, .backend = Backend::kSimulator}));
}

std::vector<float> small_integers(int64_t count, int64_t step) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<float>(i * step % 11 - 5));
  return result;
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

void check(const Result<void>& result) { EXPECT_TRUE(result) << result.error().to_string(); }

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

TEST(Schedule, ACpuHasNoBlocks) {
  EXPECT_EQ(error_of(Schedule::create(kMatmul, {.sizes = {{"M", 4}, {"N", 4}, {"K", 4}}})),
            "error: a schedule of blocks and threads is for a GPU or the simulator\n");
}

/// Tiles that leave parts at the edges, with every way to fill shared memory.
TEST(Schedule, SharedMemoryAtTheEdges) {
  for (const Fetch fetch : {Fetch::kOneThread, Fetch::kCooperative, Fetch::kVectorized}) {
    Schedule schedule = matmul(21, 36, 20);
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
    check(schedule.promote("A", "k_outer", Memory::kShared, fetch));
    check(schedule.promote("B", "k_outer", Memory::kShared, fetch));
    EXPECT_EQ(error_of(schedule.promote("A", "k_inner", Memory::kShared)),
              "error: 'k_inner' is run by threads; a buffer stands above what is on threads\n");
    expect_product(schedule, 21, 36, 20);
  }
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
