#include "tc/gpu/rewrite/order_dims.h"

#include <gtest/gtest.h>

#include "tc/ir/expr_text.h"
#include "tc/ir/layouts.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Strided tensors as tensors whose dimensions lie in memory order.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr const char* kProduct = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const Sizes kSizes = {{"M", 20}, {"N", 12}, {"K", 16}};

/// A statement's left side and value, and each tensor's shape and strides.
struct Ordered {
  std::vector<std::string> statements;
  std::map<std::string, std::string> tensors;
};

std::string list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return text;
}

Ordered ordered(const std::string& text, const Sizes& sizes, const ir::Layouts& layouts) {
  const ir::Program program = ir::with_layouts(specialised_from(text, sizes), layouts);
  const ir::Program after = gpu::order_dims(program);
  Ordered result;
  for (const ir::Statement& s : after.statements) {
    std::vector<std::string> left, indices;
    for (const Halide::Expr& e : s.subscripts) left.push_back(ir::to_text(e));
    for (const ir::Index& index : s.indices) indices.push_back(index.name);
    result.statements.push_back(s.tensor + "(" + list(left) + ") = " + ir::to_text(s.value) + " over " + list(indices));
  }
  for (const ir::Tensor& tensor : after.tensors) {
    std::vector<std::string> extents, strides;
    for (const Halide::Expr& e : tensor.extents) extents.push_back(ir::to_text(e));
    for (const int64_t stride : tensor.strides) strides.push_back(std::to_string(stride));
    result.tensors[tensor.name] = list(extents) + (strides.empty() ? "" : " by " + list(strides));
  }
  EXPECT_EQ(faults_of(program), "") << text;
  return result;
}

using Texts = std::vector<std::string>;

TEST(OrderDims, LeavesDenseTensors) {
  const Ordered result = ordered(kProduct, kSizes, {});
  EXPECT_EQ(result.statements, Texts{"C(m,n) = A(m, k) * B(k, n) over m,n,k"});
  EXPECT_EQ(result.tensors.at("A"), "20,16");
}

TEST(OrderDims, TurnsTransposedTensors) {
  const Ordered result = ordered(kProduct, kSizes, {{"A", {1, 20}}, {"B", {1, 24}}});
  EXPECT_EQ(result.statements, Texts{"C(m,n) = A(k, m) * B(n, k) over m,n,k"});
  EXPECT_EQ(result.tensors.at("A"), "16,20");
  EXPECT_EQ(result.tensors.at("B"), "12,16 by 24,1");
}

TEST(OrderDims, FollowsATransposedResult) {
  const Ordered result = ordered(kProduct, kSizes, {{"C", {1, 32}}});
  EXPECT_EQ(result.statements, Texts{"C(n,m) = A(m, k) * B(k, n) over n,m,k"});
  EXPECT_EQ(result.tensors.at("C"), "12,20 by 32,1");
}

/// A sum of halves is one of floats, converted in a second statement.
TEST(OrderDims, LetsTemporariesFollowTheirReaders) {
  const std::string text = "def f(half(M,K) A, half(K,N) B) -> (half(M,N) C) { C(m,n) +=! A(m,k) * B(k,n) }";
  const Ordered result = ordered(text, kSizes, {{"C", {1, 20}}});
  ASSERT_EQ(result.statements.size(), 2);
  EXPECT_EQ(result.statements[0].substr(0, 12), "C_sum(n,m) =");
  EXPECT_EQ(result.tensors.at("C_sum"), "12,20");
}

TEST(OrderDims, DropsDimensionsThatRepeat) {
  const Ordered result = ordered(kProduct, kSizes, {{"A", {0, 1}}, {"B", {0, 0}}});
  EXPECT_EQ(result.statements, Texts{"C(m,n) = A(k) * B(0) over m,n,k"});
  EXPECT_EQ(result.tensors.at("A"), "16");
  EXPECT_EQ(result.tensors.at("B"), "1");
}

TEST(OrderDims, AddsADimensionWhereNeighboursLieApart) {
  const Ordered result = ordered(kProduct, kSizes, {{"A", {32, 2}}, {"C", {2, 40}}});
  EXPECT_EQ(result.statements, Texts{"C(n,m,0) = A(m, k, 0) * B(k, n) over n,m,k"});
  EXPECT_EQ(result.tensors.at("A"), "20,16,1 by 32,2,1");
  EXPECT_EQ(result.tensors.at("C"), "12,20,1 by 40,2,1");
}

TEST(OrderDims, JoinsDimensionsThatOverlap) {
  const Ordered windows = ordered(kProduct, kSizes, {{"A", {1, 1}}});
  EXPECT_EQ(windows.statements, Texts{"C(m,n) = A(m + k) * B(k, n) over m,n,k"});
  EXPECT_EQ(windows.tensors.at("A"), "35");
  // Rows of 6 and neighbours of 4: all of them at multiples of 2.
  const Ordered apart = ordered(kProduct, kSizes, {{"A", {6, 4}}});
  EXPECT_EQ(apart.tensors.at("A"), "88,1 by 2,1");
}

TEST(OrderDims, PutsDimensionsOfOneElementFirst) {
  const std::string text = "def f(float(M,1,K) A) -> (C) { C(m,o,k) = A(m,o,k) + 1 }";
  const Ordered result = ordered(text, {{"M", 6}, {"K", 5}}, {{"A", {1, 40, 8}}});
  EXPECT_EQ(result.statements, Texts{"C(m,o,k) = A(o, k, m) + float32(1) over m,o,k"});
  EXPECT_EQ(result.tensors.at("A"), "1,5,6 by 40,8,1");
}

}  // namespace
}  // namespace tc::testing
