#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tc/interp/compare.h"
#include "tc/interp/interpreter.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Products whose spelling is more than two reads: on tensor cores, and as on the oracle.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

struct Spelling {
  const char* name;
  const char* text;
};

void PrintTo(const Spelling& s, std::ostream* out) { *out << s.name; }

const Spelling kOperands[] = {
    {"exponential", "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! exp(A(m,k)) * B(k,n) }"},
    {"exponential of a temporary",
     "def f(half(M,K) A, half(K,N) B) -> (C) { S(m,k) = 2 * A(m,k)  C(m,n) +=! exp(S(m,k)) * B(k,n) }"},
    {"positive part", "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! relu(A(m,k)) * B(k,n) }"},
    {"positive part, to the left",
     "def f(bfloat16(K,M) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! B(n,k) * relu(A(k,m)) }"},
    {"both", "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! relu(A(m,k)) * abs(B(k,n)) }"},
    {"one tensor twice",
     "def f(half(M,K) A, half(N) b) -> (C) { C(m,n) +=! relu(A(m,k)) * relu(A(n,k))  C(m,n) += b(n) }"},
    {"cast", "def f(half(M,K) A, int8(K,N) q) -> (C) { C(m,n) +=! A(m,k) * half(q(k,n)) }"},
    {"integers", "def f(half(M,K) A, int8(K,N) q) -> (C) { C(m,n) +=! A(m,k) * q(k,n) }"},
    {"unsigned integers", "def f(bfloat16(M,K) A, uint8(K,N) q) -> (C) { C(m,n) +=! A(m,k) * q(k,n) }"},
    {"floats of 8 bits", "def f(half(M,K) A, float8_e4m3(K,N) q) -> (float(M,N) C) { C(m,n) +=! A(m,k) * q(k,n) }"},
    {"dequantised along the reduction",
     "def f(half(M,K) A, int8(K,N) q, half(K) s) -> (C) { C(m,n) +=! A(m,k) * half(s(k) * float(q(k,n))) }"},
    {"dequantised in groups",
     "def f(half(M,K) A, int8(N,K) q, half(N,K) s) -> (C) {"
     "  half D(n,k) = q(n,k) * s(n, k / 16)  C(m,n) +=! A(m,k) * D(n,k) }"},
    {"dequantised in groups that end anywhere",
     "def f(half(M,K) A, int8(N,K) q, half(N,K) s) -> (C) {"
     "  half D(n,k) = q(n,k) * s(n, (k + 3) / 12)  C(m,n) +=! A(m,k) * D(n,k) }"},
    {"choice of data",
     "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! y * B(k,n) where y = A(m,k) > 0 ? A(m,k) : 0 }"},
    {"triangle", "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! (k <= m ? A(m,k) : 0) * B(k,n) }"},
    {"rows", "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! (m >= 3 ? A(m,k) : 0) * B(k,n) }"},
    {"shifted", "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! relu(A(m,k + 2)) * B(k,n) where k in 0:K-2 }"},
    {"onto what is there",
     "def f(half(M,K) A, half(K,N) B, half(N) b) -> (float(M,N) C) {"
     "  C(m,n) = b(n) where m in 0:M  C(m,n) += exp(A(m,k)) * B(k,n)  C(m,n) max= 0 }"},
};

const Spelling kScaled[] = {
    {"constant", "def f(half(M,K) A, half(K,N) B) -> (float(M,N) C) { C(m,n) +=! 0.5 * A(m,k) * B(k,n) }"},
    {"no power of two", "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) * half(3) }"},
    {"scalar", "def f(half(M,K) A, half(K,N) B, float a) -> (C) { C(m,n) +=! a * A(m,k) * B(k,n) }"},
    {"row", "def f(half(M,K) A, half(K,N) B, half(M) s) -> (C) { C(m,n) +=! s(m) * A(m,k) * B(k,n) }"},
    {"column", "def f(half(M,K) A, int8(K,N) q, half(N) s) -> (C) { C(m,n) +=! A(m,k) * (s(n) * half(q(k,n))) }"},
    {"row and column, float16",
     "def f(half(M,K) A, half(K,N) B, half(M) s, half(N) t) -> (C) { C(m,n) +=! s(m) * A(m,k) * (t(n) * B(k,n)) }"},
    {"row and column, float32",
     "def f(half(M,K) A, half(K,N) B, float(M) s, float(N) t) -> (C) { C(m,n) +=! s(m) * A(m,k) * (t(n) * B(k,n)) }"},
    {"sum of scales",
     "def f(half(M,K) A, half(K,N) B, float(M) s) -> (C) { C(m,n) +=! (s(m) + 2) * relu(A(m,k)) * B(k,n) }"},
    {"divided by a constant",
     "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) / 8 }"},
    {"divided by a root",
     "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * B(k,n) / sqrt(float(K)) }"},
    {"negative", "def f(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(m,n) +=! -A(m,k) * B(k,n) }"},
    {"onto what is there",
     "def f(half(M,K) A, half(K,N) B, float(M) s) -> (float(M,N) C) { C(m,n) += s(m) * A(m,k) * B(k,n) }"},
    {"onto float16",
     "def f(half(M,K) A, half(K,N) B, half(M) s) -> (half(M,N) C) { C(m,n) += s(m) * A(m,k) * B(k,n) }"},
    {"between statements",
     "def f(half(M,K) A, half(K,N) B, float(M) s, float(N) b) -> (float(M,N) C) {"
     "  C(m,n) = b(n) where m in 0:M  C(m,n) += s(m) * exp(A(m,k)) * B(k,n)  C(m,n) max= 0 }"},
    {"batches",
     "def f(half(M,K) A, half(2,K,N) B, float(2) s) -> (float(2,M,N) C) { C(b,m,n) +=! s(b) * A(m,k) * B(b,k,n) }"},
};

const Spelling kSums[] = {
    {"two",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U) -> (C) { C(m,n) +=! x(m,k) * W(k,n) + h(m,k) * U(k,n) "
     "}"},
    {"two, bfloat16",
     "def f(bfloat16(M,K) x, bfloat16(K,N) W, bfloat16(M,K) h, bfloat16(K,N) U) -> (C) { C(m,n) +=! h(m,k) * U(k,n) + "
     "x(m,k) * W(k,n) }"},
    {"difference",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U) -> (C) { C(m,n) +=! x(m,k) * W(k,n) - h(m,k) * U(k,n) "
     "}"},
    {"two negative",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U) -> (float(M,N) C) { C(m,n) += -x(m,k) * W(k,n) - "
     "h(m,k) * U(k,n) }"},
    {"multiplied out",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U, half(M) s) -> (C) { C(m,n) +=! s(m) * (x(m,k) * W(k,n) "
     "+ h(m,k) * U(k,n)) }"},
    {"one scaled",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U, float a) -> (C) { C(m,n) +=! float(x(m,k)) * W(k,n) + "
     "a * "
     "h(m,k) * U(k,n) }"},
    {"both scaled",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U, float a) -> (float(M,N) C) { C(m,n) += 0.5 * x(m,k) * "
     "W(k,n) - a * h(m,k) * U(k,n) }"},
    {"three",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U) -> (C) { C(m,n) +=! x(m,k) * W(k,n) + (h(m,k) * U(k,n) "
     "+ x(m,k) * U(k,n)) }"},
    {"of operands",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U) -> (C) { C(m,n) +=! relu(x(m,k)) * W(k,n) + "
     "relu(x(m,k)) * abs(U(k,n)) + h(m,k) * U(k,n) }"},
    {"between statements",
     "def f(half(M,K) x, half(K,N) W, half(M,K) h, half(K,N) U, half(N) b) -> (float(M,N) C) { C(m,n) = b(n) where m "
     "in 0:M"
     "  C(m,n) += x(m,k) * W(k,n) + h(m,k) * U(k,n)  C(m,n) max= 0 }"},
};

/// An H200.
gpu::Device hopper() {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  device.gigahertz = 1.98;
  return device;
}

int by_tensor_cores(const gpu::Mapping& mapping) {
  int result = 0;
  for (const gpu::Kernel& kernel : mapping.kernels) result += kernel.chosen.tensor_cores.value_or(false) ? 1 : 0;
  return result;
}

/// Random numbers between -1 and 1 in the place of floats.
interp::Environment with_fractions(interp::Environment data, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (auto& [name, value] : data) {
    if (!is_float(value.type) || bytes_of(value.type) == 1) continue;
    for (double& number : value.floats) {
      const auto fraction = static_cast<float>(static_cast<double>(random() % 20001) / 10000 - 1);
      number = value.type == ScalarType::kFloat16    ? static_cast<double>(Halide::float16_t(fraction))
               : value.type == ScalarType::kBFloat16 ? static_cast<double>(Halide::bfloat16_t(fraction))
                                                     : fraction;
    }
  }
  return data;
}

/// What is wrong on random fractions, by the oracle's bounds.
std::string beyond_bounds(const ir::Program& program, const gpu::Mapping& mapping, uint64_t seed) {
  const interp::Environment data = with_fractions(data_for(program, seed), seed);
  const Result<interp::Environment> result = simulated(program, mapping, data, seed);
  if (!result) return result.error().to_string();
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
  if (!oracle) return oracle.error().to_string();
  std::string faults;
  for (const interp::Comparison& comparison : interp::compare(*result, *oracle)) {
    if (!comparison.agrees) faults += comparison.sentence + "\n";
  }
  return faults;
}

class NarrowProducts : public ::testing::TestWithParam<Spelling> {};

TEST_P(NarrowProducts, AreOnTensorCores) {
  const ir::Program program = specialised_from(GetParam().text, {{"M", 512}, {"N", 512}, {"K", 512}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, hopper());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_GE(by_tensor_cores(*mapping), 1) << gpu::report(*mapping);
  for (const gpu::Kernel& kernel : mapping->kernels) {
    if (kernel.recipe == gpu::Recipe::kContraction) {
      EXPECT_TRUE(kernel.chosen.tensor_cores.value_or(false));
    }
  }
}

TEST_P(NarrowProducts, AgreeWithTheOracle) {
  const options::MappingOptions options{.tensor_cores = true};
  for (const Sizes& sizes : {Sizes{{"M", 40}, {"N", 48}, {"K", 32}}, Sizes{{"M", 35}, {"N", 29}, {"K", 37}}}) {
    const ir::Program program = specialised_from(GetParam().text, sizes);
    const Result<gpu::Mapping> mapping = mapped(program, options, hopper());
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_GE(by_tensor_cores(*mapping), 1);
    EXPECT_EQ(unproved(mapping->program), "");
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
    EXPECT_EQ(beyond_bounds(program, *mapping, 2), "");
  }
}

std::string name_of(const ::testing::TestParamInfo<Spelling>& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Operands, NarrowProducts, ::testing::ValuesIn(kOperands), name_of);
INSTANTIATE_TEST_SUITE_P(Scaled, NarrowProducts, ::testing::ValuesIn(kScaled), name_of);
INSTANTIATE_TEST_SUITE_P(Sums, NarrowProducts, ::testing::ValuesIn(kSums), name_of);

/// What is computed before a product is read in vectors, and a scale that all of a vector share is read once.
TEST(NarrowProducts, ComputeOperandsInVectors) {
  const char* text =
      "def f(half(M,K) A, int8(N,K) q, half(N,K) s) -> (C) {"
      "  half D(n,k) = q(n,k) * s(n, k / 128)  C(m,n) +=! A(m,k) * D(n,k) }";
  const ir::Program program = specialised_from(text, {{"M", 16}, {"N", 1024}, {"K", 1024}});
  gpu::Device device = hopper();
  device.accelerated = false;  // by mma.sync
  const Result<gpu::Mapping> mapping = mapped(program, {}, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const std::string kernel = tile::to_text(mapping->program);
  EXPECT_NE(kernel.find("move q_vector(0 +: 8) = q("), std::string::npos) << kernel;
  EXPECT_NE(kernel.find("D_shared_vector(in_run) = float16(q_vector(in_run)) * s_value(0)"), std::string::npos);
}

/// Factors that differ much in size: the result is finite, and what is put together on the way there is not.
TEST(NarrowProducts, ScaleWithoutOverflow) {
  const char* text =
      "def f(half(M,K) A, half(K,N) B, float(M) s, float(N) t) -> (float(M,N) C) {"
      "  C(m,n) +=! s(m) * A(m,k) * B(k,n) * t(n) }";
  const ir::Program program = specialised_from(text, {{"M", 32}, {"N", 32}, {"K", 32}});
  const Result<gpu::Mapping> mapping = mapped(program, {.tensor_cores = true}, hopper());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const float powers[][2] = {{0x1p100F, 0x1p-100F}, {0x1p80F, 0x1p40F}, {0x1p-100F, 0x1p90F}, {0x1p120F, 0x1p-130F}};
  for (const auto& power : powers) {
    interp::Environment data = data_for(program, 1);
    for (double& number : data.at("s").floats) number *= power[0];
    for (double& number : data.at("t").floats) number *= power[1];
    const Result<interp::Environment> result = simulated(program, *mapping, data);
    ASSERT_TRUE(result) << result.error().to_string();
    const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
    ASSERT_TRUE(oracle) << oracle.error().to_string();
    for (const interp::Comparison& comparison : interp::compare(*result, *oracle)) {
      EXPECT_TRUE(comparison.agrees) << comparison.sentence;
    }
  }
}

/// Products that stay with elements: 16 bits would change what the text says, or the device's order is fixed.
TEST(NarrowProducts, LeaveWhatWouldBeRounded) {
  const char* texts[] = {
      "def f(half(M,K) A, half(K,N) B) -> (float(M,N) C) { C(m,n) +=! exp(float(A(m,k))) * B(k,n) }",
      "def f(half(M,K) A, half(K) s, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * (s(k) * B(k,n)) }",
      // The sum may overflow, and the result may not.
      "def f(bfloat16(M,K) A, bfloat16(K,N) B, float(M) s) -> (C) { C(m,n) +=! s(m) * A(m,k) * B(k,n) }",
      "def f(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(m,n) +=! 0.5 * A(m,k) * B(k,n) }",
      "def f(half(M,K) A, half(M,K) D, half(K,N) B) -> (C) { C(m,n) +=! (A(m,k) + D(m,k)) * B(k,n) }",
      // Terms divided by zero are infinities of both signs, whose sum is a NaN.
      "def f(half(M,K) A, half(K,N) B, float(M) s) -> (C) { C(m,n) +=! float(A(m,k)) * B(k,n) / s(m) }",
      "def f(half(M,K) A, half(K,N) B, half(N) b) -> (C) { C(m,n) +=! A(m,k) * B(k,n) + b(n) }",
      "def f(half(M,K) A, bfloat16(K,N) B) -> (float(M,N) C) { C(m,n) +=! relu(A(m,k)) * B(k,n) }",
      "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! k <= m ? A(m,k) * B(k,n) : 0 }",
      "def f(half(M,K) A, int16(K,N) q) -> (float(M,N) C) { C(m,n) +=! A(m,k) * float(q(k,n)) }",
  };
  for (const char* text : texts) {
    const ir::Program program = specialised_from(text, {{"M", 512}, {"N", 512}, {"K", 512}});
    const Result<gpu::Mapping> mapping = mapped(program, {}, hopper());
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(by_tensor_cores(*mapping), 0) << text;
  }
  const ir::Program program = specialised_from(kOperands[0].text, {{"M", 512}, {"N", 512}, {"K", 512}});
  const Result<gpu::Mapping> strict = mapped(program, {.strict = true}, hopper());
  ASSERT_TRUE(strict) << strict.error().to_string();
  EXPECT_EQ(by_tensor_cores(*strict), 0);
}

}  // namespace
}  // namespace tc::testing
