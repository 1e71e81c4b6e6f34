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
            "  d_w(k) +=! d_O(x) * I(x + k)\n"
            "}\n");
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
            "  d_A(i, k) = float32(A(i, k) == m(i) ? d_m(i) / n_m(i) : 0.0) where i in 0:M, k in 0:K\n"
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
            "  d_x(min(max(i - 2, 0), N - 1)) +=! i >= 2 ? d_y(i) * x(i) : 0.0\n"
            "  d_x(i) += (i >= 2 ? d_y(i) * x(i - 2) : 0.0) + (i >= 2 ? 0.0 : d_y(i))\n"
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
            "    float32 m,\n"
            "    float32(N) d_y,\n"
            "    float32 d_m\n"
            ") -> (float32(N) d_x, float32(n_m) d_w) {\n"
            "  float32 y_1_(i0) = exp(x(i0)) where i0 in 0:N\n"
            "  float32 n__m +=! x(i) == m ? 1.0 : 0.0 where i in 0:N\n"
            "  d_x(i) = float32(x(i) == m ? d_m / n__m : 0.0) where i in 0:N\n"
            "  float32 d_y_1_(i0) = d_y(i0) * w(0) * y_1 where i0 in 0:N\n"
            "  d_w(i0_) = float32(0.0) where i0_ in 0:n_m\n"
            "  d_w(0) += d_y(i0) * (y_1_(i0) * y_1) where i0 in 0:N\n"
            "  d_x(i0) += d_y_1_(i0) * exp(x(i0)) where i0 in 0:N\n"
            "}\n");
  EXPECT_EQ(refusal_of("def f(float(d_x) x) -> (y) { y(i) = 2.0 * x(i) }"),
            "tc:1:5: error: the gradient of 'x' is named 'd_x', a name that 'f' has already");
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
            "  float32 s1_y(i0) = 0.0 where i0 in 0:1\n"
            "  s1_y(0) += -(float32(d_z(i)) * float32(x(i))) / (float32(y(0)) * float32(y(0))) where i in 0:N\n"
            "  d_y(i0) = float16(s1_y(i0)) where i0 in 0:1\n"
            "}\n");
  // A sum takes what is wider than the narrow type in the widest.
  EXPECT_EQ(gradient_of("def f(float16(N) x, double(N) y) -> (double s) { s +=! x(0) * y(i) }"),
            "def f_gradient(float16(N) x, float64(N) y, float64 d_s) -> (float16(N) d_x, float64(N) d_y) {\n"
            "  float64 s1_x(i0) = 0.0 where i0 in 0:N\n"
            "  s1_x(0) += d_s * y(i) where i in 0:N\n"
            "  d_x(i0) = float16(s1_x(i0)) where i0 in 0:N\n"
            "  d_y(i) = float64(d_s * float32(x(0)))\n"
            "}\n");
}

TEST(Gradient, OfAMaximumInComputedPlaces) {
  const char* const text = "def m(float(N) x, int32(N) at) -> (float(4) y) { y(at(i)) max=! x(i) }";
  EXPECT_EQ(gradient_of(text),
            "def m_gradient(float32(N) x, int32(N) at, float32(4) y, float32(4) d_y) -> (float32(N) d_x) {\n"
            "  float32 n_y(i0) = 0.0 where i0 in 0:4\n"
            "  n_y(at(i)) += x(i) == y(at(i)) ? 1.0 : 0.0 where i in 0:N\n"
            "  d_x(i) = float32(x(i) == y(at(i)) ? d_y(at(i)) / n_y(at(i)) : 0.0) where i in 0:N\n"
            "}\n");
  const std::vector<Tensor> inputs =
      both(tensor_of<float>(floats({6}), {3, -1, 3, 5, -2, 1}), tensor_of<int32_t>(ints({6}), {2, 0, 2, 1, 0, 2}));
  EXPECT_EQ(gradient_by_first(text, inputs, {1, 2, -3, 4}), (std::vector<float>{-1.5F, 1, -1.5F, 2, 0, 0}));
}

TEST(Gradient, SaysWhatItCannotDerive) {
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (y) { y(i) = lgamma(x(i)) }"),
            "tc:1:35: error: no derivative is known for 'lgamma' of 1 argument");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (p) { p *=! x(i) }"),
            "tc:1:28: error: no gradient is derived through 'p', which is reduced by '*=!'");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (m) { m max=! 2.0 * x(i) }"),
            "tc:1:28: error: no gradient is derived through 'm', which is reduced by 'max=!' from what is not an "
            "input's elements");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (y) { y(i) = x(i) where i in 0:4\n y(i) = y(i) * 2.0 where i in 0:2 }"),
            "tc:2:2: error: no gradient is derived through 'y', which several statements write");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (y, z) { y(i) = x(i)\n z(i) = y(i)\n y(i) += x(i) }"),
            "tc:3:2: error: no gradient is derived through 'y', which is read between sums into it");
  EXPECT_EQ(refusal_of("def f(float(N) x, int32(N) p) -> (at, float(9) y) { at(i) = p(i)\n y(at(i)) +=! x(i)\n"
                       " at(i) += 1 }"),
            "tc:3:2: error: no gradient is derived through 'at', which is read between sums into it");
  EXPECT_EQ(refusal_of("def f(float(M,K) A) -> (m) { m(i) max=! A(i,k)\n m(i) += A(i,k) }"),
            "tc:2:2: error: no gradient is derived through 'm', which is no sum when it is summed into");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (s) { s(i) += x(i) }"),
            "tc:1:28: error: no gradient is derived through 's', which updates the caller's values");
  EXPECT_EQ(refusal_of("def f(int32(N) x) -> (y) { y(i) = x(i) + 1 }"),
            "tc:1:5: error: no result of 'f' depends on a float input");
}

}  // namespace
}  // namespace tc::api
