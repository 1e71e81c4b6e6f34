#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tc/gpu/strategy/coverage.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Reductions of a product's results, which its blocks carry out while the results are in registers.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// What a kernel writes, but for partial results.
std::string written_by(const tile::Kernel& kernel) {
  std::vector<std::string> names;
  for (const tile::Tensor& tensor : kernel.tensors) {
    if (tensor.written && tensor.name.find("_parts") == std::string::npos) names.push_back(tensor.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What is wrong with a mapping: results, proofs of order and bounds, coverage.
std::string wrong_with(const ir::Program& program, const options::MappingOptions& options, const gpu::Device& device) {
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  if (!mapping) return mapping.error().to_string();
  std::string wrong = unproved(mapping->program);
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    for (const std::string& fault : coverage.faults) wrong += fault + "\n";
    for (const tile::Coverage::Item& item : coverage.items) {
      if (!item.complete) wrong += fmt::format("{} is not covered\n", item.name);
    }
  }
  return wrong + difference(program, options, 1, device);
}

TEST(ReduceInTiles, OfOneBlockNeedNoParts) {
  const char* text = "def f(float(M,K) A, float(K,N) B) -> (R) { C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! C(m,n) }";
  const options::MappingOptions options{.tile = {16, 16, 32}, .split_reduction = 1};
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, {{"M", 512}, {"N", 16}, {"K", 512}}), options);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
  EXPECT_EQ(written_by(mapping->program.kernels[0]), "R");
  EXPECT_EQ(wrong_with(specialised_from(text, {{"M", 40}, {"N", 16}, {"K", 64}}), options, {}), "");
}

}  // namespace
}  // namespace tc::testing
