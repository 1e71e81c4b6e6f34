#include "tc/gpu/rewrite/factor_sums.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Products of three factors, of which tensor cores multiply two.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr char kBilinear[] = R"(
def f(half(B,I) X, half(O,I,J) W, half(B,J) Y) -> (Z) { Z(b,o) +=! X(b,i) * W(o,i,j) * Y(b,j) })";

const char* const kSpellings[] = {
    kBilinear,
    "def f(half(B,I) X, half(O,I,J) W, half(B,J) Y) -> (Z) { Z(b,o) +=! X(b,i) * (Y(b,j) * W(o,i,j)) }",
    "def f(half(B,I) X, half(O,I,J) W, half(B,J) Y) -> (Z) { Z(b,o) +=! Y(b,j) * (X(b,i) * W(o,i,j)) }",
    R"(
def f(half(B,I) X, half(O,I,J) W, half(B,J) Y, half(O) c) -> (Z) {
  Z(b,o) +=! W(o,i,j) * X(b,i) * Y(b,j)
  Z(b,o) = relu(Z(b,o) + c(o))
})",
    R"(
def f(half(B,I) X, int8(O,I,J) W, half(B,J) Y) -> (float(B,O) Z) {
  Z(b,o) = 1 where b in 0:B, o in 0:O
  Z(b,o) += X(b,i) * W(o,i,j) * Y(b,j)
})",
};

/// The program with its first sum factored in one of the ways, and how many ways there are.
std::pair<ir::Program, size_t> factored(const ir::Program& program, size_t way) {
  size_t ways = 0;
  ir::Program result =
      gpu::factor_sums(program, [&](const auto&, const auto&, const auto& all) -> std::optional<size_t> {
        ways = all.size();
        return way < all.size() ? std::optional(way) : std::nullopt;
      });
  return {std::move(result), ways};
}

TEST(FactorSums, SumsOverFewerIndicesFirst) {
  const ir::Program program = specialised_from(kBilinear, {{"B", 16}, {"I", 24}, {"O", 32}, {"J", 40}});
  const auto [result, ways] = factored(program, 0);
  EXPECT_EQ(ways, 2U);  // X or Y moves out
  const ir::Statement& product = result.statements[0];
  EXPECT_EQ(product.tensor, "Z_sum_products");
  EXPECT_EQ(std::count_if(product.indices.begin(), product.indices.end(), [](const auto& i) { return i.is_reduction; }),
            1);
  EXPECT_EQ(product.subscripts.size(), 3U);
  EXPECT_EQ(result.statements[1].tensor, "Z_sum");
  EXPECT_EQ(ir::to_text(factored(program, 2).first), ir::to_text(program));
}

TEST(FactorSums, LeavesOtherProducts) {
  for (const char* text :
       {"def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        "def f(half(M,K) A, half(K,N) B, half(K) s) -> (C) { C(m,n) +=! A(m,k) * s(k) * B(k,n) }",
        "def f(half(M,K) A, half(K,N) B, half(M) s) -> (C) { C(m,n) +=! A(m,k) * s(m) * B(k,n) }",
        "def f(bfloat16(M,K) A, bfloat16(K,L,N) B, bfloat16(M,L) s) -> (C) { C(m,n) +=! A(m,k) * B(k,l,n) * s(m,l) }",
        "def f(float(M,K) A, float(K,L,N) B, float(M,L) s) -> (C) { C(m,n) +=! A(m,k) * B(k,l,n) * s(m,l) }"}) {
    Sizes sizes;
    for (const std::string& name : program_from(text).sizes) sizes[name] = 32;
    const ir::Program program = specialised_from(text, sizes);
    EXPECT_EQ(ir::to_text(factored(program, 0).first), ir::to_text(program)) << text;
  }
}

/// A chain of products in one sum: 2 * 1024^3 multiplications in place of 1024^4.
TEST(FactorSums, AreChainsOfProducts) {
  const char* text = "def f(half(M,K) A, half(K,L) B, half(L,N) C) -> (Z) { Z(m,n) +=! A(m,k) * B(k,l) * C(l,n) }";
  const ir::Program program = specialised_from(text, {{"M", 1024}, {"K", 1024}, {"L", 1024}, {"N", 1024}});
  const auto [result, ways] = factored(program, 0);
  EXPECT_EQ(ways, 2U);  // A or C moves out
  EXPECT_EQ(result.statements[0].subscripts.size(), 2U);
  const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  double us = 0;
  for (const gpu::Estimate& estimate : mapping->estimates) us += estimate.us;
  EXPECT_LT(us, 100) << gpu::report(*mapping);
  const ir::Program small = specialised_from(text, {{"M", 20}, {"K", 18}, {"L", 33}, {"N", 24}});
  for (size_t way = 0; way < 2; ++way) {
    const Result<gpu::Mapping> other = mapped(factored(small, way).first, {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(other) << other.error().to_string();
    EXPECT_EQ(difference_of_mapping(small, *other), "");
  }
}

/// Whatever is moved out, in whatever order the factors stand, by elements and by tensor cores.
TEST(FactorSums, AgreeWithTheOracleAndAreProved) {
  for (const char* text : kSpellings) {
    for (const Sizes& sizes :
         {Sizes{{"B", 32}, {"I", 16}, {"O", 6}, {"J", 32}}, Sizes{{"B", 20}, {"I", 24}, {"O", 5}, {"J", 16}}}) {
      const ir::Program program = specialised_from(text, sizes);
      for (size_t way = 0; way < 2; ++way) {
        const auto [other, ways] = factored(program, way);
        ASSERT_EQ(ways, 2U) << text;
        for (const bool by_tensor_cores : {false, true}) {
          const Result<gpu::Mapping> mapping = mapped(other, {.tensor_cores = by_tensor_cores}, ampere());
          if (!mapping && by_tensor_cores) continue;  // no side of 16 rows
          ASSERT_TRUE(mapping) << mapping.error().to_string();
          EXPECT_EQ(unproved(mapping->program), "") << text;
          EXPECT_EQ(difference_of_mapping(program, *mapping), "") << text;
        }
      }
    }
  }
}

/// The product on tensor cores, and one small launch that converts the sums.
TEST(FactorSums, TakeOneSmallLaunchMore) {
  for (const char* text : {kSpellings[0], kSpellings[1], kSpellings[2], kSpellings[3]}) {
    const ir::Program program = specialised_from(text, {{"B", 2048}, {"I", 128}, {"O", 128}, {"J", 128}});
    for (const gpu::Device& device : {gpu::device_of_architecture(90), ampere()}) {
      const Result<gpu::Mapping> mapping = mapped(program, {}, device);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      const bool multiplies = std::any_of(mapping->kernels.begin(), mapping->kernels.end(),
                                          [](const gpu::Kernel& k) { return k.chosen.tensor_cores.value_or(false); });
      EXPECT_TRUE(multiplies) << text << gpu::report(*mapping);
      EXPECT_EQ(mapping->kernels.size(), 2U) << text << gpu::report(*mapping);
    }
  }
}

}  // namespace
}  // namespace tc::testing
