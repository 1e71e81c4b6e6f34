#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "tests/api/tensors.h"

namespace tc::api {
namespace {

using testing::elements_of;
using testing::error_of;
using testing::floats;
using testing::take;
using testing::tensor_of;

constexpr const char* kMv = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }";
constexpr const char* kScale = "def scale(float a, float(N) x) -> (y) { y(i) = a * x(i) }";
constexpr const char* kAccumulate = "def accumulate(float(N) x) -> (s) { s(i) += x(i) }";
constexpr const char* kStride = "def stride(int32 s, float(N) x) -> (y) { y(i) = x(s * i) where i in 0:2 }";

TEST(Engine, ReportsErrorsOfTheTextWithTheirPlace) {
  EXPECT_EQ(error_of(Engine::create("def f(float(N) x) -> (y) {\n  y(i) = x(i, i)\n}", "f.tc")).substr(0, 17),
            "f.tc:2:10: error:");
}

TEST(Engine, ListsEntriesAndSignatures) {
  const Engine engine = take(Engine::create(std::string(kMv) + "\n" + kStride));
  EXPECT_EQ(engine.entries(), (std::vector<std::string>{"mv", "stride"}));
  EXPECT_EQ(error_of(engine.signature()), "error: the text has 2 defs; name one: mv, stride\n");
  EXPECT_EQ(error_of(engine.signature("strode")), "error: there is no def 'strode'; did you mean 'stride'?\n");
  const Signature mv = take(engine.signature("mv"));
  EXPECT_EQ(mv.sizes, (std::vector<std::string>{"M", "K"}));
  ASSERT_EQ(mv.parameters.size(), 2U);
  EXPECT_EQ(mv.parameters[0].name, "A");
  EXPECT_EQ(mv.parameters[0].shape, (std::vector<std::string>{"M", "K"}));
  ASSERT_EQ(mv.results.size(), 1U);
  EXPECT_EQ(mv.results[0].role, Role::kResult);
  EXPECT_EQ(mv.results[0].shape, (std::vector<std::string>{"M"}));
  const Signature stride = take(engine.signature("stride"));
  EXPECT_EQ(stride.parameters[0].role, Role::kScalar);
  EXPECT_TRUE(stride.parameters[0].compiled_in);
}

TEST(Engine, InfersShapesFromTensorsOrSizes) {
  const Engine engine = take(Engine::create(kMv));
  const Specs by_tensors = take(engine.infer({.inputs = {floats({3, 4}), floats({4})}}));
  EXPECT_EQ(by_tensors.outputs.at(0), floats({3}, {1}));
  const Specs by_sizes = take(engine.infer({.sizes = {{"M", 3}, {"K", 4}}}));
  EXPECT_EQ(by_sizes.inputs.at(0), floats({3, 4}, {4, 1}));
  EXPECT_EQ(by_sizes.inputs.at(1), floats({4}, {1}));
  EXPECT_EQ(error_of(engine.infer({.sizes = {{"M", 3}}})),
            "error: size 'K' of 'mv' has no value: no tensor that is given determines it\n");
  EXPECT_EQ(error_of(engine.infer({.inputs = {floats({3, 4}), floats({5})}})),
            "error: dimension 0 of 'x' is 5, but it must be 4: 'K' is 4 by dimension 1 of 'A'\n");
}

TEST(Engine, SaysWhichOutputsAreWrittenWhole) {
  const auto written = [](const char* text) {
    return take(take(Engine::create(text)).infer({.inputs = {floats({6})}})).outputs_written;
  };
  EXPECT_EQ(written(kAccumulate), std::vector<bool>{false});
  EXPECT_EQ(written("def f(float(N) x) -> (y) { y(i) = x(i) }"), std::vector<bool>{true});
  EXPECT_EQ(written("def f(float(N) x) -> (y) { y(i) +=! x(j) where i in 0:3 }"), std::vector<bool>{true});
  EXPECT_EQ(written("def f(float(N) x) -> (y) { y(i) = x(i - 1) where i in 1:N+1 }"), std::vector<bool>{false});
  EXPECT_EQ(written("def f(float(N) x) -> (y, z) { y(i) = x(i) where i in 1:3\n y(i) = 2 * x(i)\n z = 1.0 }"),
            (std::vector<bool>{true, true}));
}

TEST(Engine, EmitsTheTextOfAStage) {
  const Engine engine = take(Engine::create(kMv));
  const Request request{.sizes = {{"M", 3}, {"K", 4}}};
  EXPECT_EQ(take(engine.emit({}, "program")).substr(0, 20), "program mv\n  size M\n");
  EXPECT_EQ(take(engine.emit(request, "program")).substr(0, 40), "program mv\n  input float32(3,4) A\n  inpu");
  EXPECT_EQ(take(engine.emit(request, "cuda")).substr(0, 10), "// def mv(");
  EXPECT_EQ(error_of(engine.emit(request, "cud")), "error: there is no stage 'cud'; did you mean 'cuda'?\n");
  EXPECT_EQ(error_of(engine.emit({}, "tile")),
            "error: sizes 'M', 'K' of 'mv' have no value: no tensor that is given determines them\n");
  EXPECT_EQ(error_of(engine.emit(request, "cuda", "sm90")),
            "error: 'sm90' is no GPU architecture; one is written like sm_80 or sm_90a\n");
}

TEST(Engine, RefusesTensorsThatContradictTheText) {
  const Engine engine = take(Engine::create(kMv));
  const auto compile_error = [&](const Request& request) { return error_of(engine.compile(request)); };
  EXPECT_EQ(
      compile_error({.inputs = {TensorSpec{.type = ScalarType::kFloat64, .shape = {3, 4}}}}),
      "error: input 'A' is of float64; the text says float32: cast it, or write 'def mv<T>(T(...) A)' for both\n");
  EXPECT_EQ(compile_error({.inputs = {floats({1}), floats({1}), floats({1})}}),
            "error: 3 inputs are given; 'mv' has 2\n");
  EXPECT_EQ(compile_error({.inputs = {floats({3, 4}, {1})}}), "error: input 'A' has 2 dimensions but 1 stride\n");
  EXPECT_EQ(compile_error({.inputs = {floats({3, -4})}}), "error: input 'A' has an extent of -4\n");
  EXPECT_EQ(
      compile_error({.inputs = {floats({3, 4}, {-4, 1})}}),
      "error: input 'A' has strides (-4, 1); negative strides are not supported, a copy of the tensor is needed\n");
  EXPECT_EQ(compile_error({.inputs = {floats({3, 4}), floats({4})}, .outputs = {floats({3}, {0})}}),
            "error: output 'y' of shape (3) has strides (0), which put several of its elements at one address\n");
  EXPECT_EQ(compile_error({.inputs = {floats({3, 4}), floats({4})}, .outputs = {floats({2})}}),
            "error: dimension 0 of 'y' is 2, but it must be 3: 'M' is 3 by dimension 0 of 'A'\n");
}

TEST(Engine, RefusesOptionsAndBudgetsOutOfBounds) {
  const Engine engine = take(Engine::create(kMv));
  Request request{.inputs = {floats({3, 4}), floats({4})}};
  request.options.unroll = 1000;
  EXPECT_EQ(error_of(engine.compile(request)), "error: 'unroll' is 1000; it must be from 1 to 64\n");
  request.options = {};
  request.budget.isl_operations = 0;
  EXPECT_EQ(error_of(engine.compile(request)), "error: a budget of 0 isl operations lets nothing compile\n");
  request.device = 99;
  EXPECT_EQ(error_of(engine.compile(request)), "error: device 99 is asked for; only the backend cuda has several\n");
  request.device = 0;
  request.budget = {.isl_operations = 10, .wall_clock_ms = 1000};
  const Result<CompiledKernel> over = engine.compile(request);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().kind(), ErrorKind::kBudget);
  EXPECT_EQ(over.error().to_string(), "error: this def needs more than the compile budget of 10 isl operations\n");
}

TEST(Engine, StopsWhenAsked) {
  const Engine engine = take(Engine::create(kMv));
  std::stop_source cancel;
  cancel.request_stop();
  const Result<CompiledKernel> stopped =
      engine.compile({.inputs = {floats({3, 4}), floats({4})}, .cancel = cancel.get_token()});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::kCancelled);
  EXPECT_EQ(stopped.error().to_string(), "error: the compilation was cancelled\n");
}

/// A kernel with its arguments.
struct Mv {
  CompiledKernel kernel = take(compile(kMv, {.inputs = {floats({2, 3}), floats({3})}}));
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs = take(kernel.allocate_outputs());
  Mv() {
    inputs.push_back(tensor_of<float>(floats({2, 3}), {1, 2, 3, 4, 5, 6}));
    inputs.push_back(tensor_of<float>(floats({3}), {1, 10, 100}));
  }
  std::string error() { return error_of(kernel.run(inputs, outputs)); }
};

TEST(Kernel, Computes) {
  Mv mv;
  ASSERT_TRUE(mv.kernel.run(mv.inputs, mv.outputs));
  EXPECT_EQ(elements_of<float>(mv.outputs[0]), (std::vector<float>{321, 654}));
  EXPECT_EQ(mv.kernel.pass_times().front().pass, "parse");
  EXPECT_EQ(mv.kernel.pass_times().back().pass, "load");
}

TEST(Kernel, WritesInPlaceWhatTheCallerGives) {
  const Mv mv;
  float data[2] = {-1, -1};
  int64_t shape[1] = {2};
  DLTensor y = {.data = data,
                .device = {kDLCPU, 0},
                .ndim = 1,
                .dtype = to_dlpack(ScalarType::kFloat32),
                .shape = shape,
                .strides = nullptr,
                .byte_offset = 0};
  const DLTensor* inputs[] = {&mv.inputs[0].dl(), &mv.inputs[1].dl()};
  DLTensor* outputs[] = {&y};
  ASSERT_TRUE(mv.kernel.run(inputs, outputs));
  EXPECT_EQ(data[0], 321);
  EXPECT_EQ(data[1], 654);
}

TEST(Kernel, RefusesAWrongNumberOfArguments) {
  Mv mv;
  mv.inputs.pop_back();
  EXPECT_EQ(mv.error(), "error: the call has 1 input; the kernel takes 2\n");
  EXPECT_EQ(error_of(Mv().kernel.run(std::span<const Tensor>(), std::span<Tensor>())),
            "error: the call has 0 inputs; the kernel takes 2\n");
  Mv more;
  more.outputs.push_back(take(Tensor::allocate(floats({2}))));
  EXPECT_EQ(more.error(), "error: the call has 2 outputs; the kernel takes 1\n");
  const Scalar scalar = 1;
  EXPECT_EQ(error_of(Mv().kernel.run(Mv().inputs, mv.outputs, std::span(&scalar, 1))),
            "error: the call has 1 scalar; the kernel takes 0\n");
}

TEST(Kernel, RefusesTensorsThatItWasNotCompiledFor) {
  Mv type;
  type.inputs[1] = take(Tensor::allocate({.type = ScalarType::kInt32, .shape = {3}}));
  EXPECT_EQ(type.error(), "error: input 'x' is of int32; the kernel takes float32\n");
  Mv rank;
  rank.inputs[1] = take(Tensor::allocate(floats({3, 1})));
  EXPECT_EQ(rank.error(), "error: input 'x' has 2 dimensions; the kernel takes 1\n");
  Mv shape;
  shape.inputs[1] = take(Tensor::allocate(floats({4})));
  EXPECT_EQ(shape.error(), "error: input 'x' has shape (4); the kernel was compiled for (3)\n");
  Mv strides;
  strides.inputs[0] = take(Tensor::allocate(floats({2, 3}, {1, 2})));
  EXPECT_EQ(strides.error(), "error: input 'A' has strides (1, 2); the kernel was compiled for (3, 1)\n");
  Mv empty;
  empty.inputs[0] = Tensor();
  EXPECT_EQ(empty.error(), "error: input 'A' is a null pointer\n");
}

TEST(Kernel, RefusesWrongMemory) {
  Mv device;
  DLTensor on_gpu = device.inputs[1].dl();
  on_gpu.device = {kDLCUDA, 3};
  device.inputs[1] = Tensor::borrow(on_gpu);
  EXPECT_EQ(device.error(), "error: input 'x' is on CUDA device 3; the kernel runs on the CPU\n");
  Mv null;
  DLTensor nothing = null.inputs[1].dl();
  nothing.data = nullptr;
  null.inputs[1] = Tensor::borrow(nothing);
  EXPECT_EQ(null.error(), "error: input 'x' has no data\n");
  Mv unaligned;
  const Tensor more = take(Tensor::allocate(floats({4})));
  DLTensor shifted = unaligned.inputs[1].dl();
  shifted.data = more.dl().data;
  shifted.byte_offset = 2;
  unaligned.inputs[1] = Tensor::borrow(shifted);
  EXPECT_EQ(unaligned.error(),
            "error: input 'x' is not aligned: its first element is 2 bytes behind a multiple of the element size, 4\n");
  Mv read_only;
  const Tensor y = std::move(read_only.outputs[0]);
  read_only.outputs[0] = Tensor::borrow(y.dl(), /*read_only=*/true);
  EXPECT_EQ(read_only.error(), "error: output 'y' is read-only\n");
}

TEST(Kernel, RefusesAnOutputThatSharesMemoryWithAnotherArgument) {
  Mv mv;
  DLTensor in_a = mv.outputs[0].dl();
  in_a.data = mv.inputs[0].data();
  in_a.byte_offset = 20;
  const Tensor y = std::move(mv.outputs[0]);
  mv.outputs[0] = Tensor::borrow(in_a);
  EXPECT_EQ(mv.error(), "error: output 'y' and input 'A' share memory: 4 bytes lie in the ranges of both\n");
  EXPECT_EQ(elements_of<float>(mv.inputs[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  in_a.byte_offset = 24;  // right behind
  const Tensor wide = take(Tensor::allocate(floats({2, 4})));
  std::copy_n(mv.inputs[0].data_as<float>(), 6, wide.data_as<float>());
  DLTensor a = mv.inputs[0].dl();
  a.data = in_a.data = wide.data();
  mv.inputs[0] = Tensor::borrow(a);
  mv.outputs[0] = Tensor::borrow(in_a);
  EXPECT_TRUE(mv.kernel.run(mv.inputs, mv.outputs));
  EXPECT_EQ(wide.data_as<float>()[6], 321);
}

TEST(Kernel, InputsMayShareMemory) {
  const CompiledKernel kernel = take(
      compile("def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }", {.inputs = {floats({3}), floats({3})}}));
  std::vector<Tensor> inputs;
  inputs.push_back(tensor_of<float>(floats({3}), {1, 2, 3}));
  inputs.push_back(Tensor::borrow(inputs[0].dl()));
  std::vector<Tensor> outputs = take(kernel.allocate_outputs());
  ASSERT_TRUE(kernel.run(inputs, outputs));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{2, 4, 6}));
}

TEST(Kernel, HonoursStrides) {
  // A is the transpose of a dense tensor, x every second element of one, y every third.
  const CompiledKernel kernel =
      take(compile(kMv, {.inputs = {floats({2, 3}, {1, 2}), floats({3}, {2})}, .outputs = {floats({2}, {3})}}));
  const Tensor a = tensor_of<float>(floats({3, 2}), {1, 4, 2, 5, 3, 6});
  const Tensor x = tensor_of<float>(floats({6}), {1, -1, 10, -1, 100, -1});
  const Tensor y = tensor_of<float>(floats({6}), {7, 7, 7, 7, 7, 7});
  const auto view = [](const Tensor& tensor, std::vector<int64_t>& shape, std::vector<int64_t>& strides) {
    DLTensor dl = tensor.dl();
    dl.ndim = static_cast<int>(shape.size());
    dl.shape = shape.data();
    dl.strides = strides.data();
    return Tensor::borrow(dl);
  };
  std::vector<int64_t> a_shape = {2, 3}, a_strides = {1, 2}, x_shape = {3}, x_strides = {2}, y_shape = {2},
                       y_strides = {3};
  std::vector<Tensor> inputs, outputs;
  inputs.push_back(view(a, a_shape, a_strides));
  inputs.push_back(view(x, x_shape, x_strides));
  outputs.push_back(view(y, y_shape, y_strides));
  ASSERT_TRUE(kernel.run(inputs, outputs));
  EXPECT_EQ(elements_of<float>(y), (std::vector<float>{321, 7, 7, 654, 7, 7}));
}

TEST(Kernel, StridesOfDimensionsOfOneElementDoNotMatter) {
  const CompiledKernel kernel = take(compile(kMv, {.inputs = {floats({1, 3}, {77, 1}), floats({3})}}));
  std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
  inputs.push_back(tensor_of<float>(floats({1, 3}), {1, 2, 3}));
  inputs.push_back(tensor_of<float>(floats({3}), {1, 10, 100}));
  ASSERT_TRUE(kernel.run(inputs, outputs));
  EXPECT_EQ(elements_of<float>(outputs[0]), std::vector<float>{321});
}

TEST(Kernel, TakesScalars) {
  const CompiledKernel kernel = take(compile(kScale, {.inputs = {floats({2})}}));
  std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
  inputs.push_back(tensor_of<float>(floats({2}), {1, 2}));
  const Scalar half[] = {0.5};
  ASSERT_TRUE(kernel.run(inputs, outputs, half));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{0.5, 1}));
  const Scalar three[] = {3};
  ASSERT_TRUE(kernel.run(inputs, outputs, three));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{3, 6}));
  EXPECT_EQ(error_of(kernel.run(inputs, outputs)), "error: the call has 0 scalars; the kernel takes 1\n");
}

TEST(Kernel, ScalarsThatDecideSubscriptsAreCompiledIn) {
  const Engine engine = take(Engine::create(kStride));
  EXPECT_EQ(error_of(engine.compile({.inputs = {floats({9})}})),
            "error: the scalar 's' decides a range or a subscript of 'stride' and must be given\n");
  EXPECT_EQ(error_of(engine.compile({.inputs = {floats({9})}, .scalars = {{"t", 2}}})),
            "error: 'stride' has no scalar 't'\n");
  EXPECT_EQ(error_of(engine.compile({.inputs = {floats({9})}, .scalars = {{"s", 2.5}}})),
            "error: scalar 's' is 2.5; int32 holds integers from -2147483648 to 2147483647\n");
  const CompiledKernel kernel = take(engine.compile({.inputs = {floats({9})}, .scalars = {{"s", 3}}}));
  std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
  inputs.push_back(tensor_of<float>(floats({9}), {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  const Scalar three[] = {3}, two[] = {2};
  ASSERT_TRUE(kernel.run(inputs, outputs, three));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{0, 3}));
  EXPECT_EQ(error_of(kernel.run(inputs, outputs, two)), "error: scalar 's' is 2; the kernel was compiled for 3\n");
}

/// Data, and scalars that are not compiled in, may be the least number of their type, which has no opposite.
TEST(Kernel, DividesTheLeastNumberByNegativeConstants) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> a = {kLeast, kLeast + 1, -7, 7, std::numeric_limits<int64_t>::max()};
  const TensorSpec spec{.type = ScalarType::kInt64, .shape = {5}};
  for (const int64_t by : {-2, -3, -7, -100}) {
    const std::string text = fmt::format(
        "def f(int64(N) A, int64 s) -> (q, r, t) {{ q(i) = A(i) / {0}\n r(i) = A(i) % {0}\n t(i) = s / {0} + A(i) * 0 "
        "}}",
        by);
    const CompiledKernel kernel = take(compile(text, {.inputs = {spec}}));
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(tensor_of<int64_t>(spec, a));
    const std::vector<Scalar> scalars = {kLeast};
    ASSERT_TRUE(kernel.run(inputs, outputs, scalars));
    for (size_t i = 0; i < a.size(); ++i) {
      const int64_t q = a[i] / by - (a[i] % by > 0 ? 1 : 0);
      EXPECT_EQ(elements_of<int64_t>(outputs[0])[i], q) << a[i] << " / " << by;
      EXPECT_EQ(elements_of<int64_t>(outputs[1])[i], a[i] - q * by) << a[i] << " % " << by;
      EXPECT_EQ(elements_of<int64_t>(outputs[2])[i], kLeast / by) << by;
    }
  }
}

TEST(Kernel, InOutTensorsAreReadAndWrittenInPlace) {
  const CompiledKernel kernel = take(compile(kAccumulate, {.inputs = {floats({2})}}));
  EXPECT_EQ(kernel.signature().results[0].role, Role::kInOut);
  std::vector<Tensor> inputs, outputs;
  inputs.push_back(tensor_of<float>(floats({2}), {1, 2}));
  outputs.push_back(tensor_of<float>(floats({2}), {10, 20}));
  ASSERT_TRUE(kernel.run(inputs, outputs));
  ASSERT_TRUE(kernel.run(inputs, outputs));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{12, 24}));
}

TEST(Kernel, ElementsThatNobodyWritesKeepTheirValues) {
  const CompiledKernel kernel =
      take(compile("def inner(float(N) x) -> (y) { y(i) = x(i) where i in 1:3 }", {.inputs = {floats({4})}}));
  std::vector<Tensor> inputs, outputs;
  inputs.push_back(tensor_of<float>(floats({4}), {1, 2, 3, 4}));
  outputs.push_back(tensor_of<float>(floats({3}), {-1, -1, -1}));
  ASSERT_TRUE(kernel.run(inputs, outputs));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{-1, 2, 3}));
  std::vector<Tensor> fresh = take(kernel.allocate_outputs());
  ASSERT_TRUE(kernel.run(inputs, fresh));
  EXPECT_EQ(elements_of<float>(fresh[0]), (std::vector<float>{0, 2, 3}));
}

TEST(Kernel, TensorsWithoutElementsNeedNoMemory) {
  const CompiledKernel kernel = take(compile(kMv, {.inputs = {floats({0, 3}), floats({3})}}));
  int64_t a_shape[] = {0, 3}, y_shape[] = {0};
  const DLTensor a = {.data = nullptr,
                      .device = {kDLCPU, 0},
                      .ndim = 2,
                      .dtype = to_dlpack(ScalarType::kFloat32),
                      .shape = a_shape,
                      .strides = nullptr,
                      .byte_offset = 0};
  DLTensor y = a;
  y.ndim = 1;
  y.shape = y_shape;
  const Tensor x = tensor_of<float>(floats({3}), {1, 2, 3});
  const DLTensor* inputs[] = {&a, &x.dl()};
  DLTensor* outputs[] = {&y};
  EXPECT_TRUE(kernel.run(inputs, outputs));
}

TEST(Kernel, Profiles) {
  Mv mv;
  const Profile profile = take(mv.kernel.profile(mv.inputs, mv.outputs, {}, 5));
  EXPECT_EQ(profile.runs_us.size(), 5U);
  EXPECT_LE(profile.min_us, profile.median_us);
  EXPECT_GT(profile.mean_us, 0);
  EXPECT_EQ(error_of(mv.kernel.profile(mv.inputs, mv.outputs, {}, 0)), "error: a profile of 0 runs shows nothing\n");
}

TEST(Kernel, OneKernelRunsInManyThreads) {
  const CompiledKernel kernel = take(compile(kMv, {.inputs = {floats({64, 100}), floats({100})}}));
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
      inputs.push_back(tensor_of<float>(floats({64, 100}), std::vector<float>(6400, static_cast<float>(t))));
      inputs.push_back(tensor_of<float>(floats({100}), std::vector<float>(100, 2)));
      for (int run = 0; run < 50; ++run) {
        if (!kernel.run(inputs, outputs)) ++wrong[t];
        for (const float y : elements_of<float>(outputs[0])) wrong[t] += y != static_cast<float>(200 * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

TEST(Engine, CompilesInManyThreads) {
  const Engine engine = take(Engine::create(kMv));
  std::vector<std::thread> threads;
  std::vector<float> results(6, 0);
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const int64_t k = t + 1;
      const CompiledKernel kernel = take(engine.compile({.inputs = {floats({2, k}), floats({k})}}));
      std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
      inputs.push_back(tensor_of<float>(floats({2, k}), std::vector<float>(static_cast<size_t>(2 * k), 1)));
      inputs.push_back(tensor_of<float>(floats({k}), std::vector<float>(static_cast<size_t>(k), 1)));
      if (kernel.run(inputs, outputs)) results[static_cast<size_t>(t)] = elements_of<float>(outputs[0])[1];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Engine, CancelsACompilationFromAnotherThread) {
  // Many statements over many dimensions: seconds of work for the polyhedral library.
  std::string text = "def big(float(A,B,C,D,E,F) x) -> (y) {\n  y(a,b,c,d,e,f) = x(a,b,c,d,e,f)\n";
  for (int i = 0; i < 120; ++i) {
    text += "  y(a,b,c,d,e,f) = y(a,b,c,d,e,f) + x(a,b,c,d,e,f)\n  y(a,b,c,d,e,f) += x(a,b,c,d,e,f) * x(a,b,c,d,e,f)\n";
  }
  const Engine engine = take(Engine::create(text + "}"));
  std::stop_source cancel;
  const auto begin = std::chrono::steady_clock::now();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    cancel.request_stop();
  });
  const Result<CompiledKernel> result =
      engine.compile({.inputs = {floats({4, 5, 6, 7, 8, 9})}, .cancel = cancel.get_token()});
  canceller.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(result) << "compiled in " << took.count() << " s, before it was cancelled: make the program larger";
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled) << result.error().to_string();
  EXPECT_LT(took.count(), 30);
}

}  // namespace
}  // namespace tc::api
