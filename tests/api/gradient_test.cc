#include <gtest/gtest.h>

#include <numeric>

#include "tests/api/tensors.h"

namespace tc::api {
namespace {

using testing::elements_of;
using testing::error_of;
using testing::floats;
using testing::take;
using testing::tensor_of;

/// A text that the front end takes.
std::string gradient_of(const char* text) {
  std::string gradient = take(take(Engine::create(text)).gradient());
  take(Engine::create(gradient));
  return gradient;
}

std::string refusal_of(const char* text) {
  const std::string sentence = error_of(take(Engine::create(text)).gradient());
  return sentence.substr(0, sentence.find('\n'));
}

TensorSpec ints(std::vector<int64_t> shape) { return {.type = ScalarType::kInt32, .shape = std::move(shape)}; }

std::vector<Tensor> both(Tensor first, Tensor second) {
  std::vector<Tensor> tensors;
  tensors.push_back(std::move(first));
  tensors.push_back(std::move(second));
  return tensors;
}

std::vector<Tensor> one_tensor(const std::vector<float>& elements) {
  std::vector<Tensor> tensors;
  tensors.push_back(tensor_of<float>(floats({static_cast<int64_t>(elements.size())}), elements));
  return tensors;
}

std::vector<Tensor> results_of(const std::string& text, const std::vector<Tensor>& inputs) {
  Request request;
  for (const Tensor& input : inputs) request.inputs.push_back(input.spec());
  const CompiledKernel kernel = take(compile(text, request));
  std::vector<Tensor> outputs = take(kernel.allocate_outputs());
  const Result<void> done = kernel.run(inputs, outputs);
  EXPECT_TRUE(done) << done.error().to_string();
  return outputs;
}

/// Of a def of one result, with weights for its elements: the gradient by its first input.
std::vector<float> gradient_by_first(const char* text, const std::vector<Tensor>& inputs,
                                     const std::vector<float>& weights) {
  const std::string gradient = gradient_of(text);
  const Tensor result = std::move(results_of(text, inputs)[0]);
  const Signature signature = take(take(Engine::create(gradient)).signature());
  const Signature of_def = take(take(Engine::create(text)).signature());
  std::vector<Tensor> arguments;
  for (const Argument& wanted : signature.parameters) {
    const auto input = std::ranges::find(of_def.parameters, wanted.name, &Argument::name);
    if (input != of_def.parameters.end()) {
      arguments.push_back(Tensor::borrow(inputs[static_cast<size_t>(input - of_def.parameters.begin())].dl()));
    } else if (wanted.name == of_def.results[0].name) {
      arguments.push_back(Tensor::borrow(result.dl()));
    } else {
      arguments.push_back(tensor_of<float>(floats(result.spec().shape), weights));
    }
  }
  return elements_of<float>(results_of(gradient, arguments)[0]);
}

/// The same by differences to both sides: exact, up to second order in each element.
std::vector<float> differences_by_first(const char* text, const std::vector<Tensor>& inputs,
                                        const std::vector<float>& weights) {
  std::vector<float> gradient;
  float* const x = inputs[0].data_as<float>();
  const auto loss = [&] {
    const std::vector<float> result = elements_of<float>(results_of(text, inputs)[0]);
    return std::inner_product(result.begin(), result.end(), weights.begin(), 0.0F);
  };
  for (int64_t i = 0; i < inputs[0].spec().elements(); ++i) {
    x[i] += 1;
    const float above = loss();
    x[i] -= 2;
    gradient.push_back((above - loss()) / 2);
    x[i] += 1;
  }
  return gradient;
}

TEST(Gradient, OfAContraction) {
  EXPECT_EQ(gradient_of("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"),
            "def mm_gradient(\n"
            "    float32(M, K) A,\n"
            "    float32(K, N) B,\n"
            "    float32(M, N) d_C\n"
            ") -> (float32(M, K) d_A, float32(K, N) d_B) {\n"
            "  d_A(m, k) +=! d_C(m, n) * B(k, n)\n"
            "  d_B(k, n) +=! d_C(m, n) * A(m, k)\n"
            "}\n");
}

TEST(Gradient, OfAMapKeepsWhatItReadsAndWhatGivesTheSizes) {
  EXPECT_EQ(gradient_of("def f(float a, float(N) x, float(N) y) -> (z) { z(i) = a * x(i) + y(i) }"),
            "def f_gradient(float32 a, float32(N) d_z) -> (float32(N) d_x, float32(N) d_y) {\n"
            "  d_x(i) = d_z(i) * a\n"
            "  d_y(i) = d_z(i)\n"
            "}\n");
  EXPECT_EQ(gradient_of("def sum(float(M,K) A) -> (s) { s(m) +=! A(m,k) }"),
            "def sum_gradient(float32(M, K) A, float32(M) d_s) -> (float32(M, K) d_A) {\n"
            "  d_A(m, k) = d_s(m)\n"
            "}\n");
}

TEST(Gradient, OfComputedSubscriptsIsASumIntoPlaces) {
  EXPECT_EQ(gradient_of("def c(float(W) I, float(K) w) -> (O) { O(x) +=! I(x + k) * w(k) }"),
            "def c_gradient(\n"
            "    float32(W) I,\n"
            "    float32(K) w,\n"
            "    float32(W - K + 1) d_O\n"
            ") -> (float32(W) d_I, float32(K) d_w) {\n"
            "  d_I(x + k) +=! d_O(x) * w(k)\n"
            "  d_w(k) +=! d_O(x) * I(x + k) where k in 0:K\n"
            "}\n");
}

/// The line of a gradient does not have all reads of its statement, of which another may bound an index.
TEST(Gradient, OfRangesThatAnotherReadBounds) {
  const auto check = [](const char* text, const std::vector<Tensor>& inputs, std::vector<float> weights) {
    EXPECT_EQ(gradient_by_first(text, inputs, weights), differences_by_first(text, inputs, weights)) << text;
  };
  const std::vector<float> six{1, 2, 3, 5, 7, 11};
  const std::vector<float> weights{2, 3, 5, 7, 11, 13};
  check("def f(float(N) x) -> (o) { o(i) = x(i - 1) }", one_tensor(six), {2, 3, 5, 7, 11, 13, 17});
  check("def f(float(N) x) -> (o) { o(i) = x(i + 2) }", one_tensor(six), {2, 3, 5, 7});
  check("def f(float(N) x) -> (o) { o(i) = x(i - 1) + x(i) + x(i + 1) }", one_tensor(six), {2, 3, 5, 7, 11});
  check("def f(float(N) x) -> (o) { o(i) = x(i - 2) * x(i - 1) }", one_tensor(six), {2, 3, 5, 7, 11, 13, 17});
  check("def f(float(N) x) -> (float(1) o) { o(0) +=! x(i) * x(N - 1 - i) * x(i - 1) }", one_tensor(six), {2});
  for (const char* text : {"def f(float(N) x, float(N) y) -> (o) { o(i) = x(i) + y(i - 1) }",
                           "def f(float(N) x, float(N) y) -> (o) { o(i) = x(i - 1) * y(i) }",
                           "def f(float(N) x, float(N) y) -> (o) { o(i) = x(i) * y(i + 1) }"}) {
    const bool less = std::string_view(text).ends_with("y(i + 1) }");
    check(text, both(tensor_of<float>(floats({6}), six), tensor_of<float>(floats({6}), six)),
          std::vector<float>(weights.begin(), weights.end() - (less ? 1 : 0)));
  }
  check("def f(float(N) x, float(K) w) -> (o) { o(i) +=! x(i - 1 + k) * w(k) }",
        both(tensor_of<float>(floats({6}), six), tensor_of<float>(floats({3}), {1, 2, 3})), {2, 3, 5, 7, 11});
}

TEST(Gradient, OfTheBestOfAValueAndNaNIsTheValues) {
  EXPECT_EQ(gradient_by_first("def f(float(N) x) -> (o) { o(i) = fmax(x(i), nan) }", one_tensor({1, 2}), {3, 5}),
            (std::vector<float>{3, 5}));
}

TEST(Gradient, OfAProductHasIndicesOfItsOwn) {
  const std::string gradient = gradient_of("def f(float(N,K,L) x) -> (o) { o(i) *=! x(i,k,other_k) }");
  EXPECT_NE(gradient.find("other_k_ in 0:K"), std::string::npos) << gradient;
}

TEST(Gradient, RoundsTemporariesAsTheDefDoes) {
  const std::string gradient =
      gradient_of("def f(float(N) x) -> (o) { float8_e4m3 t(i) = x(i) * x(i)  o(i) = t(i) * x(i) }");
  EXPECT_NE(gradient.find("float8_e4m3 t(i) = "), std::string::npos) << gradient;
}

TEST(Gradient, OfASumThatDoesNotDependOnItsIndex) {
  EXPECT_EQ(gradient_of("def f(float(M,K) A, float(M) b) -> (y) { y(m) +=! A(m,k) + b(m) }"),
            "def f_gradient(float32(M, K) A, float32(M) d_y) -> (float32(M, K) d_A, float32(M) d_b) {\n"
            "  d_A(m, k) = d_y(m)\n"
            "  d_b(m) +=! d_y(m) where k in 0:K\n"
            "}\n");
}

TEST(Gradient, GoesThroughTemporariesAndComputesThemAgain) {
  EXPECT_EQ(gradient_of("def f(float(M,K) A, float(K) x) -> (y) { t(m) +=! A(m,k) * x(k)\n y(m) = tanh(t(m)) }"),
            "def f_gradient(\n"
            "    float32(M, K) A,\n"
            "    float32(K) x,\n"
            "    float32(M) d_y\n"
            ") -> (float32(M, K) d_A, float32(K) d_x) {\n"
            "  float32 t(m) +=! A(m, k) * x(k) where m in 0:M, k in 0:K\n"
            "  float32 d_t(m) = d_y(m) * (1.0 - tanh(t(m)) * tanh(t(m))) where m in 0:M\n"
            "  d_A(m, k) = d_t(m) * x(k) where m in 0:M, k in 0:K\n"
            "  d_x(k) +=! d_t(m) * A(m, k) where m in 0:M, k in 0:K\n"
            "}\n");
}

TEST(Gradient, OfATensorThatIsOverwrittenNamesItsStates) {
  EXPECT_EQ(gradient_of("def f(float(N) x) -> (y) { y(i) = exp(x(i))\n y(i) = y(i) * y(i) }"),
            "def f_gradient(float32(N) x, float32(N) d_y) -> (float32(N) d_x) {\n"
            "  float32 y_1(i) = exp(x(i)) where i in 0:N\n"
            "  float32 d_y_1(i) = d_y(i) * y_1(i) + d_y(i) * y_1(i) where i in 0:N\n"
            "  d_x(i) = d_y_1(i) * exp(x(i)) where i in 0:N\n"
            "}\n");
}

TEST(Gradient, OfAResultThatIsReadAddsToTheCallers) {
  EXPECT_EQ(gradient_of("def f(float(N) x) -> (y, z) { y(i) = 2.0 * x(i)\n z(i) = y(i) * y(i + 1) }"),
            "def f_gradient(float32(N) y, float32(N) d_y, float32(N - 1) d_z) -> (float32(N) d_x) {\n"
            "  float32 g_y(i0) = d_y(i0) where i0 in 0:N\n"
            "  g_y(i) += d_z(i) * y(i + 1) where i in 0:N - 1\n"
            "  g_y(i + 1) += d_z(i) * y(i) where i in 0:N - 1\n"
            "  d_x(i) = g_y(i) * 2.0 where i in 0:N\n"
            "}\n");
}

TEST(Gradient, OfAMaximumIsSharedByTheBest) {
  EXPECT_EQ(gradient_of("def f(float(M,K) A) -> (m) { m(i) max=! A(i,k) }"),
            "def f_gradient(float32(M, K) A, float32(M) m, float32(M) d_m) -> (float32(M, K) d_A) {\n"
            "  float32 n_m(i) +=! A(i, k) == m(i) ? 1.0 : 0.0 where i in 0:M, k in 0:K\n"
            "  d_A(i, k) = A(i, k) == m(i) ? d_m(i) / n_m(i) : 0.0 where i in 0:M, k in 0:K\n"
            "}\n");
}

TEST(Gradient, OfASumIntoComputedPlacesIsReadFromThem) {
  const char* const text = "def h(float(N) x, int32(N) at) -> (float(4) H) { H(at(i)) +=! x(i) * x(i) }";
  EXPECT_EQ(gradient_of(text),
            "def h_gradient(float32(N) x, int32(N) at, float32(4) d_H) -> (float32(N) d_x) {\n"
            "  d_x(i) = d_H(at(i)) * x(i) + d_H(at(i)) * x(i)\n"
            "}\n");
  const std::vector<Tensor> inputs =
      both(tensor_of<float>(floats({5}), {3, -1, 2, 5, -2}), tensor_of<int32_t>(ints({5}), {2, 0, 2, 1, 0}));
  const std::vector<float> weights = {1, 2, -3, 4};
  EXPECT_EQ(gradient_by_first(text, inputs, weights), differences_by_first(text, inputs, weights));
}

TEST(Gradient, OfASumIntoComputedPlacesThatIsOverwritten) {
  const char* const text = "def h(float(N) x, int32(N) at) -> (float(4) H) { H(at(i)) +=! x(i)\n H(j) = H(j) * H(j) }";
  const std::vector<Tensor> inputs =
      both(tensor_of<float>(floats({5}), {3, -1, 2, 5, -2}), tensor_of<int32_t>(ints({5}), {2, 0, 2, 1, 0}));
  const std::vector<float> weights = {1, 2, -3, 4};
  EXPECT_EQ(gradient_by_first(text, inputs, weights), differences_by_first(text, inputs, weights));
}

TEST(Gradient, OfAPaddedTemporary) {
  const char* const text =
      "def pad(float(H) I, float(K) w) -> (O) { P(h) = I(h-1) where h in 1:H+1\n O(i) +=! P(i+k) * w(k) }";
  const std::vector<Tensor> inputs =
      both(tensor_of<float>(floats({5}), {3, -1, 2, 5, -2}), tensor_of<float>(floats({3}), {1, 10, 100}));
  const std::vector<float> weights = {1, 2, -3, 4};
  EXPECT_EQ(gradient_by_first(text, inputs, weights), differences_by_first(text, inputs, weights));
}

TEST(Gradient, OfAPaddedTruthValue) {
  const char* const text =
      "def f(float(N) x, bool(N) p) -> (y) {\n"
      "  bool q(i) = p(i - 1) where i in 1:N\n  y(i) = q(i) ? x(i) * x(i) : x(i) }";
  EXPECT_EQ(gradient_of(text),
            "def f_gradient(float32(N) x, bool(N) p, float32(N) d_y) -> (float32(N) d_x) {\n"
            "  bool q(i0) = bool(0) where i0 in 0:N\n"
            "  q(i) = p(i - 1) where i in 1:N\n"
            "  d_x(i) = (q(i) ? d_y(i) * x(i) : 0.0) + (q(i) ? d_y(i) * x(i) : 0.0) + (q(i) ? 0.0 : d_y(i))\n"
            "      where i in 0:N\n"
            "}\n");
}

TEST(Gradient, OfABranchThatIsNotChosenIsZero) {
  const auto of = [](const std::string& right) {
    std::vector<Tensor> inputs;
    inputs.push_back(tensor_of<float>(floats({4}), {-1, 0, 0.25F, 4}));
    const std::string text = "def f(float(N) x) -> (y) { y(i) = " + right + " }";
    return gradient_by_first(text.c_str(), inputs, {1, 2, 3, 4});
  };
  // At 0 the slope of a logarithm is infinite, and below it there is none.
  EXPECT_EQ(of("x(i) > 0.0 ? log(x(i)) : 0.0"), (std::vector<float>{0, 0, 12, 1}));
  EXPECT_EQ(of("x(i) <= 0.0 ? 3.0 * x(i) : 2.0 * log(x(i))"), (std::vector<float>{3, 6, 24, 2}));
  EXPECT_EQ(of("select(x(i) > 0.0, x(i) > 1.0 ? log(x(i)) : x(i), 0.0)"), (std::vector<float>{0, 0, 3, 1}));
  EXPECT_EQ(of("relu(sqrt(abs(x(i))))"), (std::vector<float>{-0.5F, 0, 3, 1}));
  EXPECT_EQ(of("max(log(x(i)), 1.0)"), (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(of("max(x(i), x(i)) + min(x(i), 0.5)"), (std::vector<float>{2, 4, 6, 4}));
}

TEST(Gradient, WritesNothingWhereTheSourceReadsNothing) {
  std::vector<Tensor> inputs;
  inputs.push_back(tensor_of<float>(floats({3}), {2, 3, 4}));
  inputs.push_back(tensor_of<int32_t>(ints({4}), {1, -1000000, 2, 1}));
  const char* const text =
      "def f(float(N) x, int32(M) p) -> (y) { y(i) = p(i) >= 0 ? x(p(i)) * x(p(i)) : 0.0 where i in 0:M }";
  EXPECT_EQ(gradient_by_first(text, inputs, {1, 10, 100, 1000}), (std::vector<float>{0, 6006, 800}));
}

TEST(Gradient, OfAnAffinePlaceBehindAGuardStaysInside) {
  const char* const text = "def f(float(N) x) -> (y) { y(i) = i >= 2 ? x(i - 2) * x(i) : x(i) }";
  EXPECT_EQ(gradient_of(text),
            "def f_gradient(float32(N) x, float32(N) d_y) -> (float32(N) d_x) {\n"
            "  d_x(i0) = float32(0.0) where i0 in 0:N\n"
            "  d_x(min(max(i - 2, 0), N - 1)) += i >= 2 ? d_y(i) * x(i) : 0.0 where i in 0:N\n"
            "  d_x(i) += (i >= 2 ? d_y(i) * x(i - 2) : 0.0) + (i >= 2 ? 0.0 : d_y(i)) where i in 0:N\n"
            "}\n");
  std::vector<Tensor> inputs;
  inputs.push_back(tensor_of<float>(floats({4}), {1, 2, 3, 4}));
  EXPECT_EQ(gradient_by_first(text, inputs, {1, 10, 100, 1000}), (std::vector<float>{301, 4010, 100, 2000}));
}

TEST(Gradient, MakesUpNoNameThatTheDefHas) {
  const char* const text =
      "def f(float(N) x, float y_1, float(n_m) w) -> (y, m) { y(i0) = exp(x(i0))\n y(i0) = y(i0) * y_1 * w(0)\n"
      " m max=! x(i) }";
  EXPECT_EQ(gradient_of(text),
            "def f_gradient(\n"
            "    float32(N) x,\n"
            "    float32 y_1,\n"
            "    float32(n_m) w,\n"
            "    float32(1) m,\n"
            "    float32(N) d_y,\n"
            "    float32(1) d_m\n"
            ") -> (float32(N) d_x, float32(n_m) d_w) {\n"
            "  float32 y_1_(i0) = exp(x(i0)) where i0 in 0:N\n"
            "  float32 n2_m +=! x(i) == m(0) ? 1.0 : 0.0 where i in 0:N\n"
            "  d_x(i) = x(i) == m(0) ? d_m(0) / n2_m : 0.0 where i in 0:N\n"
            "  float32 d_y_1_(i0) = d_y(i0) * w(0) * y_1 where i0 in 0:N\n"
            "  d_w(i0) = float32(0.0) where i0 in 0:n_m\n"
            "  d_w(0) += d_y(i0) * (y_1_(i0) * y_1) where i0 in 0:N\n"
            "  d_x(i0) += d_y_1_(i0) * exp(x(i0)) where i0 in 0:N\n"
            "}\n");
  EXPECT_EQ(gradient_of("def f(float(d_x) x) -> (y) { y(i) = 2.0 * x(i) }"),
            "def f_gradient(float32(d_x) d2_y) -> (float32(d_x) d2_x) {\n"
            "  d2_x(i) = d2_y(i) * 2.0\n"
            "}\n");
}

TEST(Gradient, OfTypesThatAreSummedInWiderOnes) {
  EXPECT_EQ(gradient_of("def f(float16(B,N) x, float16(N,M) w, float16(M) b, float16(M,L) v) -> (z) {\n"
                        "  y(i,j) +=! x(i,k) * w(k,j)\n  y(i,j) = relu(y(i,j) + b(j))\n"
                        "  z(i,j) +=! y(i,k) * v(k,j) }"),
            "def f_gradient(\n"
            "    float16(B, N) x,\n"
            "    float16(N, M) w,\n"
            "    float16(M) b,\n"
            "    float16(M, L) v,\n"
            "    float16(B, L) d_z\n"
            ") -> (float16(B, N) d_x, float16(N, M) d_w, float16(M) d_b, float16(M, L) d_v) {\n"
            "  float16 y_1(i, j) +=! x(i, k) * w(k, j) where i in 0:B, j in 0:M, k in 0:N\n"
            "  float16 y(i, j) = relu(y_1(i, j) + b(j)) where i in 0:B, j in 0:M\n"
            "  float16 d_y(i, k) +=! d_z(i, j) * v(k, j) where i in 0:B, j in 0:L, k in 0:M\n"
            "  d_v(k, j) +=! d_z(i, j) * y(i, k) where i in 0:B, j in 0:L, k in 0:M\n"
            "  float16 d_y_1(i, j) = float16(float32(y_1(i, j)) + float32(b(j)) > 0.0 ? float32(d_y(i, j)) : 0.0)\n"
            "      where i in 0:B, j in 0:M\n"
            "  float32 s1_b(j) +=! float32(y_1(i, j)) + float32(b(j)) > 0.0 ? float32(d_y(i, j)) : 0.0\n"
            "      where i in 0:B, j in 0:M\n"
            "  d_b(i0) = float16(s1_b(i0)) where i0 in 0:M\n"
            "  d_x(i, k) +=! d_y_1(i, j) * w(k, j) where i in 0:B, j in 0:M, k in 0:N\n"
            "  d_w(k, j) +=! d_y_1(i, j) * x(i, k) where i in 0:B, j in 0:M, k in 0:N\n"
            "}\n");
}

TEST(Gradient, OfNarrowTypesIsRoundedOnce) {
  EXPECT_EQ(gradient_of("def f(float16(N) x, float16(1) y) -> (float16(N) z) { z(i) = x(i) / y(0) }"),
            "def f_gradient(float16(N) x, float16(1) y, float16(N) d_z) -> (float16(N) d_x, float16(1) d_y) {\n"
            "  d_x(i) = float16(float32(d_z(i)) / float32(y(0)))\n"
            "  float32 s1_y(0) +=! -(float32(d_z(i)) * float32(x(i))) / (float32(y(0)) * float32(y(0)))\n"
            "      where i in 0:N\n"
            "  d_y(i0) = float16(s1_y(i0)) where i0 in 0:1\n"
            "}\n");
  // A sum takes what is wider than the narrow type in the widest.
  EXPECT_EQ(gradient_of("def f(float16(N) x, double(N) y) -> (double s) { s +=! x(0) * y(i) }"),
            "def f_gradient(float16(N) x, float64(N) y, float64(1) d_s) -> (float16(N) d_x, float64(N) d_y) {\n"
            "  float64 s1_x(i0) = 0.0 where i0 in 0:N\n"
            "  s1_x(0) += d_s(0) * y(i) where i in 0:N\n"
            "  d_x(i0) = float16(s1_x(i0)) where i0 in 0:N\n"
            "  d_y(i) = d_s(0) * float32(x(0))\n"
            "}\n");
}

TEST(Gradient, OfAMaximumInComputedPlaces) {
  const char* const text = "def m(float(N) x, int32(N) at) -> (float(4) y) { y(at(i)) max=! x(i) }";
  EXPECT_EQ(gradient_of(text),
            "def m_gradient(float32(N) x, int32(N) at, float32(4) y, float32(4) d_y) -> (float32(N) d_x) {\n"
            "  float32 n_y(i0) = 0.0 where i0 in 0:4\n"
            "  n_y(at(i)) += x(i) == y(at(i)) ? 1.0 : 0.0 where i in 0:N\n"
            "  d_x(i) = x(i) == y(at(i)) ? d_y(at(i)) / n_y(at(i)) : 0.0 where i in 0:N\n"
            "}\n");
  const std::vector<Tensor> inputs =
      both(tensor_of<float>(floats({6}), {3, -1, 3, 5, -2, 1}), tensor_of<int32_t>(ints({6}), {2, 0, 2, 1, 0, 2}));
  EXPECT_EQ(gradient_by_first(text, inputs, {1, 2, -3, 4}), (std::vector<float>{-1.5F, 1, -1.5F, 2, 0, 0}));
}

TEST(Gradient, OfAMaximumOfComputedValuesComputesBothAgain) {
  EXPECT_EQ(gradient_of("def f(float(M,K) A, float(K) b) -> (m) { m(i) max=! A(i,k) * b(k) }"),
            "def f_gradient(\n"
            "    float32(M, K) A,\n"
            "    float32(K) b,\n"
            "    float32(M) d_m\n"
            ") -> (float32(M, K) d_A, float32(K) d_b) {\n"
            "  float32 v_m(i, k) = A(i, k) * b(k) where i in 0:M, k in 0:K\n"
            "  float32 b_m(i) max=! v_m(i, k) where i in 0:M, k in 0:K\n"
            "  float32 n_m(i) +=! v_m(i, k) == b_m(i) ? 1.0 : 0.0 where i in 0:M, k in 0:K\n"
            "  float32 d_v_m(i, k) = v_m(i, k) == b_m(i) ? d_m(i) / n_m(i) : 0.0 where i in 0:M, k in 0:K\n"
            "  d_A(i, k) = d_v_m(i, k) * b(k) where i in 0:M, k in 0:K\n"
            "  d_b(k) +=! d_v_m(i, k) * A(i, k) where i in 0:M, k in 0:K\n"
            "}\n");
}

TEST(Gradient, OfAMaximumOfNarrowValuesComparesThemBeforeTheyAreRounded) {
  EXPECT_EQ(gradient_of("def f(float16(M,K) A) -> (float16(M) m) { m(i) max=! A(i,k) * A(i,k) }"),
            "def f_gradient(float16(M, K) A, float16(M) d_m) -> (float16(M, K) d_A) {\n"
            "  float32 v_m(i, k) = A(i, k) * A(i, k) where i in 0:M, k in 0:K\n"
            "  float32 b_m(i) max=! v_m(i, k) where i in 0:M, k in 0:K\n"
            "  float32 n_m(i) +=! v_m(i, k) == b_m(i) ? 1.0 : 0.0 where i in 0:M, k in 0:K\n"
            "  float32 d_v_m(i, k) = float32(v_m(i, k) == b_m(i) ? float32(d_m(i)) / n_m(i) : 0.0)\n"
            "      where i in 0:M, k in 0:K\n"
            "  d_A(i, k) = float16(d_v_m(i, k) * float32(A(i, k)) + d_v_m(i, k) * float32(A(i, k)))\n"
            "      where i in 0:M, k in 0:K\n"
            "}\n");
}

TEST(Gradient, OfAMaximumOfAMaskedInputComparesInputs) {
  EXPECT_EQ(gradient_of("def f(float(M,K) A, bool(M,K) p) -> (m) { m(i) max=! p(i,k) ? A(i,k) : -1.0 / 0 }"),
            "def f_gradient(float32(M, K) A, bool(M, K) p, float32(M) m, float32(M) d_m) -> (float32(M, K) d_A) {\n"
            "  float32 n_m(i) +=! (p(i, k) ? A(i, k) : -inf) == m(i) ? 1.0 : 0.0 where i in 0:M, k in 0:K\n"
            "  d_A(i, k) = p(i, k) ? (p(i, k) ? A(i, k) : -inf) == m(i) ? d_m(i) / n_m(i) : 0.0 : 0.0\n"
            "      where i in 0:M, k in 0:K\n"
            "}\n");
}

TEST(Gradient, OfAProductMultipliesTheOthers) {
  EXPECT_EQ(gradient_of("def f(float(M,K) A) -> (p) { p(i) *=! A(i,k) }"),
            "def f_gradient(float32(M, K) A, float32(M) d_p) -> (float32(M, K) d_A) {\n"
            "  float32 r_p(i, k) *=! other_k != k ? A(i, other_k) : float32(1.0)\n"
            "      where i in 0:M, k in 0:K, other_k in 0:K\n"
            "  d_A(i, k) = d_p(i) * r_p(i, k) where i in 0:M, k in 0:K\n"
            "}\n");
}

TEST(Gradient, OfWhatIsUpdatedIsByItsOldValues) {
  EXPECT_EQ(gradient_of("def f(float b, float(M,K) A, float(K,N) B) -> (C) { C(m,n) = b * C(m,n) * C(m,n)\n"
                        " C(m,n) += A(m,k) * B(k,n) }"),
            "def f_gradient(\n"
            "    float32 b,\n"
            "    float32(M, K) A,\n"
            "    float32(K, N) B,\n"
            "    float32(M, N) old_C,\n"
            "    float32(M, N) d_C\n"
            ") -> (float32(M, K) d_A, float32(K, N) d_B, float32(M, N) d_old_C) {\n"
            "  d_A(m, k) +=! d_C(m, n) * B(k, n) where m in 0:M, n in 0:N, k in 0:K\n"
            "  d_B(k, n) +=! d_C(m, n) * A(m, k) where m in 0:M, n in 0:N, k in 0:K\n"
            "  d_old_C(m, n) = d_C(m, n) * old_C(m, n) * b + d_C(m, n) * (b * old_C(m, n))\n"
            "      where m in 0:M, n in 0:N\n"
            "}\n");
}

TEST(Gradient, OfAPartThatIsOverwrittenGoesToTheOtherElements) {
  EXPECT_EQ(gradient_of("def f(float(N) x, float(3) z) -> (float(N) y) { y(i) = x(i)\n y(j) = z(j) where j in 0:3 }"),
            "def f_gradient(float32(N) d_y) -> (float32(N) d_x, float32(3) d_z) {\n"
            "  float32 d_y_1(i0) = d_y(i0) where i0 in 0:N\n"
            "  d_y_1(j) = float32(0.0) where j in 0:3\n"
            "  d_z(j) = d_y(j) where j in 0:3\n"
            "  d_x(i) = d_y_1(i) where i in 0:N\n"
            "}\n");
}

TEST(Gradient, OfPartsThatLieApartNeedsNoCopies) {
  EXPECT_EQ(gradient_of("def f(float(N,2*E) x, float(E) a) -> (float(N,2*E) y) {\n"
                        " y(n,d) = x(n,d) * a(d) where d in 0:E\n y(n,d + E) = x(n,d) - x(n,d + E) where d in 0:E }"),
            "def f_gradient(\n"
            "    float32(N, 2 * E) x,\n"
            "    float32(E) a,\n"
            "    float32(N, 2 * E) d_y\n"
            ") -> (float32(N, 2 * E) d_x, float32(E) d_a) {\n"
            "  d_x(i0, i1) = float32(0.0) where i0 in 0:N, i1 in 0:E * 2\n"
            "  d_x(n, d) += d_y(n, d + E) where n in 0:N, d in 0:E\n"
            "  d_x(n, d + E) += -d_y(n, d + E) where n in 0:N, d in 0:E\n"
            "  d_x(n, d) += d_y(n, d) * a(d) where n in 0:N, d in 0:E\n"
            "  d_a(d) +=! d_y(n, d) * x(n, d) where n in 0:N, d in 0:E\n"
            "}\n");
  EXPECT_EQ(gradient_of("def f(float(N) x) -> (y) { y(2*i) = x(i)\n y(2*i + 1) = x(i) * x(i) }"),
            "def f_gradient(float32(N) x, float32(N * 2) d_y) -> (float32(N) d_x) {\n"
            "  d_x(i) = d_y(2 * i + 1) * x(i) + d_y(2 * i + 1) * x(i) where i in 0:N\n"
            "  d_x(i) += d_y(2 * i) where i in 0:N\n"
            "}\n");
}

TEST(Gradient, OfAGradientTakesNamesOfItsOwn) {
  EXPECT_EQ(gradient_of(gradient_of("def f(float(N) x) -> (y) { y(i) = x(i) * x(i) * x(i) }").c_str()),
            "def f_gradient_gradient(\n"
            "    float32(N) x,\n"
            "    float32(N) d_y,\n"
            "    float32(N) d2_d_x\n"
            ") -> (float32(N) d2_x, float32(N) d2_d_y) {\n"
            "  d2_d_y(i) = d2_d_x(i) * x(i) * x(i) + d2_d_x(i) * x(i) * x(i) + d2_d_x(i) * (x(i) * x(i))\n"
            "  d2_x(i) = d2_d_x(i) * x(i) * d_y(i) + d2_d_x(i) * (d_y(i) * x(i)) + d2_d_x(i) * x(i) * d_y(i) +\n"
            "      d2_d_x(i) * (d_y(i) * x(i)) + d2_d_x(i) * d_y(i) * x(i) + d2_d_x(i) * d_y(i) * x(i)\n"
            "}\n");
}

TEST(Gradient, OfAStrideThatACallGives) {
  EXPECT_EQ(gradient_of("def f(int s, float(W) I, float(K) w) -> (O) { O(x) +=! I(s * x + k) * w(k) }"),
            "def f_gradient(\n"
            "    int32 s,\n"
            "    float32(W) I,\n"
            "    float32(K) w,\n"
            "    float32(extent_O_0) d_O\n"
            ") -> (float32(W) d_I, float32(K) d_w) {\n"
            "  d_I(i0) = float32(0.0) where i0 in 0:W\n"
            "  d_I(s * x + k) += d_O(x) * w(k) where x in 0:(W - K) / s + 1, k in 0:K\n"
            "  d_w(k) +=! d_O(x) * I(s * x + k) where x in 0:(W - K) / s + 1, k in 0:K\n"
            "}\n");
}

TEST(Gradient, KeepsTheTypeOfAFunctionsArgument) {
  // A logarithm of 2.5 in float32 would be off by 1e-8.
  EXPECT_EQ(gradient_of("def f(double(N) x) -> (y) { y(i) = pow(2.5, x(i)) }"),
            "def f_gradient(float64(N) x, float64(N) d_y) -> (float64(N) d_x) {\n"
            "  d_x(i) = d_y(i) * log(float64(2.5)) * pow(float64(2.5), x(i))\n"
            "}\n");
}

TEST(Gradient, SaysWhatItCannotDerive) {
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (y) { y(i) = lgamma(x(i)) }"),
            "tc:1:35: error: no gradient is derived through 'lgamma': its derivative is no function of the language; "
            "give the gradient as a def of your own");
  EXPECT_EQ(refusal_of("def f(float(N) x, int32(N) p) -> (y) { y(i) = p(i) + int32(x(i)) }"),
            "tc:1:5: error: 'f' has no gradient; its results are integers or truth values, which change in steps: "
            "their derivative is 0 wherever it exists");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (float(N) y) { y(i) = x(i) > 0.0 ? 1.0 : 2.0 }"),
            "tc:1:5: error: 'f' has no gradient; no result of floats depends on a float input");
  EXPECT_EQ(refusal_of("def f(int32(N) x) -> (y) { y(i) = x(i) + 1 }"),
            "tc:1:5: error: 'f' has no gradient; there is nothing to differentiate by: no tensor among its inputs is "
            "of floats");
}

}  // namespace
}  // namespace tc::api
