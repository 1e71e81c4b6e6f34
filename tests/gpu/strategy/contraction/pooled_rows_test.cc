#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tc/gpu/strategy/coverage.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Pools along the rows of a product, in its kernel: a tile has several parts of an axis that is reduced in parts.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using options::MappingOptions;

gpu::Device hopper() { return gpu::device_of_architecture(90); }

/// A def of matrices with `real` for their type.
struct Case {
  const char* name;
  const char* text;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kMatrices[] = {
    {"Pairs",
     "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n) max=! C(2*m+i,n) where i in 0:2 }"},
    {"Listed", "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n) = max(C(2*m,n), C(2*m+1,n)) }"},
    {"Halved", "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m/2,n) max=! C(m,n) }"},
    {"Fours",
     "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n) min=! C(4*m+i,n) where i in 0:4 }"},
    {"OfBiasAndRelu",
     "real(M,K) A, real(K,N) B, real(N) b) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = relu(C(m,n) + b(n))  "
     "P(m,n) max=! C(2*m+i,n) where i in 0:2 }"},
    {"Sums",
     "real(M,K) A, real(K,N) B) -> (float(M/2,N) P) { C(m,n) +=! A(m,k) * B(k,n)  "
     "P(m,n) +=! float(C(2*m+i,n)) where i in 0:2 }"},
    {"RowsAndColumns",
     "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  "
     "P(m,n) max=! C(2*m+i,2*n+j) where i in 0:2, j in 0:2 }"},
    {"Transposed",
     "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(n,m) max=! C(2*m+i,n) where i in 0:2 }"},
    {"BesideTheProduct",
     "real(M,K) A, real(K,N) B) -> (C, P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n) max=! C(2*m+i,n) where i in 0:2 }"},
};

constexpr char kImage[] = R"(
def f(half(N,H,W,C) I, half(KH,KW,C,F) K, half(F) b) -> (P) {
  O(n,h,w,f) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c) : 0) *
    K(kh,kw,c,f) where h in 0:H, w in 0:W
  O(n,h,w,f) = relu(O(n,h,w,f) + b(f))
  P(n,h,w,f) max=! O(n,2*h + i,2*w + j,f) where i in 0:2, j in 0:2
})";
constexpr char kChannelsFirst[] = R"(
def f(half(N,C,H,W) I, half(F,C,KH,KW) K) -> (P) {
  O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c,h + kh - 1,w + kw - 1) : 0) *
    K(f,c,kh,kw) where h in 0:H, w in 0:W
  P(n,f,h,w) max=! O(n,f,2*h + i,2*w + j) where i in 0:2, j in 0:2
})";

std::string text_of(const std::string& def, const std::string& type) {
  return std::regex_replace("def f(" + def, std::regex("\\breal\\b"), type);
}

/// What is wrong with a mapping that should be one launch: results, proofs, coverage.
std::string wrong_with(const ir::Program& program, const MappingOptions& options, const gpu::Device& device) {
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  if (!mapping) return mapping.error().to_string();
  std::string wrong = mapping->kernels.size() == 1 ? "" : gpu::report(*mapping);
  wrong += unproved(mapping->program);
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    for (const std::string& fault : coverage.faults) wrong += fault + "\n";
    for (const tile::Coverage::Item& item : coverage.items) {
      if (!item.complete) wrong += fmt::format("{} is not covered\n", item.name);
    }
  }
  for (uint64_t seed = 1; seed <= 2; ++seed) wrong += difference_of_mapping(program, *mapping, seed);
  return wrong;
}

/// "" if a def without options is one launch of a product by tensor cores.
std::string more_than_one(const ir::Program& program, const gpu::Device& device, const MappingOptions& options = {}) {
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  if (!mapping) return mapping.error().to_string();
  const bool is_one = mapping->kernels.size() == 1 && mapping->kernels[0].chosen.tensor_cores.value_or(false);
  return is_one ? "" : gpu::report(*mapping);
}

class PooledRows : public ::testing::TestWithParam<Case> {};

TEST_P(PooledRows, ShareTheLaunch) {
  const ir::Program program =
      specialised_from(text_of(GetParam().text, "half"), {{"M", 4096}, {"N", 4096}, {"K", 1024}});
  EXPECT_EQ(more_than_one(program, hopper()), "");
  EXPECT_EQ(more_than_one(program, ampere()), "");
}

TEST_P(PooledRows, AgreeWithTheOracleAndAreProved) {
  const std::string halves = text_of(GetParam().text, "half"), floats = text_of(GetParam().text, "float");
  const Sizes whole = {{"M", 128}, {"N", 72}, {"K", 40}}, partial = {{"M", 156}, {"N", 36}, {"K", 40}};
  for (const Sizes& sizes : {whole, partial}) {
    EXPECT_EQ(wrong_with(specialised_from(halves, sizes), {.tensor_cores = true}, ampere()), "") << halves;
    const Result<gpu::Mapping> of_floats = mapped(specialised_from(floats, sizes), {}, hopper());
    ASSERT_TRUE(of_floats) << of_floats.error().to_string();
    EXPECT_EQ(difference_of_mapping(specialised_from(floats, sizes), *of_floats), "") << floats;
  }
  const ir::Program boxes = specialised_from(halves, {{"M", 156}, {"N", 72}, {"K", 72}});
  for (const MappingOptions& options : {warpgroup_tile(1, 24, 2), warpgroup_tile(2, 64, 2)}) {
    EXPECT_EQ(wrong_with(boxes, options, hopper()), "") << halves;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PooledRows, ::testing::ValuesIn(kMatrices),
                         [](const auto& info) { return std::string(info.param.name); });

/// Pools of two by two positions, behind a padded convolution.
TEST(PooledImages, ShareTheLaunch) {
  const Sizes sizes = {{"N", 32}, {"C", 128}, {"H", 28}, {"W", 28}, {"F", 128}, {"KH", 3}, {"KW", 3}};
  EXPECT_EQ(more_than_one(specialised_from(kImage, sizes), hopper()), "");
  EXPECT_EQ(more_than_one(specialised_from(kImage, sizes), ampere()), "");
}

TEST(PooledImages, AgreeWithTheOracleAndAreProved) {
  const Sizes sizes = {{"N", 2}, {"C", 64}, {"H", 8}, {"W", 12}, {"F", 16}, {"KH", 3}, {"KW", 3}};
  EXPECT_EQ(wrong_with(specialised_from(kImage, sizes), {.tensor_cores = true, .copy_operands = false}, ampere()), "");
  MappingOptions options{.tile = {1, 8, 8, 16, 1, 1, 64},
                         .map_to_threads = {4, 32},
                         .register_tile = {1, 2, 1, 4},
                         .tensor_cores = true,
                         .copy_operands = false};
  EXPECT_EQ(wrong_with(specialised_from(kImage, sizes), options, hopper()), "");
  const Result<gpu::Mapping> first = mapped(specialised_from(kChannelsFirst, sizes), {.tensor_cores = true}, ampere());
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(unproved(first->program), "");
  EXPECT_EQ(difference_of_mapping(specialised_from(kChannelsFirst, sizes), *first), "");
}

/// Of a tile that is 16 wide two neighbouring rows lie in two warps.
TEST(PooledImages, KeepTheirLaunchWherePartsLieInSeveralWarps) {
  const ir::Program program =
      specialised_from(kImage, {{"N", 2}, {"C", 64}, {"H", 8}, {"W", 12}, {"F", 16}, {"KH", 3}, {"KW", 3}});
  const MappingOptions options{.tile = {1, 4, 16, 16, 1, 1, 64}, .tensor_cores = true, .copy_operands = false};
  const Result<gpu::Mapping> mapping = mapped(program, options, hopper());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 2U) << gpu::report(*mapping);
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

}  // namespace
}  // namespace tc::testing
