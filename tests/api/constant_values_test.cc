#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/tensors.h"

/// Values that a compiler may compute, on every backend: they are those of a run.
namespace tc::api {
namespace {

using testing::elements_of;
using testing::floats;
using testing::take;
using testing::tensor_of;

const Backend kBackends[] = {Backend::kCpu, Backend::kSimulator};

TEST(ConstantValues, WrapToTheirType) {
  const std::pair<const char*, int32_t> kCases[] = {
      {"int16(uint16(65535))", -1},
      {"int32(-uint32(3))", -3},
      {"int8(100) + int8(int16(300))", -112},
      {"int32(2147483647) != int32(-3) ? 1 : 2", 1},
      {"int16(1) == int16(uint16(65535)) ? 1 : 2", 2},
  };
  for (const Backend backend : kBackends) {
    for (const auto& [value, expected] : kCases) {
      const CompiledKernel kernel =
          take(compile(std::string("def f() -> (int32(2) O) { O(i) = ") + value + " }", {.backend = backend}));
      std::vector<Tensor> outputs = take(kernel.allocate_outputs());
      ASSERT_TRUE(kernel.run(std::vector<Tensor>(), outputs)) << value;
      EXPECT_EQ(elements_of<int32_t>(outputs[0]), std::vector<int32_t>(2, expected)) << value;
    }
  }
}

/// A NaN differs from itself, also where a constant stands before the comparison.
TEST(ConstantValues, AComparisonOfEqualTextsIsARuns) {
  for (const Backend backend : kBackends) {
    const CompiledKernel kernel = take(compile("def f(float(N) A) -> (O) { O(i) = int8(-3) + int8(A(i) != A(i)) }",
                                               {.inputs = {floats({2})}, .backend = backend}));
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(tensor_of<float>(floats({2}), {1, std::nanf("")}));
    ASSERT_TRUE(kernel.run(inputs, outputs));
    EXPECT_EQ(elements_of<int8_t>(outputs[0]), (std::vector<int8_t>{-3, -2}));
  }
}

}  // namespace
}  // namespace tc::api
