#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>

#include "tests/api/tensors.h"

/// C8: data-dependent subscripts that are checked at run time, on the CPU and on a GPU's kernels.
namespace tc::api {
namespace {

using testing::elements_of;
using testing::error_of;
using testing::floats;
using testing::take;
using testing::tensor_of;

TensorSpec integers(std::vector<int64_t> shape, ScalarType type = ScalarType::kInt32) {
  return {.type = type, .shape = std::move(shape)};
}

/// Kernels of a def that check: by default, strictly, and by the classic mapping; the first is the CPU's.
std::vector<CompiledKernel> checked(const std::string& text, std::vector<std::optional<TensorSpec>> inputs,
                                    std::map<std::string, int64_t> sizes = {}) {
  Request request;
  request.inputs = std::move(inputs);
  request.sizes = std::move(sizes);
  request.verify = true;
  request.options.check_bounds = true;
  std::vector<CompiledKernel> kernels = {take(compile(text, request))};
  request.backend = Backend::kSimulator;
  for (options::MappingOptions mapping : {options::MappingOptions{}, options::MappingOptions{.strict = true},
                                          options::MappingOptions{.map_to_threads = {4}, .map_to_blocks = {2}},
                                          options::MappingOptions{.use_shared_memory = false}}) {
    mapping.check_bounds = true;
    request.mapping = mapping;
    kernels.push_back(take(compile(text, request)));
  }
  return kernels;
}

std::string fault(int64_t subscript, int dimension, const std::string& tensor, int64_t extent, const std::string& at) {
  return fmt::format("error: subscript {} of '{}' is {}, outside [0, {}), in statement {}\n", dimension, tensor,
                     subscript, extent, at);
}

TEST(CheckBounds, Gathers) {
  for (const CompiledKernel& kernel :
       checked("def gather(float(N) x, int32(K) at) -> (y) { y(k) = x(at(k)) }", {floats({4}), integers({3})})) {
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(tensor_of<float>(floats({4}), {1, 2, 3, 4}));
    inputs.push_back(tensor_of<int32_t>(integers({3}), {3, 0, 2}));
    ASSERT_TRUE(kernel.run(inputs, outputs));
    EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{4, 1, 3}));
    for (const int32_t wrong : {-7, -1, 4, 2147483647, -2147483647 - 1}) {
      inputs[1].data_as<int32_t>()[1] = wrong;
      EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(wrong, 0, "x", 4, "S0 of 'gather'"));
    }
    inputs[1].data_as<int32_t>()[1] = 1;
    EXPECT_TRUE(kernel.run(inputs, outputs));
    EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{4, 2, 3}));
  }
}

/// A subscript of 64 bits is not cut to 32 before it is looked at.
TEST(CheckBounds, WideSubscripts) {
  const TensorSpec wide = integers({2}, ScalarType::kInt64);
  for (const CompiledKernel& kernel :
       checked("def gather(float(N) x, int64(K) at) -> (y) { y(k) = x(at(k)) }", {floats({4}), wide})) {
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(tensor_of<float>(floats({4}), {1, 2, 3, 4}));
    inputs.push_back(tensor_of<int64_t>(wide, {1, (int64_t{1} << 32) + 1}));
    EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault((int64_t{1} << 32) + 1, 0, "x", 4, "S0 of 'gather'"));
    inputs[1].data_as<int64_t>()[1] = INT64_MIN;
    EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(INT64_MIN, 0, "x", 4, "S0 of 'gather'"));
  }
}

TEST(CheckBounds, NestedGathersOfRows) {
  const char* text = "def rows(float(N,D) E, int32(P) of, int32(K) at) -> (y) { y(k,d) = E(of(at(k)), d) }";
  for (const CompiledKernel& kernel : checked(text, {floats({5, 8}), integers({3}), integers({4})})) {
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    std::vector<float> rows(40);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    inputs.push_back(tensor_of<float>(floats({5, 8}), rows));
    inputs.push_back(tensor_of<int32_t>(integers({3}), {4, 0, 2}));
    inputs.push_back(tensor_of<int32_t>(integers({4}), {0, 1, 2, 0}));
    ASSERT_TRUE(kernel.run(inputs, outputs));
    EXPECT_EQ(elements_of<float>(outputs[0])[8 + 3], 3);
    EXPECT_EQ(elements_of<float>(outputs[0])[3 * 8 + 1], 33);
    inputs[1].data_as<int32_t>()[2] = 5;
    EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(5, 0, "E", 5, "S0 of 'rows'"));
    inputs[1].data_as<int32_t>()[2] = 2;
    inputs[2].data_as<int32_t>()[3] = 3;
    EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(3, 0, "of", 3, "S0 of 'rows'"));
  }
}

TEST(CheckBounds, Bytes) {
  for (const int64_t extent : {4, 256}) {
    for (const CompiledKernel& kernel : checked("def gather(float(N) x, uint8(K) at) -> (y) { y(k) = x(at(k)) }",
                                                {floats({extent}), integers({2}, ScalarType::kUInt8)})) {
      std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
      inputs.push_back(tensor_of<float>(floats({extent}), std::vector<float>(static_cast<size_t>(extent), 1)));
      inputs.push_back(tensor_of<uint8_t>(integers({2}, ScalarType::kUInt8), {3, 255}));
      const Result<void> done = kernel.run(inputs, outputs);
      EXPECT_EQ(done.has_value(), extent == 256);
      if (!done) EXPECT_EQ(error_of(done), fault(255, 0, "x", 4, "S0 of 'gather'"));
    }
  }
}

/// What a guard keeps from being read is not looked at.
TEST(CheckBounds, GuardedGathers) {
  const char* text =
      "def shift(float(N) x, int32(N) at) -> (y) { y(i) = i >= 1 ? x(at(i-1) + 1) : 0.0 where i in 0:N }";
  for (const CompiledKernel& kernel : checked(text, {floats({4}), integers({4})})) {
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(tensor_of<float>(floats({4}), {1, 2, 3, 4}));
    inputs.push_back(tensor_of<int32_t>(integers({4}), {2, -1, 0, 99}));
    ASSERT_TRUE(kernel.run(inputs, outputs));
    EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{0, 4, 1, 2}));
    inputs[1].data_as<int32_t>()[2] = 3;
    EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(4, 0, "x", 4, "S0 of 'shift'"));
  }
}

TEST(CheckBounds, ScattersWriteNothingOutside) {
  for (const char* text : {"def count(int32(N) at, float(N) w) -> (float(B) H) { H(at(i)) +=! w(i) }",
                           "def most(int32(N) at, float(N) w) -> (float(B) H) { H(at(i)) max=! w(i) }"}) {
    const std::string name = std::string(text).substr(4, std::string(text).find('(') - 4);
    const bool sums = name == "count";
    for (const CompiledKernel& kernel : checked(text, {integers({6}), floats({6})}, {{"B", 3}})) {
      std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
      inputs.push_back(tensor_of<int32_t>(integers({6}), {0, 1, 2, 1, 1, 0}));
      inputs.push_back(tensor_of<float>(floats({6}), {1, 2, 4, 8, 16, 32}));
      ASSERT_TRUE(kernel.run(inputs, outputs));
      EXPECT_EQ(elements_of<float>(outputs[0]), (sums ? std::vector<float>{33, 26, 4} : std::vector<float>{32, 16, 4}));
      for (const int32_t wrong : {3, -1}) {
        inputs[0].data_as<int32_t>()[3] = wrong;
        outputs = take(kernel.allocate_outputs());
        EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(wrong, 0, "H", 3, fmt::format("S1 of '{}'", name)));
        EXPECT_EQ(elements_of<float>(outputs[0]),
                  (sums ? std::vector<float>{33, 18, 4} : std::vector<float>{32, 16, 4}))
            << "the update outside has changed an element";
      }
    }
  }
}

/// The subscript of one statement is what another one has made, in a kernel before or in the same.
TEST(CheckBounds, SubscriptsThatTheDefComputes) {
  const char* text = R"(def chain(int32(N,M) a, float(B) x) -> (s, y) {
  s(i) +=! a(i,j)
  y(i) = x(s(i))
})";
  for (const CompiledKernel& kernel : checked(text, {integers({5, 3}), floats({7})})) {
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(tensor_of<int32_t>(integers({5, 3}), {1, 1, 1, 0, 0, 0, 2, 2, 2, 1, 0, 0, 1, 1, 0}));
    inputs.push_back(tensor_of<float>(floats({7}), {0, 10, 20, 30, 40, 50, 60}));
    ASSERT_TRUE(kernel.run(inputs, outputs));
    EXPECT_EQ(elements_of<float>(outputs[1]), (std::vector<float>{30, 0, 60, 10, 20}));
    inputs[0].data_as<int32_t>()[8] = 3;
    EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(7, 0, "x", 7, "S1 of 'chain'"));
  }
}

TEST(CheckBounds, TensorsWithoutElements) {
  std::vector<CompiledKernel> kernels =
      checked("def gather(float(N) x, int32(K) at) -> (y) { y(k) = x(at(k)) }", {floats({0}), integers({2})});
  kernels.erase(kernels.begin());  // the CPU's reads nothing and says nothing
  for (const CompiledKernel& kernel : kernels) {
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(take(Tensor::allocate(floats({0}))));
    inputs.push_back(tensor_of<int32_t>(integers({2}), {0, 0}));
    EXPECT_EQ(error_of(kernel.run(inputs, outputs)),
              "error: subscript 0 of 'x' is outside [0, 0), in statement S0 of 'gather'\n");
  }
}

/// A subscript that accesses have in common is one check, of which a kernel takes up to 64.
TEST(CheckBounds, EqualSubscriptsAreCheckedOnce) {
  const auto text = [](int reads, const char* subscript) {
    std::string sum;
    for (int r = 0; r < reads; ++r) {
      sum += fmt::format("{}x({},{})", r > 0 ? " + " : "", r, fmt::format(fmt::runtime(subscript), r));
    }
    return fmt::format("def sum(float({},N) x, int32(K) at) -> (y) {{ y(k) = {} }}", reads, sum);
  };
  Request request{.inputs = {floats({70, 4}), integers({3})}};
  request.options.check_bounds = true;
  const CompiledKernel kernel = take(compile(text(70, "at(k)"), request));
  std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
  inputs.push_back(tensor_of<float>(floats({70, 4}), std::vector<float>(280, 1)));
  inputs.push_back(tensor_of<int32_t>(integers({3}), {3, 0, 2}));
  ASSERT_TRUE(kernel.run(inputs, outputs));
  EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{70, 70, 70}));
  inputs[1].data_as<int32_t>()[1] = 4;
  EXPECT_EQ(error_of(kernel.run(inputs, outputs)), fault(4, 1, "x", 4, "S0 of 'sum'"));
  EXPECT_EQ(error_of(compile(text(70, "at(k) + {}"), request)),
            "error: 'sum' has 70 data-dependent subscripts; up to 64 can be checked when the kernel runs, which "
            "check_bounds asks for\n");
}

/// Subscripts of indices alone are no data, whatever intrinsics make of them: none needs a check at run time.
TEST(CheckBounds, FunctionsOfIndices) {
  const auto compiled = [](const std::string& subscript, const std::string& range, int64_t n) {
    const std::string text =
        fmt::format("def f(float(N) X, int32(M) B) -> (O) {{ O(i) = {} where i in {} }}", subscript, range);
    return compile(text, {.inputs = {floats({n}), integers({1})}});
  };
  const auto run = [&](const std::string& subscript, const std::string& range, std::vector<float> x) {
    const CompiledKernel kernel = take(compiled(subscript, range, std::ssize(x)));
    std::vector<Tensor> inputs, outputs = take(kernel.allocate_outputs());
    inputs.push_back(tensor_of<float>(kernel.inputs()[0], x));
    inputs.push_back(tensor_of<int32_t>(kernel.inputs()[1], {1}));
    EXPECT_TRUE(kernel.run(inputs, outputs));
    return elements_of<float>(outputs[0]);
  };
  EXPECT_EQ(run("X(bitwise_xor(i,1))", "0:N", {1, 2, 3, 4}), (std::vector<float>{2, 1, 4, 3}));
  EXPECT_EQ(run("X(abs(i - 3))", "0:6", {1, 2, 3, 4}), (std::vector<float>{4, 3, 2, 1, 2, 3}));
  EXPECT_EQ(run("bitwise_xor(i,1) < N ? X(bitwise_xor(i,1)) : 0.0", "0:N", {1, 2, 3}), (std::vector<float>{2, 1, 0}));
  EXPECT_EQ(run("X(popcount(i))", "0:7", {1, 2, 3}), (std::vector<float>{1, 2, 2, 3, 2, 3, 3}));
  EXPECT_NE(error_of(compiled("X(bitwise_xor(i,1))", "0:N", 3))
                .find("'X' has extent 3 in dimension 0, but "
                      "X(bitwise_xor(i,1)) is at 3"),
            std::string::npos);
  EXPECT_NE(error_of(compiled("X(bitwise_xor(i,-2))", "0:N", 3)).find("is at -1"), std::string::npos);
  EXPECT_TRUE(compiled("X(popcount(i) + B(0))", "0:N", 3)) << "data decide: the user's promise";
  EXPECT_TRUE(compiled("X(int32(sqrt(float(i)) + 9.0))", "0:N", 3)) << "no proof by floats, in which backends differ";
  EXPECT_NE(error_of(compiled("X(abs(i - 100))", "0:8", 8)).find("it needs 101 <= N, but N is 8"), std::string::npos);
  // A condition that needs no data holds beside one that does.
  EXPECT_EQ(run("bitwise_xor(i,1) < N && B(0) > 0 ? X(bitwise_xor(i,1)) : 0.0", "0:N", {1, 2, 3}),
            (std::vector<float>{2, 1, 0}));
  // Scalars that are not compiled in have nothing to do with it.
  EXPECT_TRUE(compile("def f(float a, float(N) X) -> (Y) { Y(i) = a * X(bitwise_xor(i,1)) where i in 0:N }",
                      {.inputs = {floats({4})}}));
  Request late{.inputs = {floats({4194304}), integers({1})}};
  late.budget.wall_clock_ms = 200;
  const std::clock_t begin = std::clock();  // the processor's time: what others take of the machine is no fault
  const auto stopped = compile(
      "def f(float(N) X, int32(M) B) -> (O) { O(i) = X(popcount(i)) + X(popcount(i) + 1) + "
      "X(popcount(i) + 2) + X(popcount(i) + 3) where i in 0:N }",
      late);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::kBudget) << stopped.error().to_string();
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 1.2);
  EXPECT_NE(error_of(compiled("X(bitwise_and(i,3))", "0:5000000", 8)).find("takes more than 4194304 values"),
            std::string::npos);
  Request checked{.inputs = {floats({8}), integers({1})}};
  checked.options.check_bounds = true;
  EXPECT_TRUE(
      compile("def f(float(N) X, int32(M) B) -> (O) { O(i) = X(bitwise_and(i,3)) where i in 0:5000000 }", checked));
}

}  // namespace
}  // namespace tc::api
