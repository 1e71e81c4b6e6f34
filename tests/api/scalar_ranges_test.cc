// C11 and R6 in numbers: convolutions with compiled-in scalars, against loops written here.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/api/tensors.h"
#include "tests/common/temporary_folder.h"

namespace tc::api {
namespace {

using testing::elements_of;
using testing::error_of;
using testing::floats;
using testing::take;
using testing::TemporaryFolder;
using testing::tensor_of;

std::vector<float> counting(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  return x;
}

/// The result of the only def of a text for inputs X and W, and these scalars.
std::vector<float> run(const std::string& text, const std::vector<float>& x, const std::vector<float>& w,
                       const std::vector<std::pair<std::string, int64_t>>& scalars = {}) {
  const Engine engine = take(Engine::create(text));
  Request request;
  request.inputs = {floats({static_cast<int64_t>(x.size())}), floats({static_cast<int64_t>(w.size())})};
  std::vector<Scalar> values;
  for (const auto& [name, value] : scalars) {
    request.scalars.emplace(name, Scalar(value));
    values.emplace_back(value);
  }
  const CompiledKernel kernel = take(engine.compile(request));
  std::vector<Tensor> inputs, outputs;
  inputs.push_back(tensor_of(kernel.inputs()[0], x));
  inputs.push_back(tensor_of(kernel.inputs()[1], w));
  outputs.push_back(take(Tensor::allocate(kernel.outputs()[0])));
  const auto done = kernel.run(inputs, outputs, values);
  EXPECT_TRUE(done.has_value());
  return elements_of<float>(outputs[0]);
}

/// y(o) = sum over k of w(k) * x(place(o, k)), where that is in x.
template <typename Place>
std::vector<float> convolved(const std::vector<float>& x, const std::vector<float>& w, int64_t outputs, Place place) {
  std::vector<float> y(static_cast<size_t>(outputs), 0.0F);
  for (int64_t o = 0; o < outputs; ++o) {
    for (size_t k = 0; k < w.size(); ++k) {
      const int64_t at = place(o, static_cast<int64_t>(k));
      if (at >= 0 && at < std::ssize(x)) y[static_cast<size_t>(o)] += w[k] * x[static_cast<size_t>(at)];
    }
  }
  return y;
}

TEST(ScalarRanges, DilatedConvolution) {
  const auto text = [](const std::string& parameter, const std::string& d) {
    return fmt::format(
        "def f({}float(T) X, float(K) W) -> (O) {{ O(t) +=! (t >= {} * k ? X(t - {} * k) * W(k) : 0.0) }}", parameter,
        d, d);
  };
  const std::vector<float> x = counting(17), w = counting(3);
  for (int64_t d = 1; d <= 4; ++d) {
    const auto expected = convolved(x, w, 17, [&](int64_t t, int64_t k) { return t - d * k; });
    for (const auto& result : {run(text("int d, ", "d"), x, w, {{"d", d}}), run(text("", std::to_string(d)), x, w)}) {
      ASSERT_EQ(result.size(), 17U);
      EXPECT_EQ(result, expected) << "d = " << d;
    }
  }
}

TEST(ScalarRanges, MirroredDilatedConvolution) {
  const auto text = [](const std::string& parameter, const std::string& d) {
    return fmt::format(
        "def f({}float(T) X, float(K) W) -> (O) {{ O(t) +=! (t >= {} * (K - 1 - k) ? X(t - {} * (K - 1 - k)) : 0.0) * "
        "W(k) "
        "where t in 0:T }}",
        parameter, d, d);
  };
  const std::vector<float> x = counting(17), w = {1, 1, 1};
  for (int64_t d = 0; d <= 4; ++d) {
    const auto expected = convolved(x, w, 17, [&](int64_t t, int64_t k) { return t - d * (2 - k); });
    EXPECT_EQ(run(text("int d, ", "d"), x, w, {{"d", d}}), expected) << "d = " << d;
    EXPECT_EQ(run(text("", std::to_string(d)), x, w), expected) << "d = " << d;
  }
}

TEST(ScalarRanges, PaddedStridedConvolution) {
  const auto text = [](const std::string& parameters, const std::string& s, const std::string& p) {
    return fmt::format(
        "def f({2}float(H) X, float(K) W) -> (O) {{ "
        "O(h) +=! ({0} * h + k >= {1} && {0} * h + k - {1} < H ? X({0} * h + k - {1}) : 0.0) * W(k) "
        "where h in 0:(H + 2 * {1} - K) / {0} + 1 }}",
        s, p, parameters);
  };
  const std::vector<float> x = counting(8), w = {1, 2, 3};
  for (int64_t s = 1; s <= 3; ++s) {
    for (int64_t p = 0; p <= 2; ++p) {
      const int64_t outputs = (8 + 2 * p - 3) / s + 1;
      const auto expected = convolved(x, w, outputs, [&](int64_t h, int64_t k) { return s * h + k - p; });
      EXPECT_EQ(run(text("int s, int p, ", "s", "p"), x, w, {{"s", s}, {"p", p}}), expected) << s << ", " << p;
      EXPECT_EQ(run(text("", std::to_string(s), std::to_string(p)), x, w), expected) << s << ", " << p;
    }
  }
}

/// A cast of a scalar in a subscript is compiled in as the scalar is: its value is proved to stay inside.
TEST(ScalarRanges, CastsInSubscripts) {
  const std::vector<float> x = counting(8), w = counting(1);
  for (const char* cast :
       {"int64(d)", "int32(d)", "int16(d)", "uint8(d)", "int32(int64(d))", "int64(d + 0)", "abs(d)"}) {
    const std::string text = fmt::format("def f(int d, float(N) X, float(M) W) -> (O) {{ O(i) = X({}) + X(i) }}", cast);
    EXPECT_EQ(run(text, x, w, {{"d", 3}}), (std::vector<float>{5, 6, 7, 8, 9, 10, 11, 12})) << cast;
    Request request;
    request.inputs = {floats({8}), floats({1})};
    request.scalars.emplace("d", Scalar(int64_t{100}));
    const std::string error = error_of(take(Engine::create(text)).compile(request));
    EXPECT_NE(error.find("it needs 101 <= N, but N is 8"), std::string::npos) << cast << ": " << error;
    const std::string end =
        fmt::format("def f(int d, float(N) X, float(M) W) -> (O) {{ O(i) = X(i) where i in 0:{} }}", cast);
    EXPECT_EQ(run(end, x, w, {{"d", 3}}), (std::vector<float>{1, 2, 3})) << cast;
  }
  const char* left = "def f(int d, float(N) X, float(M) W) -> (O) { O(i + int64(d)) +=! X(i) where i in 0:3 }";
  EXPECT_EQ(run(left, x, w, {{"d", 0}}), (std::vector<float>{1, 2, 3}));
}

TEST(ScalarRanges, ShapesOfEachValueComeFromOneEngine) {
  const Engine engine = take(Engine::create(
      "def f(int d, float(T) X, float(K) W) -> (O) { O(t) +=! t >= d * k && W(k) > 0.0 ? X(t - d * k) : 0.0 }"));
  for (const int64_t d : {1, 3, 1, 2}) {
    Request request;
    request.inputs = {floats({10}), floats({3})};
    request.scalars.emplace("d", Scalar(d));
    EXPECT_EQ(take(engine.infer(request)).outputs[0].shape, std::vector<int64_t>{10});
  }
  EXPECT_EQ(take(engine.signature("f")).results[0].shape, std::vector<std::string>{"?"});
  EXPECT_NE(error_of(engine.gradient("f")).find("its ranges depend on the values of scalars"), std::string::npos);
}

/// Production has no front end: the file tells the shapes for each value that something was compiled for.
TEST(ScalarRanges, ProductionKnowsTheShapesOfEachValue) {
  const TemporaryFolder folder;
  const std::string text =
      "def f(int d, float(T) X, float(K) W) -> (O) { O(t) +=! (t >= d * k ? X(t - d * k) : 0.0) * W(k) }";
  Request request;
  request.inputs = {floats({10}), floats({3})};
  {
    const Engine engine = take(Engine::create(text, "f.tc", {.cache = folder.path("kernels.db")}));
    request.scalars.emplace("d", Scalar(2));
    (void)take(engine.compile(request));
  }
  for (const bool with_text : {true, false}) {
    const Engine engine =
        take(Engine::production(folder.path("kernels.db"), {.text = with_text ? text : std::string()}));
    EXPECT_EQ(engine.entries(), std::vector<std::string>{"f"});
    EXPECT_EQ(take(engine.infer(request)).outputs[0].shape, std::vector<int64_t>{10});
    EXPECT_EQ(take(engine.compile(request)).outputs()[0].shape, std::vector<int64_t>{10});
    Request other = request;
    other.scalars.at("d") = Scalar(3);
    EXPECT_NE(error_of(engine.infer(other)).find("does not know the shapes of 'f' where 'd' is 3"), std::string::npos);
  }
}

}  // namespace
}  // namespace tc::api
