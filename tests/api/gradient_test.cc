#include <gtest/gtest.h>

#include "tests/api/tensors.h"

namespace tc::api {
namespace {

using testing::error_of;
using testing::take;

std::string gradient_of(const char* text) { return take(take(Engine::create(text)).gradient()); }

std::string refusal_of(const char* text) {
  const std::string sentence = error_of(take(Engine::create(text)).gradient());
  return sentence.substr(0, sentence.find('\n'));
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

TEST(Gradient, SaysWhatItCannotDerive) {
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (y) { y(i) = lgamma(x(i)) }"),
            "tc:1:35: error: no derivative is known for 'lgamma' of 1 argument");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (m) { m max=! x(i) }"),
            "tc:1:28: error: no gradient is derived through 'm', which is reduced by 'max=!'");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (y) { t(i) = x(i)\n y(i) = t(i) }"),
            "tc:1:28: error: no gradient is derived through 't', which is a temporary");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (y) { y(i) = x(i)\n y(i) = y(i) * 2.0 }"),
            "tc:2:2: error: no gradient is derived through 'y', which several statements write");
  EXPECT_EQ(refusal_of("def f(float(N) x) -> (s) { s(i) += x(i) }"),
            "tc:1:28: error: no gradient is derived through 's', which updates the caller's values");
  EXPECT_EQ(refusal_of("def f(int32(N) x) -> (y) { y(i) = x(i) + 1 }"),
            "tc:1:5: error: no result of 'f' depends on a float input");
  EXPECT_EQ(refusal_of("def f(float(M,K) A, float(M) b) -> (y) { y(m) +=! A(m,k) + b(m) }"),
            "tc:1:55: error: no gradient is derived for 'b': the sum over 'k' does not depend on it");
}

}  // namespace
}  // namespace tc::api
