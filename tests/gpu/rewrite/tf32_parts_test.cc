#include "tc/gpu/rewrite/tf32_parts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Products of three factors with one reduction index, as two products of TF32.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

gpu::Device ampere() {
  gpu::Device device = gpu::device_of_architecture(80);
  device.accelerated = false;
  return device;
}

const char* const kTexts[] = {
    "def f(half(M,K) A, half(K,N) B, half(K) S) -> (O) { O(m,n) +=! A(m,k) * B(k,n) * S(k) }",
    "def f(half(M,K) A, half(K,N) B, half(K) S) -> (O) { O(m,n) +=! S(k) * (B(k,n) * A(m,k)) }",
    "def f(half(M,K) A, half(K,N) B, half(M,K) S) -> (O) { O(m,n) +=! A(m,k) * S(m,k) * B(k,n) }",
    "def f(half(M,K) A, half(K,N) B, uint8(M,K) S) -> (O) { O(m,n) +=! B(k,n) * S(m,k) * A(m,k) }",
    "def f(half(M,K) A, int8(N,K) B, half(N,G) S) -> (float(M,N) O) { O(m,n) +=! A(m,k) * B(n,k) * S(n,k/16) }",
};

ir::Program program_of(const std::string& text, Sizes sizes) {
  Sizes own;
  sizes["G"] = sizes.at("K") / 16;
  for (const std::string& name : program_from(text).sizes) own[name] = sizes.at(name);
  return specialised_from(text, own);
}

TEST(Tf32Parts, AreMultipliedByTensorCores) {
  for (const char* text : kTexts) {
    const ir::Program program = program_of(text, {{"M", 2048}, {"N", 2048}, {"K", 2048}});
    for (const gpu::Device& device : {gpu::device_of_architecture(90), ampere()}) {
      const Result<gpu::Mapping> mapping = mapped(program, {}, device);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      const bool multiplies = std::any_of(mapping->kernels.begin(), mapping->kernels.end(),
                                          [](const gpu::Kernel& k) { return k.chosen.tensor_cores.value_or(false); });
      EXPECT_TRUE(multiplies) << text << gpu::report(*mapping);
    }
  }
}

TEST(Tf32Parts, AgreeWithTheOracleAndAreProved) {
  for (const char* text : kTexts) {
    const ir::Program program = program_of(text, {{"M", 96}, {"N", 72}, {"K", 64}});
    for (gpu::Device device : {gpu::device_of_architecture(90), ampere()}) {
      device.tensor_products *= 1000;  // whatever the size
      device.warpgroup_products *= 1000;
      const Result<gpu::Mapping> mapping = mapped(program, {.tensor_cores = true}, device);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      EXPECT_NE(tile::to_text(mapping->program).find("tf32"), std::string::npos) << gpu::report(*mapping);
      EXPECT_EQ(unproved(mapping->program), "") << text;
      for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "") << text;
    }
  }
}

/// Factors of bfloat16 and float32 may leave the range of a float32.
TEST(Tf32Parts, AreNotOfOtherFactors) {
  const auto cast = [](Halide::Type type) {
    return Halide::Internal::Cast::make(Halide::Float(32), Halide::Internal::Variable::make(type, "x"));
  };
  const Halide::Expr half = cast(Halide::Float(16));
  EXPECT_EQ(gpu::tf32_parts({half, half, half}).size(), 3U);
  EXPECT_EQ(gpu::tf32_parts({half, half}).size(), 0U);
  EXPECT_EQ(gpu::tf32_parts({half, cast(Halide::BFloat(16)), half}).size(), 0U);
  EXPECT_EQ(gpu::tf32_parts({half, half, Halide::Internal::Variable::make(Halide::Float(32), "x")}).size(), 0U);
}

}  // namespace
}  // namespace tc::testing
