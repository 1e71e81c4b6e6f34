#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <vector>

#include "tc/api/device_tensors.h"
#include "tc/api/tc.h"
#include "tests/api/tensors.h"

namespace tc::testing {

/// Runs a part of a test in a process of its own, which ends with it.
inline void expect_in_child(const std::function<void()>& work) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        work();
        std::fflush(nullptr);
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);  // what a driver holds is no leak of ours
      },
      ::testing::ExitedWithCode(0), "");
}

/// The same with the driver and the NVRTC of tests/common/fake_cuda.c, which run nothing: the driver that a process has
/// opened it keeps.
inline void expect_with_fake_gpus(const std::function<void(void* driver)>& work, const char* library = TC_FAKE_CUDA) {
  expect_in_child([&] {
    ::setenv("TENSORC_NVRTC", library, 1);
    void* driver = ::dlopen(library, RTLD_NOW);
    ASSERT_NE(driver, nullptr);
    work(driver);
  });
}

/// Runs a kernel of float tensors of these shapes, filled with ones, on a stream of the context that is current.
inline Result<void> run_on_fake_gpu(const api::CompiledKernel& kernel, int device,
                                    const std::vector<std::vector<int64_t>>& from,
                                    const std::vector<std::vector<int64_t>>& to) {
  TC_TRY(context, cuda::Context::open(device));
  cuda::Stream stream = nullptr;
  TC_TRY_VOID(context->driver().check(context->driver().create_stream(&stream, 0), "making a stream"));
  std::list<api::Tensor> numbers;  // views point into them
  api::DeviceTensors inputs, outputs;
  const auto add = [&](api::DeviceTensors& tensors, const std::vector<std::vector<int64_t>>& shapes) -> Result<void> {
    for (const std::vector<int64_t>& shape : shapes) {
      const api::TensorSpec spec = floats(shape);
      numbers.push_back(tensor_of<float>(spec, std::vector<float>(spec.elements(), 1)));
      TC_TRY_VOID(tensors.add(context, numbers.back()));
    }
    return {};
  };
  TC_TRY_VOID(add(inputs, from));
  TC_TRY_VOID(add(outputs, to));
  std::vector<const DLTensor*> read;
  std::vector<DLTensor*> written;
  for (DLTensor& view : inputs.views) read.push_back(&view);
  for (DLTensor& view : outputs.views) written.push_back(&view);
  return kernel.run(read, written, {}, stream);
}

}  // namespace tc::testing
