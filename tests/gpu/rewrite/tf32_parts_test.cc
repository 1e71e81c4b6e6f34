#include "tc/gpu/rewrite/tf32_parts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tc/interp/compare.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Products of three factors with one reduction index, as two products of TF32.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

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

constexpr char kOfFloats[] =
    "def f(half(M,K) A, half(N,K) B, half(K) S) -> (float(M,N) O) { O(m,n) +=! A(m,k) * B(n,k) * S(k) }";

/// What is wrong with the results for given data, on a device with `wgmma` and on one without.
std::string wrong_with(const std::function<void(interp::Environment&)>& change) {
  const ir::Program program = program_of(kOfFloats, {{"M", 64}, {"N", 64}, {"K", 64}});
  std::string wrong;
  for (gpu::Device device : {gpu::device_of_architecture(90), ampere()}) {
    device.tensor_products *= 1000;
    device.warpgroup_products *= 1000;
    const Result<gpu::Mapping> mapping = mapped(program, {.tensor_cores = true}, device);
    if (!mapping) return mapping.error().to_string();
    if (tile::to_text(mapping->program).find("tf32") == std::string::npos) wrong += gpu::report(*mapping);
    interp::Environment data = data_for(program, 1);
    change(data);
    const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
    const Result<interp::Environment> results = simulated(program, *mapping, data, 1);
    if (!oracle || !results) return "no results";
    for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
      if (!comparison.agrees) wrong += comparison.sentence + "\n";
    }
  }
  return wrong;
}

/// Products of two factors have more bits than one operand holds.
TEST(Tf32Parts, LoseNoBits) {
  EXPECT_EQ(wrong_with([](interp::Environment& data) {
              for (const char* name : {"A", "B", "S"}) {
                std::vector<double>& values = data.at(name).floats;
                for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<double>(i % 61) / 1024;
              }
            }),
            "");
}

TEST(Tf32Parts, AreInfiniteWhereTheTextIs) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(wrong_with([&](interp::Environment& data) {
              for (const char* name : {"A", "B", "S"}) {
                std::fill(data.at(name).floats.begin(), data.at(name).floats.end(), 1.0);
              }
              constexpr size_t kRow = 64;
              data.at("A").floats[3 * kRow + 5] = inf;    // row 3: infinite
              data.at("A").floats[4 * kRow + 7] = nan;    // row 4: no numbers
              data.at("A").floats[6 * kRow + 9] = 65504;  // a large number, times itself
              data.at("S").floats[9] = 65504;
              data.at("B").floats[2 * kRow + 11] = -inf;  // column 2; row 3: no number
              data.at("B").floats[8 * kRow + 13] = inf;
              data.at("A").floats[1 * kRow + 13] = 0;  // row 1 of column 8: no number
            }),
            "");
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
