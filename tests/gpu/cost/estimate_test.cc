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
