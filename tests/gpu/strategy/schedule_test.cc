#include "tc/gpu/strategy/schedule.h"

#include <gtest/gtest.h>

#include "tc/poly/from_ir.h"
#include "tests/common/program.h"

/// Verbs that meet what other verbs left.
namespace tc::testing {
namespace {

/// Every statement with loops of its own.
gpu::Schedule apart(const char* text, const std::map<std::string, int64_t>& sizes) {
  const auto program = std::make_shared<const ir::Program>(specialised_from(text, sizes));
  const Result<poly::Scop> scop = poly::from_ir(program, std::make_shared<poly::Context>());
  EXPECT_TRUE(scop);
  options::SchedulerOptions options;
  options.fusion = options::Fusion::kMin;
  Result<gpu::Schedule> schedule = gpu::Schedule::create(*scop, options);
  EXPECT_TRUE(schedule);
  return *std::move(schedule);
}

gpu::Schedule after(Result<gpu::Schedule> verb) {
  EXPECT_TRUE(verb) << verb.error().to_string();
  return *std::move(verb);
}

std::string error_of(const Result<gpu::Schedule>& verb) { return verb ? "" : verb.error().to_string(); }

TEST(GpuSchedule, WhatALaunchBeginsWithStaysThere) {
  gpu::Schedule schedule =
      apart("def f(float(N) A) -> (T, B) { T(i) = A(i)  B(i) +=! T(i + k) where i in 0:N - 2, k in 0:3 }", {{"N", 12}});
  ASSERT_EQ(schedule.loops(), (std::vector<std::string>{"i", "i_1", "i_2", "k"}));
  const gpu::Schedule launched = after(schedule.launch("i_2"));
  EXPECT_EQ(error_of(launched.merge("i_1", "i_2")),
            "error: cannot merge 'i_1' and 'i_2': a launch begins with 'i_2'\n");
  schedule = after(schedule.merge("i_1", "i_2"));
  schedule = after(schedule.launch("i"));
  EXPECT_EQ(error_of(schedule.sink("i", "i_1")), "error: cannot sink 'i' below 'i_1': a launch begins with 'i'\n");
  EXPECT_EQ(error_of(schedule.sink("S0", "i_1")), "error: cannot sink 'S0' below 'i_1': a launch begins with 'S0'\n");
  EXPECT_EQ(error_of(schedule.merge("i", "i_1")), "error: cannot merge 'i' and 'i_1': a launch begins with 'i'\n");
  EXPECT_TRUE(schedule.lower(gpu::Device{}));
}

TEST(GpuSchedule, WhatStandsInFrontSinksIntoALaunch) {
  gpu::Schedule schedule =
      apart("def f(float(N) A) -> (T, B) { T(i) = A(i)  B(i) +=! T(i + k) where i in 0:N - 2, k in 0:3 }", {{"N", 12}});
  schedule = after(schedule.merge("i_1", "i_2"));
  schedule = after(schedule.launch("i_1"));
  schedule = after(schedule.sink("S0", "i_1"));
  EXPECT_EQ(schedule.loops(), (std::vector<std::string>{"i_1", "i", "k"}));
  const Result<gpu::Mapping> mapping = schedule.lower(gpu::Device{});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 1U);
}

TEST(GpuSchedule, NoWarpSharesALoopThatIsUnrolled) {
  const gpu::Schedule schedule = apart("def f(float(N,M) x) -> (s) { s(i) +=! x(i,k) }", {{"N", 4}, {"M", 64}});
  EXPECT_EQ(error_of(after(schedule.unroll("k")).reduce_by_warp("k")), "error: no warp shares 'k': it is unrolled\n");
  EXPECT_EQ(error_of(after(schedule.reduce_by_warp("k")).unroll("k")),
            "error: a warp shares 'k'; its loop stays as it is\n");
}

}  // namespace
}  // namespace tc::testing
