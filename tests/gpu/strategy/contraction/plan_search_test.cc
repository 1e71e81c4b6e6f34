#include "tc/gpu/strategy/contraction/plan_search.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tc/gpu/strategy/contraction/planner.h"
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
  const auto check = [&](const gpu::BoundedShapes& shapes) {
    for (size_t shape = 0; shape < shapes.count; ++shape) {
      const double least = shapes.least_cycles(shape);
      std::optional<gpu::ContractionPlan> plan = shapes.plan(shape);
      if (!plan) continue;
      ++planned;
      ASSERT_LE(least, plan->cycles) << "shape " << shape;
      if (shape % 5 != 0) continue;  // rows are laid out slowly
      const std::vector<gpu::ContractionPlan> laid_out = planner.laid_out({*plan}, 1);
      ASSERT_LE(least, laid_out.at(0).cycles) << "shape " << shape;
    }
  };
  const std::optional<gpu::TensorCores> cores = planner.tensor_cores();
  if (cores && cores->atom) check(planner.shapes_by_atoms(*cores));
  for (const bool sparing : {true, false}) check(planner.shapes_by_elements(sparing));
  EXPECT_GT(planned, 100u);
}

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
