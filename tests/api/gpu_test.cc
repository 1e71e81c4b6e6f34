#include <gtest/gtest.h>

#include "tc/api/kernel.h"
#include "tc/api/tc_c.h"
#include "tc/cuda/device.h"
#include "tests/api/tensors.h"

/// Kernels of a GPU through the engine. The simulator runs them here; what needs a GPU is in benchmarks/gpu.
namespace tc::api {
namespace {

using testing::elements_of;
using testing::error_of;
using testing::floats;
using testing::take;
using testing::tensor_of;

constexpr const char* kMv = "def mv(float a, float(M,K) A, float(K) x) -> (y) { y(m) +=! a * A(m,k) * x(k) }";

std::vector<Tensor> mv_inputs() {
  std::vector<Tensor> inputs;
  inputs.push_back(tensor_of<float>(floats({2, 3}), {1, 2, 3, 4, 5, 6}));
  inputs.push_back(tensor_of<float>(floats({3}), {1, 10, 100}));
  return inputs;
}

Request simulated(const options::MappingOptions& mapping = {}) {
  Request request;
  request.inputs = {floats({2, 3}), floats({3})};
  request.backend = Backend::kSimulator;
  request.mapping = mapping;
  request.verify = true;
  return request;
}

TEST(GpuKernel, RunsOnTheSimulatorWithEveryKindOfArgument) {
  for (const options::MappingOptions& mapping :
       {options::MappingOptions{}, options::MappingOptions{.map_to_threads = {1}, .map_to_blocks = {1}},
        options::MappingOptions{.strict = true}}) {
    const CompiledKernel kernel = take(compile(kMv, simulated(mapping)));
    std::vector<Tensor> outputs = take(kernel.allocate_outputs());
    const std::vector<Scalar> scalars = {2.0};
    ASSERT_TRUE(kernel.run(mv_inputs(), outputs, scalars));
    EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{642, 1308}));
    EXPECT_EQ(kernel.device().device_type, kDLCPU);
    EXPECT_EQ(kernel.pass_times().back().pass, "tile");
  }
}

TEST(GpuKernel, ATileLoopThatStartsBetweenTiles) {
  const char* text = "def f(float(N) x) -> (y) { float y(i) = x(6) where i in 11:N }";
  for (const bool in_registers : {false, true}) {
    const CompiledKernel kernel =
        take(compile(text, {.inputs = {floats({13})},
                            .backend = Backend::kSimulator,
                            .mapping = {.tile = {5}, .map_to_threads = {5}, .use_private_memory = in_registers}}));
    std::vector<Tensor> inputs, outputs;
    inputs.push_back(tensor_of<float>(floats({13}), std::vector<float>(13, 2)));
    outputs.push_back(tensor_of<float>(floats({13}), std::vector<float>(13, 7)));
    ASSERT_TRUE(kernel.run(inputs, outputs));
    std::vector<float> expected(13, 7);
    expected[11] = expected[12] = 2;
    EXPECT_EQ(elements_of<float>(outputs[0]), expected);
  }
}

/// A transposed input, one that repeats an element, and a result between whose elements others lie.
TEST(GpuKernel, TakesStridedTensors) {
  Request request = simulated();
  request.inputs = {floats({2, 3}, {1, 2}), floats({3}, {0})};
  request.outputs = {floats({2}, {3})};
  const Engine engine = take(Engine::create(kMv));
  const CompiledKernel kernel = take(engine.compile(request));
  EXPECT_EQ(kernel.inputs()[0].to_string(), "float32(2, 3) strides (1, 2)");
  std::vector<float> matrix = {1, 4, 2, 5, 3, 6}, ten = {10}, result = {7, 7, 7, 7};
  std::array<int64_t, 2> shape = {2, 3}, strides = {1, 2};
  int64_t three = 3, two = 2, none = 0, apart = 3;
  const DLDataType type = to_dlpack(ScalarType::kFloat32);
  const DLDevice here = {kDLCPU, 0};
  const DLTensor A = {matrix.data(), here, 2, type, shape.data(), strides.data(), 0};
  const DLTensor x = {ten.data(), here, 1, type, &three, &none, 0};
  DLTensor y = {result.data(), here, 1, type, &two, &apart, 0};
  const std::vector<const DLTensor*> inputs = {&A, &x};
  const std::vector<DLTensor*> outputs = {&y};
  const Result<void> run = kernel.run(inputs, outputs, std::vector<Scalar>{2.0});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(result, (std::vector<float>{120, 7, 7, 300}));
  // Others are refused, as on a CPU.
  const DLTensor dense = {matrix.data(), here, 2, type, shape.data(), nullptr, 0};
  const std::vector<const DLTensor*> others = {&dense, &x};
  EXPECT_EQ(error_of(kernel.run(others, outputs, std::vector<Scalar>{2.0})),
            "error: input 'A' has strides (3, 1); the kernel was compiled for (1, 2)\n");
  const std::string text = take(engine.emit(request, "cuda"));
  EXPECT_NE(text.find("A(2, 3) strides (1, 2)"), std::string::npos) << text;
}

TEST(GpuKernel, TensorsThatAreNotAlignedToItsVectors) {
  const Engine engine = take(Engine::create("def f(float(N,D) x) -> (s) { s(n) +=! x(n,d) }"));
  Request request{.sizes = {{"N", 64}, {"D", 1024}}, .backend = Backend::kSimulator};
  const CompiledKernel kernel = take(engine.compile(request));
  std::vector<float> numbers(64 * 1024 + 1);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>((i - 1) / 1024 % 8);
  const Tensor x = tensor_of<float>(floats({64 * 1024 + 1}), numbers);
  std::array<int64_t, 2> shape = {64, 1024};
  DLTensor rest = x.dl();  // all but its first element
  rest.ndim = 2;
  rest.shape = shape.data();
  rest.strides = nullptr;
  rest.byte_offset = sizeof(float);
  for (int round = 0; round < 2; ++round) {
    std::vector<Tensor> results = take(kernel.allocate_outputs());
    const std::array<const DLTensor*, 1> inputs = {&rest};
    DLTensor result = results[0].dl();
    const std::array<DLTensor*, 1> outputs = {&result};
    const Result<void> run = kernel.run(inputs, outputs);
    ASSERT_TRUE(run) << run.error().to_string();
    for (int n = 0; n < 64; ++n) EXPECT_EQ(results[0].data_as<float>()[n], static_cast<float>(1024 * (n % 8))) << n;
  }
  EXPECT_EQ(engine.statistics().compiled, 2);  // the kernel, and once the one for such tensors
  EXPECT_NE(take(engine.emit(request, "cuda")).find("float4"), std::string::npos);
  request.element_aligned = true;
  EXPECT_EQ(take(engine.emit(request, "cuda")).find("float4"), std::string::npos);
}

/// Where compiling fails, it fails once; a look-up is tried again.
TEST(GpuKernel, AnotherKernelThatCannotBeMade) {
  for (const bool compiles : {true, false}) {
    int calls = 0;
    ElementAligned other;
    other.made_by([&]() -> Result<CompiledKernel> { return fail("attempt {} fails", ++calls); }, compiles);
    EXPECT_FALSE(other.is_known());
    EXPECT_EQ(error_of(other.get()), "error: attempt 1 fails\n");
    EXPECT_EQ(other.is_known(), compiles);
    EXPECT_EQ(error_of(other.get()), compiles ? "error: attempt 1 fails\n" : "error: attempt 2 fails\n");
    EXPECT_EQ(calls, compiles ? 1 : 2);
  }
}

TEST(GpuKernel, TensorsWithoutElements) {
  Request request = simulated();
  request.inputs = {floats({2, 0}), floats({0})};
  const CompiledKernel kernel = take(compile(kMv, request));
  std::vector<Tensor> inputs;
  inputs.push_back(take(Tensor::allocate(floats({2, 0}))));
  inputs.push_back(take(Tensor::allocate(floats({0}))));
  std::vector<Tensor> outputs;
  outputs.push_back(tensor_of<float>(floats({2}), {7, 7}));
  ASSERT_TRUE(kernel.run(inputs, outputs, std::vector<Scalar>{2.0}));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{0, 0}));
}

TEST(GpuKernel, RefusesWhatItCannotDo) {
  const Engine engine = take(Engine::create(kMv));
  Request strides = simulated();
  strides.inputs[0] = floats({2, 3}, {-3, 1});
  EXPECT_EQ(
      error_of(engine.compile(strides)),
      "error: input 'A' has strides (-3, 1); negative strides are not supported, a copy of the tensor is needed\n");
  strides = simulated();
  strides.outputs = {floats({2}, {0})};
  EXPECT_EQ(error_of(engine.compile(strides)),
            "error: output 'y' of shape (2) has strides (0), which put several of its elements at one address\n");
  EXPECT_EQ(error_of(engine.compile(simulated({.map_to_threads = {2048}}))),
            "error: 'map_to_threads' is 2048 in x; it must be from 1 to 1024\n");
  EXPECT_EQ(error_of(engine.compile(simulated({.fix_parameters_before_scheduling = false}))),
            "error: 'fix_parameters_before_scheduling' is false; schedules are made for the sizes at hand\n");
  const CompiledKernel kernel = take(engine.compile(simulated()));
  std::vector<Tensor> outputs = take(kernel.allocate_outputs());
  int stream = 0;
  EXPECT_EQ(error_of(kernel.run(mv_inputs(), outputs, std::vector<Scalar>{2.0}, &stream)),
            "error: a stream is given; the kernel runs on the CPU\n");
}

TEST(GpuKernel, TheSimulatorsFindingsAreErrors) {
  const char* gather = "def gather(float(N) x, int32(M) i) -> (y) { y(m) = x(i(m)) }";
  const CompiledKernel kernel = take(
      compile(gather, {.inputs = {floats({4}), TensorSpec{ScalarType::kInt32, {2}}}, .backend = Backend::kSimulator}));
  std::vector<Tensor> inputs;
  inputs.push_back(tensor_of<float>(floats({4}), {1, 2, 3, 4}));
  inputs.push_back(tensor_of<int32_t>({ScalarType::kInt32, {2}}, {1, 4}));
  std::vector<Tensor> outputs = take(kernel.allocate_outputs());
  const std::string error = error_of(kernel.run(inputs, outputs));
  EXPECT_TRUE(error.starts_with("error: the simulator finds: ")) << error;
}

TEST(GpuKernel, CompilesForAGpuOrSaysWhatIsMissing) {
  const auto devices = cuda::devices();
  const bool has_gpu = devices && !devices->empty();
  Request request = simulated();
  request.backend = Backend::kCuda;
  const Result<CompiledKernel> kernel = compile(kMv, request);
  EXPECT_TRUE(has_gpu || !kernel);
  if (kernel) return;
  const std::string error = kernel.error().to_string();
  if (has_gpu) {
    EXPECT_NE(error.find("NVRTC"), std::string::npos) << error;
  } else {
    EXPECT_TRUE(error.starts_with("error: NVIDIA's driver ")) << error;
  }
}

TEST(GpuKernelInC, DevicesAndOptions) {
  tc_request* request = nullptr;
  ASSERT_EQ(tc_request_create("mv", &request), TC_OK);
  EXPECT_EQ(tc_request_device(request, {kDLCUDA, 0}), TC_OK);
  EXPECT_EQ(tc_request_device(request, {kDLVulkan, 0}), TC_ERROR_USER);
  EXPECT_STREQ(tc_last_error(), "error: kernels run on DLPack's device types 1 (CPU) and 2 (CUDA), not on 7\n");
  EXPECT_EQ(tc_request_mapping(request, "tile: [8, 8] map_to_threads: 32"), TC_OK);
  EXPECT_EQ(tc_request_mapping(request, "tile: -1"), TC_ERROR_USER);
  EXPECT_EQ(tc_kernel_prepare(nullptr, nullptr), TC_ERROR_USER);
  EXPECT_STREQ(tc_last_error(), "error: the kernel is a null pointer\n");
  EXPECT_EQ(tc_run_on_stream(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, 0), TC_ERROR_USER);
  tc_request_destroy(request);
}

}  // namespace
}  // namespace tc::api
