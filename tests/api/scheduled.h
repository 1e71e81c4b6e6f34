#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tc/api/schedule.h"
#include "tests/api/tensors.h"

namespace tc::testing {

inline void check(const Result<void>& result) { EXPECT_TRUE(result) << result.error().to_string(); }

inline std::vector<float> small_integers(int64_t count, int64_t step) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<float>(i * step % 11 - 5));
  return result;
}

/// Runs kernels of a schedule of the text on small integers, and compares with what the CPU makes of the text.
inline void expect_same(const api::Schedule& schedule, const api::CompiledKernel& kernel,
                        const api::CompiledKernel& plain) {
  std::vector<api::Tensor> inputs;
  for (const api::TensorSpec& spec : kernel.inputs()) {
    inputs.push_back(tensor_of<float>(spec, small_integers(spec.elements(), 7 + static_cast<int64_t>(inputs.size()))));
  }
  std::vector<api::Tensor> outputs = take(kernel.allocate_outputs()), expected = take(plain.allocate_outputs());
  check(kernel.run(inputs, outputs));
  check(plain.run(inputs, expected));
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(elements_of<float>(outputs[i]), elements_of<float>(expected[i])) << take(schedule.to_text());
  }
}

inline void expect_same(const api::Schedule& schedule, const char* text, const std::map<std::string, int64_t>& sizes) {
  expect_same(schedule, take(schedule.compile()), take(api::compile(text, {.sizes = sizes})));
}

}  // namespace tc::testing
