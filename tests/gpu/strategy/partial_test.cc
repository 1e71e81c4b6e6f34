#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tc/options/presets.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/random/choices.h"
#include "tests/random/random.h"

/// Statements on parts of tensors that other statements read: what a thread holds in registers it writes back only
/// where it wrote, and where nobody else looks.
namespace tc::testing {
namespace {

TEST(Partial, RowsThatNobodyWritesAreNotPutBack) {
  const ir::Program program = specialised_from(
      R"(def f(int16(N,M) A, int16(M,M) B, int32(N) J, int16(M) T0, int16(N) T3) -> (int16(M,N) T1, int16(N) T2) {
  T2(i) += (int16(1) < (i%2==0 ? int16(1) : T1((i*3+3)%M,J(i))) ? T2(i) : int16(3)) where i in 1:N
  T1(i,j) +=! (B(i,i) < T2(j) ? T1(i,j) : T3(j)) where i in 2:M, j in 0:N-2
})",
      {{"N", 20}, {"M", 6}});
  EXPECT_EQ(difference(program), "");
}

/// The temporary's first column comes from one kernel, the rest is written where it is used: nothing but that column
/// can be copied there.
TEST(Partial, WhatHoldsNothingYetIsNotCopied) {
  for (const char* used : {"T(i+1,j) + T(i,j)", "T(j,i)", "T(i+1,j)"}) {
    const std::string text = fmt::format(R"(def f(float(N) b, float(N,N) A) -> (Y) {{
  T(i,0) = b(i) where i in 0:N
  T(i,j) = A(i,j) * 2 where i in 0:N, j in 1:N
  Y(i,j) = {} where i in 0:N-1, j in 0:N
}})",
                                         used);
    const ir::Program program = specialised_from(text, {{"N", 40}});
    EXPECT_EQ(difference(program), "") << used;
    for (const auto& [name, options] : options::presets()) EXPECT_EQ(difference(program, options), "") << used << name;
  }
}

options::MappingOptions partial_options(uint64_t seed) {
  Random random(seed * 7 + 1);
  options::MappingOptions options;
  if (seed % 2 == 0) return options;
  if (random.chance(60)) options.outer_schedule_options.fusion = static_cast<options::Fusion>(random.below(3));
  if (random.chance(50)) options.tile = {random.range(1, 8), random.range(1, 8)};
  if (random.chance(50)) options.map_to_threads = {random.range(1, 8)};
  if (random.chance(50)) options.map_to_blocks = {random.range(1, 4)};
  if (random.chance(30)) options.use_shared_memory = random.chance(50);
  return options;
}

TEST(Partial, RandomStatementsOnParts) {
  const char* count = std::getenv("TC_RANDOM_PROGRAMS");
  const uint64_t programs = count ? std::stoull(count) : 30;
  const char* first = std::getenv("TC_RANDOM_SEED");
  const uint64_t begin = first ? std::stoull(first) : 1;
  uint64_t done = 0;
  for (uint64_t seed = begin; seed < begin + programs; ++seed) {
    const std::string text = random_parts(seed);
    Random random(seed);
    const Result<ir::Program> program = try_specialised(text, {{"N", random.range(6, 20)}, {"M", random.range(6, 12)}});
    if (!program) continue;
    ++done;
    EXPECT_EQ(difference(*program, partial_options(seed), seed), "") << "seed " << seed << "\n" << text;
  }
  EXPECT_GE(done, programs / 2);
}

}  // namespace
}  // namespace tc::testing
