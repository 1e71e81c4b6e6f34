#include "tc/gpu/cost/estimate.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

namespace tc::testing {
namespace {

double cache_us(const std::string& text, const std::map<std::string, int64_t>& sizes) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes));
  return mapping ? mapping->estimates.at(0).cache_us : -1;
}

TEST(Estimate, CountsSectorsOfWarpsThatWrapAroundRows) {
  const char* text = "def f(float(B,C,H) x) -> (s) { s(c) +=! x(b,c,h) }";
  const double whole = cache_us(text, {{"B", 1}, {"C", 64}, {"H", 2048 * 31}});
  const double wrapped = cache_us(text, {{"B", 2048}, {"C", 64}, {"H", 31}});
  EXPECT_GT(whole, 0);
  EXPECT_GT(wrapped, whole);
  EXPECT_LT(wrapped, 1.5 * whole);
}

/// Threads that go through two runs in turn touch the sectors of two runs, not one each.
TEST(Estimate, CountsSectorsOfThreadsThatTakeTurns) {
  const double straight =
      cache_us("def f(half(C,H,W) x) -> (y) { y(c,h,w) = x(c,h,w) + x(c,h,w + 1) where w in 0:1023 }",
               {{"C", 64}, {"H", 128}, {"W", 1024}});
  const double in_turn = cache_us("def f(half(C,2,H,W) x) -> (y) { y(c,h,w) = x(c,w%2,h,w/2) where w in 0:2*W }",
                                  {{"C", 64}, {"H", 128}, {"W", 512}});
  EXPECT_GT(in_turn, 0);
  EXPECT_LT(in_turn, 2 * straight);
}

TEST(Estimate, CountsAllIterationsThatThreadsShareOut) {
  const ir::Program program = specialised_from(
      "def f(float(N) x, int32(N) at, float(8) b) -> (y) { y(i) = b(i)  y(at(i)) += x(i) }", {{"N", 1 << 24}});
  const Result<gpu::Mapping> mapping = mapped(program);
  ASSERT_TRUE(mapping);
  double bytes = 0;
  for (const gpu::Estimate& estimate : mapping->estimates) bytes = std::max(bytes, estimate.bytes);
  EXPECT_GE(bytes, (1 << 24) * 4);
}

}  // namespace
}  // namespace tc::testing
