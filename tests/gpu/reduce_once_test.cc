#include "tc/ir/reduce_once.h"

#include <gtest/gtest.h>

#include "tc/interp/compare.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Reductions whose terms do not depend on all indices of their results.
namespace tc::testing {
namespace {

const char* const kTexts[] = {
    "def f(float(M,K) A, float(K) x) -> (C) { C(m,n) +=! A(m,k) * x(k) where n in 0:40 }",
    "def f(half(M,K) A, half(K) x) -> (C) { C(m,n) +=! A(m,k) * x(k) where n in 0:40 }",
    "def f(half(M,K) A, half(N) s) -> (C) { C(m,n) +=! A(m,k) * s(n) }",
    "def f(half(M,K) A, half(N) s, float(M,N) D) -> (float(M,N) C) { C(m,n) = D(m,n)  C(m,n) += A(m,k) * s(n) }",
    "def f(float(M,K) A, float(N) b) -> (float(M,N) C) { C(m,n) += A(m,k)  C(m,n) = C(m,n) * b(n) }",
    "def f(float(M,K) A) -> (C) { C(n,m) max=! A(m,k) where n in 3:40 }",
    "def f(float(M,K) A, float(M,N) B) -> (C) { C(m,n) = B(m,n)  C(m,n) min= A(m,k) }",
    "def f(int8(M,K) A, int8(K) x, int8(N) s) -> (C) { C(m,n) +=! A(m,k) * x(k) * s(n) }",
    "def f(int32(M,K) A, int32(N) s) -> (C) { C(m,n) +=! s(n) * A(m,k) * 2000000011 }",
    "def f(uint8(K) A) -> (uint32(N) C) { C(n) *= A(k) }",
    "def f(float(M,K) A, int32(N) i) -> (float(M,K) C) { C(i(n) % M, k) += A(j,k) where n in 0:N }",
    "def f(float(M,K) A) -> (C) { C(m,n) +=! k <= m ? A(m,k) : 0.0 where n in 0:40 }",
    "def f(half(M,K) A, half(K,N) B) -> (C) { C(b,m,n) +=! A(m,k) * B(k,n) where b in 0:3 }",
    "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m / 3,k) * B(k,n) where m in 0:3*M-1 }",
    "def f(float(M,K) A, float(K,N) B) -> (C, D) { C(m,n) +=! A(m % 5,k) * B(k,n) where m in 0:40  D(n,m) = C(m,n) }",
};

ir::Program program_of(const std::string& text) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& name : program_from(text).sizes) {
    sizes[name] = std::map<std::string, int64_t>{{"M", 20}, {"N", 35}, {"K", 19}}.at(name);
  }
  return specialised_from(text, sizes);
}

TEST(ReductionsOnce, AreThoseOfTheText) {
  for (const char* text : kTexts) {
    const ir::Program program = program_of(text), once = ir::reduce_once(program, {});
    EXPECT_NE(ir::to_text(once), ir::to_text(program)) << text;
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const interp::Environment data = data_for(program, seed);
      const Result<interp::BoundedEnvironment> expected = interp::run_bounded(program, data);
      const Result<interp::Environment> results = interp::run(once, data);
      ASSERT_TRUE(expected && results) << text;
      for (const interp::Comparison& comparison : interp::compare(*results, *expected)) {
        EXPECT_TRUE(comparison.agrees) << text << "\n" << comparison.sentence;
      }
    }
  }
}

TEST(ReductionsOnce, AgreeWithTheOracleOnAGpu) {
  gpu::Device busy = gpu::device_of_architecture(90);
  busy.instances_of_launch = 64;  // few instances are many
  for (const char* text : kTexts) {
    EXPECT_EQ(difference(program_of(text), {}, 1, busy), "") << text;
    EXPECT_EQ(difference(program_of(text), {.strict = true}, 1, busy), "") << text;
  }
}

/// Options that address a kernel by what it writes find its reduction there.
TEST(ReductionsOnce, LeaveWhatOptionsAddress) {
  const ir::Program program = specialised_from(
      "def f(float(M,K) A, float(K) x) -> (C) { C(m,n) +=! A(m,k) * x(k) where "
      "n in 0:4096 }",
      {{"M", 64}, {"K", 2048}});
  options::MappingOptions options;
  options.kernel.push_back({.writes = "C", .split_reduction = 4});
  const Result<gpu::Mapping> mapping = mapped(program, options, gpu::device_of_architecture(90));
  ASSERT_TRUE(mapping) << mapping.error().to_string();
}

/// Rows are added up and written in one launch.
TEST(ReductionsOnce, TakeOneLaunchForRows) {
  const std::map<std::string, int64_t> sizes = {{"M", 4096}, {"K", 4096}};
  for (const char* type : {"float", "half"}) {
    const std::string text = std::string("def f(") + type + "(M,K) A, " + type +
                             "(K) x) -> (C) { C(m,n) +=! A(m,k) * x(k) where n in 0:4096 }";
    const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
    EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kRows) << gpu::report(*mapping);
  }
}

}  // namespace
}  // namespace tc::testing
