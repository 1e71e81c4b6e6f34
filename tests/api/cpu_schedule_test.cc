#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tc/api/schedule.h"
#include "tests/api/scheduled.h"

/// Schedules of a CPU.
namespace tc::api {
namespace {

using testing::check;
using testing::error_of;
using testing::expect_same;
using testing::take;

constexpr const char* kMatmul = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
constexpr const char* kRowSum = "def row_sum(float(N,M) x) -> (s) { s(i) +=! x(i,k) }";

Schedule schedule_of(const char* text, const std::map<std::string, int64_t>& sizes) {
  return take(Schedule::create(text, {.sizes = sizes}));
}

/// Tiles of 4 x 16 results in registers, that go through k.
void tile_into_registers(Schedule& schedule) {
  const std::vector<std::string> loops = take(schedule.tile({"i", "j"}, {4, 16}));
  for (const char* loop : {"j_inner", "i_inner"}) check(schedule.distribute(loop));
  check(schedule.reorder({"k", "i_inner", "j_inner"}));
  take(schedule.split("j_inner", 8));
  check(schedule.unroll("i_inner"));
  check(schedule.unroll("j_inner_outer"));
  check(schedule.vectorize("j_inner_inner"));
  check(schedule.parallelize("i_outer"));
  check(schedule.promote("C", "j_outer", Memory::kRegisters));
}

TEST(CpuSchedule, ShowsItsLoopNest) {
  Schedule schedule = schedule_of(kMatmul, {{"M", 64}, {"N", 64}, {"K", 32}});
  tile_into_registers(schedule);
  check(schedule.promote("A", "i_outer", Memory::kCache));
  EXPECT_EQ(take(schedule.to_text()),
            "mm(float32(64,32) A, float32(32,64) B) -> (float32(64,64) C) on cpu\n"
            "for i_outer in 0:16  # parallel\n"
            "  buffer A 4 x 32 in the cache\n"
            "  for j_outer in 0:4\n"
            "    buffer C 4 x 16 in registers\n"
            "    for i_inner_S0_init in 0:4\n"
            "      for j_inner_S0_init in 0:16\n"
            "        S0_init: C(i, j) = 0.0\n"
            "    for k in 0:32\n"
            "      for i_inner in 0:4  # unrolled\n"
            "        for j_inner_outer in 0:2  # unrolled\n"
            "          for j_inner_inner in 0:8  # vector\n"
            "            S0: C(i, j) += A(i, k) * B(k, j)\n");
}

/// Tiles that are full, that leave parts at the edges, and that are larger than the whole.
TEST(CpuSchedule, TilesOfAProduct) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{32, 32, 16}, {21, 37, 20}, {3, 7, 1}}) {
    const std::map<std::string, int64_t> sizes = {{"M", m}, {"N", n}, {"K", k}};
    Schedule schedule = schedule_of(kMatmul, sizes);
    tile_into_registers(schedule);
    expect_same(schedule, kMatmul, sizes);
    check(schedule.check());
    if (m > 4) EXPECT_NE(take(schedule.emit("stmt")).find("parallel"), std::string::npos);
  }
}

TEST(CpuSchedule, RefusalsNameTwoInstancesAndChangeNothing) {
  Schedule schedule = schedule_of(kMatmul, {{"M", 100}, {"N", 4}, {"K", 4}});
  EXPECT_EQ(error_of(schedule.parallelize("k")),
            "error: cannot run iterations of 'k' at once: S0[i = 0, j = 0, k = 0] and S0[i = 0, j = 0, k = 1] must not "
            "(reduction dependence)\n");
  EXPECT_EQ(error_of(schedule.vectorize("j")),
            "error: cannot vectorize 'j': the loops k stand below it; reorder them first\n");
  EXPECT_EQ(error_of(schedule.unroll("i")),
            "error: cannot unroll 'i': it has 100 iterations, and may have 64; split it first\n");
  Schedule large = schedule_of(kMatmul, {{"M", 8}, {"N", 64}, {"K", 64}});
  check(large.unroll("i"));
  check(large.unroll("j"));
  EXPECT_EQ(error_of(large.unroll("k")),
            "error: cannot unroll 'k': S0 would be laid out 32768 times, and may be 512\n");
  EXPECT_EQ(error_of(schedule.promote("D", "i", Memory::kCache)), "error: there is no tensor 'D'\n");
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i", "j", "k"}));
  check(schedule.parallelize("i"));
  EXPECT_EQ(error_of(schedule.split("i", 2)), "error: 'i' is parallel; its loop stays as it is\n");
}

TEST(CpuSchedule, VerbsOfTheOtherDevice) {
  Schedule schedule = schedule_of(kMatmul, {{"M", 4}, {"N", 4}, {"K", 4}});
  EXPECT_EQ(error_of(schedule.bind("i", Axis::kBlockX)),
            "error: a CPU has no blocks and threads: parallelize a loop\n");
  EXPECT_EQ(error_of(schedule.launch("i")), "error: a CPU has no launches: what stands first runs first\n");
  EXPECT_EQ(error_of(schedule.reduce_by_warp("k")), "error: a CPU has no warps: vectorize the loop of a reduction\n");
  EXPECT_EQ(error_of(schedule.stage("A", "i", 2)), "error: a CPU has no asynchronous copies to stage\n");
  EXPECT_EQ(error_of(schedule.promote("A", "i", Memory::kShared)),
            "error: a CPU has no shared memory: buffers are in registers or in the cache\n");
  EXPECT_EQ(error_of(schedule.cuda_text()),
            "error: a CPU has no tile program; its stages are schedule, stmt and object\n");
  EXPECT_EQ(error_of(schedule.emit("tile")),
            "error: a schedule of a CPU has no stage 'tile'; there are schedule, stmt and object\n");
  Schedule of_gpu = take(Schedule::create(kMatmul, {.sizes = {{"M", 4}, {"N", 4}, {"K", 4}},  //
                                                    .backend = Backend::kSimulator}));
  EXPECT_EQ(error_of(of_gpu.parallelize("i")), "error: a GPU has blocks and threads: bind 'i' to an axis of these\n");
  EXPECT_EQ(error_of(of_gpu.promote("A", "i", Memory::kCache)),
            "error: a GPU has no buffers in a cache: they are in shared memory or in registers\n");
  EXPECT_EQ(error_of(of_gpu.save("unused")), "error: a cache keeps no kernels of the simulator\n");
}

/// Marks of loops below are those of their copies, too.
TEST(CpuSchedule, IterationsAreParted) {
  constexpr const char* kText = "def f(float(N,M) x) -> (s, y) { s(i) +=! x(i,k)  y(i,k) = x(i,k) - s(i) }";
  const std::map<std::string, int64_t> sizes = {{"N", 10}, {"M", 16}};
  Schedule schedule = take(Schedule::create(kText, {.sizes = sizes}));
  check(schedule.unroll("k"));
  EXPECT_EQ(take(schedule.partition("i", 8)), (Schedule::Loops{"i", "i_rest"}));
  check(schedule.parallelize("i"));
  EXPECT_EQ(take(schedule.to_text()), R"(f(float32(10,16) x) -> (float32(10) s, float32(10,16) y) on cpu
for i in 0:8  # parallel
  S0_init: s(i) = 0.0
  for k in 0:16  # unrolled
    S0: s(i) += x(i, k)
  for k_1 in 0:16
    S1: y(i, k) = x(i, k) - s(i)
for i_rest in 0:2
  S0_init: s(i) = 0.0
  for k_rest in 0:16  # unrolled
    S0: s(i) += x(i, k)
  for k_1_rest in 0:16
    S1: y(i, k) = x(i, k) - s(i)
)");
  expect_same(schedule, kText, sizes);
  EXPECT_EQ(error_of(schedule.partition("i", 4)), "error: 'i' is parallel; its loop stays as it is\n");
}

/// What stands in two loops is laid out in both, and not once for each pair of their iterations.
TEST(CpuSchedule, PartsAreLaidOutOneAfterTheOther) {
  constexpr const char* kText = "def f(float(N,M) x) -> (s) { s(i) +=! x(i,k) }";
  const std::map<std::string, int64_t> sizes = {{"N", 64}, {"M", 64}};
  Schedule schedule = take(Schedule::create(kText, {.sizes = sizes}));
  check(schedule.unroll("k"));
  take(schedule.partition("i", 32));
  take(schedule.partition("i_rest", 16));
  expect_same(schedule, kText, sizes);
}

/// A temporary that two parts use apart is no array of one of them.
TEST(CpuSchedule, PartsOfATemporary) {
  constexpr const char* kText = "def f(float(N) x) -> (y) { t(i) = 2 * x(i)  y(i) = t(i) + 1 }";
  Schedule schedule = take(Schedule::create(kText, {.sizes = {{"N", 20}}}));
  take(schedule.partition(schedule.loops().at(0), 8));
  expect_same(schedule, kText, {{"N", 20}});
}

/// The lanes of a vector that reduces to one element are combined.
TEST(CpuSchedule, VectorsReduce) {
  const std::map<std::string, int64_t> sizes = {{"N", 5}, {"M", 64}};
  Schedule schedule = schedule_of(kRowSum, sizes);
  take(schedule.split("k", 16));
  check(schedule.vectorize("k_inner"));
  expect_same(schedule, kRowSum, sizes);
  EXPECT_NE(take(schedule.emit("stmt")).find("vector_reduce"), std::string::npos);
}

TEST(CpuSchedule, ReductionSplitAcrossCores) {
  const std::map<std::string, int64_t> sizes = {{"N", 3}, {"M", 50}};
  for (const Part part : {Part::kChunk, Part::kCyclic}) {
    Schedule schedule = schedule_of(kRowSum, sizes);
    const ReductionLoops made = take(schedule.split_reduction("k", 4, part));
    check(schedule.parallelize(made.part));
    expect_same(schedule, kRowSum, sizes);
  }
}

/// A strict request keeps the order of every sum.
TEST(CpuSchedule, StrictSumsStayInOrder) {
  constexpr const char* kText = "def f(float(K,L) x) -> (s) { s +=! x(k,l) }";
  Schedule free = schedule_of(kText, {{"K", 8}, {"L", 8}});
  check(free.reorder({"l", "k"}));
  check(free.vectorize("k"));
  Schedule strict = take(Schedule::create(kText, {.sizes = {{"K", 8}, {"L", 8}}, .options = {.strict = true}}));
  EXPECT_EQ(error_of(strict.reorder({"l", "k"})),
            "error: cannot reorder l, k: S0[k = 0, l = 1] must run before S0[k = 1, l = 0] (reduction dependence), and "
            "the schedule does not see to it\n");
  EXPECT_EQ(error_of(strict.vectorize("l")),
            "error: cannot run iterations of 'l' at once: S0[k = 0, l = 0] and S0[k = 0, l = 1] must not (reduction "
            "dependence)\n");
  EXPECT_EQ(error_of(strict.split_reduction("l", 2)),
            "error: cannot split the reduction over 'l': the request is strict, its order is that of the source\n");
}

/// A temporary whose values stay within an iteration is as large as one of these needs it.
TEST(CpuSchedule, TemporariesShrinkToWhatAnIterationNeeds) {
  constexpr const char* kText = "def f(float(N,M) x) -> (y) { t(i,j) = x(i,j) + 1  y(i,j) = t(i,j) * t(i,j) }";
  const std::map<std::string, int64_t> sizes = {{"N", 6}, {"M", 8}};
  Request request{.sizes = sizes};
  request.options.scheduler.fusion = options::Fusion::kMin;
  Schedule schedule = take(Schedule::create(kText, request));
  EXPECT_NE(take(schedule.emit("stmt")).find("allocate t["), std::string::npos) << take(schedule.emit("stmt"));
  check(schedule.merge("i", "i_1"));
  check(schedule.merge("j", "j_1"));
  EXPECT_EQ(take(schedule.emit("stmt")).find("float32 * 48"), std::string::npos) << take(schedule.emit("stmt"));
  expect_same(schedule, kText, sizes);
}

/// Iterations on several cores do not write back the same element.
TEST(CpuSchedule, BuffersOfCoresDoNotOverlap) {
  Schedule schedule = schedule_of("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }", {{"N", 64}});
  const auto [outer, inner] = take(schedule.split("i", 8));
  check(schedule.reorder({inner, outer}));
  check(schedule.parallelize(inner));
  EXPECT_NE(error_of(schedule.promote("y", inner, Memory::kCache))
                .find("iterations of a parallel loop would write back overlapping parts"),
            std::string::npos);
  check(schedule.check());
}

/// A person may think for longer than a step may take.
TEST(CpuSchedule, StepsHaveTheBudgetToThemselves) {
  for (const Backend backend : {Backend::kCpu, Backend::kSimulator}) {
    Schedule schedule = take(Schedule::create(
        kMatmul, {.sizes = {{"M", 64}, {"N", 64}, {"K", 64}}, .backend = backend, .budget = {.wall_clock_ms = 2000}}));
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    take(schedule.split("i", 8));
    take(schedule.split("j", 8));
  }
}

TEST(CpuSchedule, IsKeptInACache) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "cpu_schedule_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string cache = folder / "kernels.tcc";
  const std::map<std::string, int64_t> sizes = {{"M", 16}, {"N", 32}, {"K", 8}};
  Schedule schedule = schedule_of(kMatmul, sizes);
  tile_into_registers(schedule);
  const Saved saved = take(schedule.save(cache));
  EXPECT_GT(saved.time_us, 0);
  const Engine engine = take(Engine::create(kMatmul, "tc", {.cache = cache}));
  const CompiledKernel kernel = take(engine.compile({.sizes = sizes}));
  EXPECT_TRUE(kernel.provenance().from_file);
  EXPECT_EQ(kernel.provenance().options, saved.options);
  EXPECT_EQ(kernel.provenance().statement,
            "a schedule by hand, proved legal; agrees with the oracle on 3 random inputs");
  expect_same(schedule, kernel, take(compile(kMatmul, {.sizes = sizes})));
  const Engine production = take(Engine::production(cache));
  EXPECT_EQ(take(production.compile({.entry = "mm", .sizes = sizes})).provenance().options, saved.options);
}

/// A request that asks for checks takes no kernel that was saved without them.
TEST(CpuSchedule, IsKeptApartWhereItChecksNoSubscripts) {
  constexpr const char* kGather = "def gather(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) }";
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "cpu_schedule_checks_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string cache = folder / "kernels.tcc";
  const std::map<std::string, int64_t> sizes = {{"N", 3}, {"M", 4}};
  take(schedule_of(kGather, sizes).save(cache));
  const Engine engine = take(Engine::create(kGather, "tc", {.cache = cache}));
  EXPECT_TRUE(take(engine.compile({.sizes = sizes})).provenance().from_file);
  const Request checked{.sizes = sizes, .options = {.check_bounds = true}};
  EXPECT_FALSE(take(engine.compile(checked)).provenance().from_file);
  take(take(Schedule::create(kGather, checked)).save(cache));
  EXPECT_TRUE(take(take(Engine::create(kGather, "tc", {.cache = cache})).compile(checked)).provenance().from_file);
}

TEST(CpuSchedule, NamesBuffersUnlikeParameters) {
  Schedule schedule = schedule_of("def f(float(N) A, float(N) A_tile) -> (y) { y(i) = A(i) + A_tile(i) }", {{"N", 16}});
  take(schedule.split("i", 8));
  check(schedule.promote("A", "i_outer", Memory::kCache));
  check(schedule.promote("A_tile", "i_outer", Memory::kCache));
  check(schedule.check());
}

}  // namespace
}  // namespace tc::api
