#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tc/api/tc.h"

namespace tc::testing {

inline api::TensorSpec floats(std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
  return {.type = ScalarType::kFloat32, .shape = std::move(shape), .strides = std::move(strides)};
}

/// The value of a Result that must hold one; an error fails the test and ends the program.
template <typename T>
T take(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().to_string();
    std::abort();
  }
  return std::move(*result);
}

template <typename T>
std::string error_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? "no error" : result.error().to_string();
}

/// A dense tensor of these elements.
template <typename T>
api::Tensor tensor_of(const api::TensorSpec& spec, const std::vector<T>& elements) {
  api::Tensor tensor = take(api::Tensor::allocate(spec));
  EXPECT_EQ(tensor.spec().elements(), static_cast<int64_t>(elements.size()));
  std::copy(elements.begin(), elements.end(), tensor.data_as<T>());
  return tensor;
}

template <typename T>
std::vector<T> elements_of(const api::Tensor& tensor) {
  const auto count = static_cast<size_t>(tensor.spec().elements());
  return {tensor.data_as<T>(), tensor.data_as<T>() + count};
}

}  // namespace tc::testing
