#include "tc/gpu/strategy/contraction/plan_search.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tc/gpu/strategy/contraction/atom_cost.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/planner.h"
#include "tc/gpu/strategy/contraction/warpgroup_cost.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tests/common/program.h"

/// The search for the best of many plans: which are planned in full, and that none of the others is better.
namespace tc::testing {
namespace {

gpu::ContractionPlan plan_of(double cycles, int64_t tile) {
  gpu::ContractionPlan plan;
  plan.parallel = {{.tile = tile}};
  plan.chunk = {1};
  plan.cycles = cycles;
  return plan;
}

std::vector<std::pair<double, int64_t>> facts_of(const std::vector<gpu::ContractionPlan>& plans) {
  std::vector<std::pair<double, int64_t>> result;
  for (const gpu::ContractionPlan& plan : plans) result.emplace_back(plan.cycles, plan.parallel[0].tile);
  return result;
}

TEST(PlanSearch, FindsWhatASearchOfAllShapesFinds) {
  std::mt19937 random(5);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int round = 0; round < 300; ++round) {
    std::vector<gpu::ContractionPlan> plans;
    std::vector<double> bounds;
    for (int64_t i = below(40); i-- > 0;) {
      plans.push_back(plan_of(static_cast<double>(below(12)), below(6)));  // many take as long, some are the same
      bounds.push_back(plans.back().cycles - static_cast<double>(below(4)));
    }
    const auto count = static_cast<size_t>(1 + below(8));
    std::vector<gpu::ContractionPlan> expected;
    for (const gpu::ContractionPlan& plan : plans) gpu::keep_best(plan, count, expected);
    const gpu::BoundedShapes shapes{plans.size(), [&](size_t i) { return bounds[i]; },
                                    [&](size_t i) { return std::optional(plans[i]); }};
    EXPECT_EQ(facts_of(gpu::best_of_shapes(shapes, count)), facts_of(expected)) << "round " << round;
    const double most = 4;
    std::erase_if(expected, [&](const gpu::ContractionPlan& plan) { return plan.cycles > most; });
    EXPECT_EQ(facts_of(gpu::best_of_shapes(shapes, count, most)), facts_of(expected)) << "round " << round;
  }
}

TEST(PlanSearch, PlansNoShapeWhoseBoundIsTooHigh) {
  std::vector<size_t> planned;
  const gpu::BoundedShapes shapes{5,
                                  [](size_t i) {
                                    return std::array{9.0, 3.0, 8.0, 4.0, gpu::kNoLimit}[i];
                                  },
                                  [&](size_t i) {
                                    planned.push_back(i);
                                    return std::optional(plan_of(5, static_cast<int64_t>(i)));
                                  }};
  EXPECT_EQ(facts_of(gpu::best_of_shapes(shapes, 1)), (std::vector<std::pair<double, int64_t>>{{5, 1}}));
  EXPECT_EQ(planned, (std::vector<size_t>{1, 3}));
  planned.clear();
  gpu::best_of_shapes(shapes, 4, 3.5);
  EXPECT_EQ(planned, (std::vector<size_t>{1}));
}

struct Case {
  const char* name;
  const char* text;
  std::map<std::string, int64_t> sizes;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kF16[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kF32[] = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kInt8[] = "def f(int8(M,K) A, int8(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kF64[] = "def f(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kConvolution[] =
    "def f(float(N,C,H,W) I, float(F,C,KH,KW) J) -> (O) { O(n,g,h,w) +=! I(n,c,h + kh,w + kw) * J(g,c,kh,kw) }";
constexpr char kHalfConvolution[] =
    "def f(float16(N,H,W,C) I, float16(F,KH,KW,C) J) -> (O) { O(n,h,w,g) +=! I(n,h + kh,w + kw,c) * "
    "J(g,kh,kw,c) }";

class Bounds : public ::testing::TestWithParam<Case> {};

/// No plan takes less than its bound, neither as it was planned roughly nor when it is laid out.
TEST_P(Bounds, AreNoMoreThanPlansTake) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const std::optional<gpu::Contraction> c = gpu::contraction_of(program, program.statements[0]);
  ASSERT_TRUE(c);
  const options::MappingOptions options;
  const gpu::Device device;
  const gpu::Planner planner(*c, options, device);
  size_t planned = 0;
  const auto check = [&](const gpu::BoundedShapes& shapes, double least_of_all) {
    for (size_t shape = 0; shape < shapes.count; ++shape) {
      const double least = shapes.least_cycles(shape);
      std::optional<gpu::ContractionPlan> plan = shapes.plan(shape);
      if (!plan) continue;
      ++planned;
      ASSERT_LE(least, plan->cycles) << "shape " << shape;
      ASSERT_LE(least_of_all, plan->cycles) << "shape " << shape;
      if (shape % 5 != 0) continue;  // rows are laid out slowly
      const std::vector<gpu::ContractionPlan> laid_out = planner.laid_out({*plan}, 1);
      ASSERT_LE(least, laid_out.at(0).cycles) << "shape " << shape;
    }
  };
  const std::optional<gpu::TensorCores> cores = planner.tensor_cores();
  if (cores && cores->atom) {
    check(planner.shapes_by_atoms(*cores), gpu::least_atom_cycles(*c, *cores->atom, device));
  }
  for (const bool sparing : {true, false}) {
    check(planner.shapes_by_elements(sparing), gpu::least_element_cycles(*c, device));
  }
  EXPECT_GT(planned, 100u);
}

class BoundsOfWarpgroups : public ::testing::TestWithParam<Case> {};

/// A search for one plan, which leaves out what its bounds exceed, finds what a search for many finds.
TEST_P(BoundsOfWarpgroups, LeaveOutNoBetterPlan) {
  constexpr size_t kMany = 200;
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const std::optional<gpu::Contraction> c = gpu::contraction_of(program, program.statements[0]);
  ASSERT_TRUE(c);
  gpu::Device device;
  device.accelerated = true;
  const Result<gpu::ContractionPlan> one = gpu::plan_warpgroups(*c, {}, device);
  ASSERT_TRUE(one);
  const std::vector<gpu::ContractionPlan> many = gpu::best_plans(*c, {}, device, kMany);
  ASSERT_GT(many.size(), kMany / 4);
  const auto first =
      std::find_if(many.begin(), many.end(), [](const gpu::ContractionPlan& plan) { return plan.by_warpgroups(); });
  ASSERT_NE(first, many.end());
  EXPECT_EQ(one->cycles, first->cycles);
  EXPECT_EQ(gpu::options_of(*one), gpu::options_of(*first));
  // What is found once for many plans is what each of them is estimated at.
  for (const gpu::ContractionPlan& plan : many) {
    if (plan.by_warpgroups()) {
      ASSERT_DOUBLE_EQ(plan.cycles, gpu::warpgroup_cycles(*c, plan, device)) << plan.grid;
    }
  }
  // The limit is no less than what the best plan takes.
  const Result<gpu::ContractionPlan> within = gpu::plan_warpgroups(*c, {}, device, one->cycles);
  ASSERT_TRUE(within);
  EXPECT_EQ(gpu::options_of(*within), gpu::options_of(*one));
}

gpu::ContractionPlan blocks_of(int64_t row_tile, int64_t rows, int64_t column_tile, int64_t columns) {
  gpu::ContractionPlan plan;
  plan.tensor_cores = gpu::TensorCores{.rows = {0}, .columns = {1}};
  plan.parallel = {{.tile = row_tile, .blocks = rows}, {.tile = column_tile, .blocks = columns}};
  return plan;
}

/// Blocks that follow each other read the same columns, if these are more than the rows, where all run at once.
TEST(OrderOfBlocks, NeighboursShareTilesOfTheLargerOperand) {
  const gpu::Device device;  // of 132 processors
  EXPECT_EQ(gpu::row_blocks(blocks_of(64, 7, 128, 16), device), 7);
  EXPECT_EQ(gpu::row_blocks(blocks_of(128, 4, 64, 31), device), 4);
  EXPECT_EQ(gpu::row_blocks(blocks_of(64, 18, 128, 4), device), 1);
  EXPECT_EQ(gpu::row_blocks(blocks_of(128, 8, 128, 8), device), 8);
}

/// Of more than run at once, those that do are as many rows as columns, about.
TEST(OrderOfBlocks, BlocksThatRunAtOnceReadLittle) {
  const gpu::Device device;
  EXPECT_EQ(gpu::row_blocks(blocks_of(128, 64, 128, 64), device), 16);
  EXPECT_EQ(gpu::row_blocks(blocks_of(128, 64, 256, 32), device), 16);
  EXPECT_EQ(gpu::row_blocks(blocks_of(256, 32, 128, 64), device), 8);
}

constexpr char kF16NT[] = "def f(float16(M,K) A, float16(N,K) B) -> (float16(M,N) C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kF8[] = "def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";

INSTANTIATE_TEST_SUITE_P(
    Cases, BoundsOfWarpgroups,
    ::testing::Values(Case{"F16", kF16, {{"M", 4096}, {"N", 4096}, {"K", 4096}}},
                      Case{"ShortRows", kF16, {{"M", 1000}, {"N", 1000}, {"K", 1000}}},
                      Case{"FewSteps", kF16, {{"M", 5000}, {"N", 3000}, {"K", 200}}},
                      Case{"FewRows", kF16, {{"M", 96}, {"N", 12288}, {"K", 4096}}},
                      Case{"LongK", kF16, {{"M", 256}, {"N", 384}, {"K", 20000}}},
                      Case{"FromMemory", kF16, {{"M", 2624}, {"N", 640}, {"K", 7360}}},
                      Case{"OddRows", kF16NT, {{"M", 1201}, {"N", 6514}, {"K", 704}}},
                      Case{"F8", kF8, {{"M", 2048}, {"N", 1536}, {"K", 1024}}},
                      Case{"Convolution",
                           kHalfConvolution,
                           {{"N", 32}, {"C", 64}, {"F", 64}, {"H", 30}, {"W", 30}, {"KH", 3}, {"KW", 3}}}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Cases, Bounds,
    ::testing::Values(
        Case{"F16", kF16, {{"M", 1024}, {"N", 1024}, {"K", 1024}}},
        Case{"OddF16", kF16, {{"M", 333}, {"N", 777}, {"K", 555}}},
        Case{"FewRows", kF16, {{"M", 17}, {"N", 4096}, {"K", 1000}}},
        Case{"F32", kF32, {{"M", 1024}, {"N", 512}, {"K", 768}}},
        Case{"OddF32", kF32, {{"M", 123}, {"N", 45}, {"K", 67}}},
        Case{"Int8", kInt8, {{"M", 256}, {"N", 256}, {"K", 300}}},
        Case{"F64", kF64, {{"M", 256}, {"N", 256}, {"K", 256}}},
        Case{"Convolution", kConvolution, {{"N", 4}, {"C", 16}, {"F", 32}, {"H", 16}, {"W", 18}, {"KH", 3}, {"KW", 3}}},
        Case{"HalfConvolution",
             kHalfConvolution,
             {{"N", 4}, {"C", 32}, {"F", 32}, {"H", 16}, {"W", 18}, {"KH", 3}, {"KW", 3}}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::testing
