#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "tc/api/schedule.h"
#include "tc/api/tc.h"
#include "tests/api/fake_gpus.h"
#include "tests/api/tensors.h"

/// Kernels in the contexts of GPUs: with the driver and the NVRTC of tests/common/fake_cuda.c, which run nothing.
namespace tc::api {
namespace {

using testing::error_of;
using testing::expect_with_fake_gpus;
using testing::run_on_fake_gpu;
using testing::take;

constexpr const char* kDouble = "def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }";

/// Makes a context of the device, and makes it current.
void* make_context(void* driver, int device) {
  const auto make = reinterpret_cast<int (*)(void**, unsigned, int)>(::dlsym(driver, "cuCtxCreate_v2"));
  void* context = nullptr;
  EXPECT_EQ(make(&context, 0, device), 0);
  return context;
}

/// Runs a kernel for 64 numbers on a stream of the context that is current.
Result<void> run(const CompiledKernel& kernel, int device) { return run_on_fake_gpu(kernel, device, {{64}}, {{64}}); }

TEST(Contexts, EachHasKernelsOfItsOwn) {
  expect_with_fake_gpus([](void* driver) {
    const Engine engine = take(Engine::create(kDouble));
    for (const int device : {0, 1}) {
      const Request request{.sizes = {{"N", 64}}, .backend = Backend::kCuda, .device = device};
      const EngineStatistics before = engine.statistics();
      const CompiledKernel in_primary = take(engine.compile(request));
      const void* const one = make_context(driver, device);
      const CompiledKernel in_one = take(engine.compile(request));
      EXPECT_TRUE(run(in_one, device));
      EXPECT_NE(make_context(driver, device), one);
      EXPECT_EQ(error_of(run(in_one, device)),
                "error: launching 'twice_0': CUDA_ERROR_INVALID_HANDLE (of the fake driver); does the stream belong to "
                "another device or context?\n");
      for (int round = 0; round < 2; ++round) EXPECT_TRUE(run(take(engine.compile(request)), device));
      EXPECT_EQ(engine.statistics().compiled - before.compiled, 3);
      EXPECT_EQ(engine.statistics().memory_hits - before.memory_hits, 1);
    }
  });
}

/// Whether it is current or not.
TEST(Contexts, ThePrimaryOneIsOne) {
  expect_with_fake_gpus([](void*) {
    const Engine engine = take(Engine::create(kDouble));
    const Request request{.sizes = {{"N", 64}}, .backend = Backend::kCuda};
    const CompiledKernel kernel = take(engine.compile(request));
    const auto primary = take(cuda::Context::open(0));
    const cuda::CurrentContext current(*primary);
    EXPECT_TRUE(run(take(engine.compile(request)), 0));
    EXPECT_EQ(engine.statistics().compiled, 1);
    EXPECT_EQ(engine.statistics().memory_hits, 1);
  });
}

TEST(Contexts, AScheduleIsForItsDevice) {
  expect_with_fake_gpus([](void*) {
    const Request request{.sizes = {{"N", 64}}, .backend = Backend::kCuda, .device = 1};
    EXPECT_EQ(take(take(Schedule::create(kDouble, request)).compile()).device().device_id, 1);
  });
}

/// Two threads may run a kernel on this handle at once: each on its own default stream.
TEST(Contexts, EveryThreadsDefaultStreamHasAWorkspace) {
  expect_with_fake_gpus([](void* driver) {
    const int& allocations = *static_cast<const int*>(::dlsym(driver, "fake_allocations"));
    const CompiledKernel kernel = take(
        compile("def sum(float(N) x) -> (s) { s +=! x(i) }", {.sizes = {{"N", 1 << 24}}, .backend = Backend::kCuda}));
    EXPECT_EQ(allocations, 1);  // for the first stream that comes
    void* const own = reinterpret_cast<void*>(uintptr_t{2});
    const auto prepare = [&] {
      for (int round = 0; round < 2; ++round) EXPECT_TRUE(kernel.prepare(own));
    };
    prepare();
    EXPECT_EQ(allocations, 1);
    std::thread(prepare).join();
    EXPECT_EQ(allocations, 2);
    prepare();
    EXPECT_EQ(allocations, 2);
  });
}

}  // namespace
}  // namespace tc::api
