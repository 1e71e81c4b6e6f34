#include <gtest/gtest.h>

#include <set>

#include "tc/gpu/strategy/coverage.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/streams.h"

/// Products of which the second sums over the columns of the first, which are made slab by slab in registers.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const options::MappingOptions kChained{.split_reduction = 1, .copy_operands = false, .chain = true};

/// An H100.
const gpu::Device kDevice = [] {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  return device;
}();

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// More columns than a block has room for in shared memory.
constexpr char kRelu[] = R"(
def f(half(B,N,D) Q, half(B,M,D) K, half(B,M,E) V) -> (float(B,N,E) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  half P(b,n,m) = half(fmax(S(b,n,m), 0.0) * 0.5)
  O(b,n,e) +=! P(b,n,m) * V(b,m,e)
})";

/// No batches, keys and values in columns, a bias of each column, and results that follow the second product.
constexpr char kTransposed[] = R"(
def f(bfloat16(N,D) Q, bfloat16(D,M) K, bfloat16(E,M) V, float(M) bias, float(E) c) -> (bfloat16(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(d,m)
  bfloat16 P(n,m) = bfloat16(fmax(S(n,m) + bias(m), 0.0))
  float A(n,e) +=! P(n,m) * V(e,m)
  O(n,e) = bfloat16(A(n,e) * 0.5 + c(e))
})";

/// A guard over rows and columns, as a statement of its own.
constexpr char kCausal[] = R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V) -> (float(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = m <= n ? S(n,m) : 0.0
  half P(n,m) = half(S(n,m))
  O(n,e) +=! P(n,m) * V(m,e)
})";

/// Sums along rows, which what follows the second product reads, and which one of them is a result of the def.
constexpr char kRowSums[] = R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (float(N,E) O, float(N) most) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  half P(n,m) = half(fmax(S(n,m), 0.0))
  total(n) +=! float(P(n,m))
  most(n) max=! P(n,m)
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = A(n,e) - total(n)
})";

const Case kCases[] = {
    {"Whole", kRelu, {{"B", 2}, {"N", 64}, {"D", 32}, {"M", 1088}, {"E", 32}}},
    {"PartialRowsAndColumns", kRelu, {{"B", 1}, {"N", 45}, {"D", 24}, {"M", 1050}, {"E", 40}}},
    {"OfTwoDimensions", kTransposed, {{"N", 50}, {"D", 48}, {"M", 1040}, {"E", 24}}},
    {"Guarded", kCausal, {{"N", 1041}, {"D", 16}, {"E", 8}}},
    {"RowSums", kRowSums, {{"N", 40}, {"D", 32}, {"M", 72}, {"E", 16}}},
    {"RowSumsOfPartialSlabs", kRowSums, {{"N", 19}, {"D", 16}, {"M", 50}, {"E", 24}}},
};

class Streams : public ::testing::TestWithParam<Case> {
 protected:
  ir::Program program() const { return specialised_from(GetParam().text, GetParam().sizes); }
};

TEST_P(Streams, AreOneLaunch) {
  const Result<gpu::Mapping> mapping = mapped(program(), kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
  EXPECT_TRUE(mapping->program.workspace.empty());
}

TEST_P(Streams, AgreeWithTheOracle) {
  for (const uint64_t seed : {1, 2}) EXPECT_EQ(difference(program(), kChained, seed, kDevice), "");
}

TEST_P(Streams, AreProved) {
  const ir::Program own = program();
  const Result<gpu::Mapping> mapping = mapped(own, kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    EXPECT_EQ(coverage.faults, std::vector<std::string>());
    for (const tile::Coverage::Item& item : coverage.items) EXPECT_TRUE(item.complete) << item.name;
  }
}

TEST_P(Streams, OptionsGiveThemAgain) {
  const ir::Program own = program();
  const Result<gpu::Mapping> first = mapped(own, kChained, kDevice);
  ASSERT_TRUE(first) << first.error().to_string();
  const options::MappingOptions chosen = gpu::options_for(*first, 0);
  EXPECT_EQ(chosen.chain, true);
  const Result<gpu::Mapping> again = mapped(own, chosen, kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(gpu::report(*again), gpu::report(*first));
  options::MappingOptions apart = kChained;
  apart.chain = false;
  const Result<gpu::Mapping> kernels = mapped(own, apart, kDevice);
  ASSERT_TRUE(kernels) << kernels.error().to_string();
  EXPECT_GT(kernels->kernels.size(), first->kernels.size());
}

constexpr char kAttention[] = R"(
def f(half(B,N,D) Q, half(B,M,D) K, half(B,M,E) V) -> (half(B,N,E) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  top(b,n) max=! S(b,n,m)
  half P(b,n,m) = half(exp((S(b,n,m) - top(b,n)) * rsqrt(float(D))))
  float total(b,n) +=! float(P(b,n,m))
  float A(b,n,e) +=! P(b,n,m) * V(b,m,e)
  O(b,n,e) = half(A(b,n,e) / total(b,n))
})";

constexpr char kCausalAttention[] = R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = m <= n ? S(n,m) : -1e30
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * rsqrt(float(D))))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})";

/// The product is made twice: for the maxima, and for what they are subtracted from.
class Attention : public ::testing::TestWithParam<Case> {
 protected:
  ir::Program program() const { return specialised_from(GetParam().text, GetParam().sizes); }
};

TEST_P(Attention, IsStreamed) {
  const Result<gpu::Mapping> mapping = mapped(program(), kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_TRUE(mapping->kernels.back().chosen.chain.value_or(false)) << gpu::report(*mapping);
  for (const tile::Tensor& tensor : mapping->program.kernels.back().tensors) {
    const std::set<std::string> known = {"Q", "K", "V", "O", "top"};
    EXPECT_EQ(known.count(tensor.name), 1U) << tensor.name;
  }
}

TEST_P(Attention, AgreesWithTheOracle) {
  for (const uint64_t seed : {1, 2}) EXPECT_EQ(difference(program(), kChained, seed, kDevice), "");
}

TEST_P(Attention, IsProved) {
  const ir::Program own = program();
  const Result<gpu::Mapping> mapping = mapped(own, kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    EXPECT_EQ(coverage.faults, std::vector<std::string>());
    for (const tile::Coverage::Item& item : coverage.items) EXPECT_TRUE(item.complete) << item.name;
  }
}

TEST_P(Attention, OptionsOfItsKernelsGiveTheChainAgain) {
  const ir::Program own = program();
  const Result<gpu::Mapping> first = mapped(own, kChained, kDevice);
  ASSERT_TRUE(first) << first.error().to_string();
  options::MappingOptions chosen = gpu::options_for(*first, 0);
  chosen.kernel.clear();
  for (size_t k = 0; k < first->kernels.size(); ++k) {
    const options::MappingOptions of_kernel = gpu::options_for(*first, k);
    chosen.kernel.insert(chosen.kernel.end(), of_kernel.kernel.begin(), of_kernel.kernel.end());
  }
  const Result<gpu::Mapping> again = mapped(own, chosen, kDevice);
  ASSERT_TRUE(again) << again.error().to_string() << options::to_text(chosen);
  // How the maxima are reduced is no part of the chain.
  const auto of_chain = [](const gpu::Mapping& mapping) {
    return options::to_text(gpu::options_for(mapping, mapping.kernels.size() - 1));
  };
  EXPECT_EQ(of_chain(*again), of_chain(*first));
  EXPECT_EQ(again->kernels.back().grid, first->kernels.back().grid);
}

const Case kAttentions[] = {
    {"Whole", kAttention, {{"B", 2}, {"N", 64}, {"D", 32}, {"M", 96}, {"E", 32}}},
    {"Partial", kAttention, {{"B", 1}, {"N", 37}, {"D", 24}, {"M", 75}, {"E", 40}}},
    {"Causal", kCausalAttention, {{"N", 80}, {"D", 32}, {"E", 16}}},
};
INSTANTIATE_TEST_SUITE_P(Programs, Attention, ::testing::ValuesIn(kAttentions),
                         [](const auto& info) { return std::string(info.param.name); });

size_t launches(const std::string& text, const Sizes& sizes, const options::MappingOptions& options) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, kDevice);
  EXPECT_TRUE(mapping) << mapping.error().to_string();
  return mapping ? mapping->kernels.size() : 0;
}

TEST(Stream, IsChosenWhereTheEstimateGains) {
  const Sizes sizes = {{"B", 64}, {"N", 4096}, {"M", 4096}, {"D", 128}, {"E", 128}};
  const options::MappingOptions by_estimate{.split_reduction = 1}, apart{.split_reduction = 1, .chain = false};
  const Result<gpu::Mapping> mapping = mapped(specialised_from(kAttention, sizes), by_estimate, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_TRUE(mapping->kernels.back().chosen.chain.value_or(false)) << gpu::report(*mapping);
  const Result<gpu::Mapping> stored = mapped(specialised_from(kAttention, sizes), apart, kDevice);
  ASSERT_TRUE(stored) << stored.error().to_string();
  EXPECT_LT(gpu::estimated_us(*mapping), gpu::estimated_us(*stored));
  // Neither kernel stores what the product makes.
  for (const tile::Tensor& tensor : mapping->program.workspace) EXPECT_LT(tensor.elements(), 64 * 4096 * 128);
}

/// What is made of the first product's results may be read by nobody else, and reductions of it at their rows alone.
TEST(Stream, LeavesProductsApartThatTouchMore) {
  const options::MappingOptions by_estimate{.split_reduction = 1};
  const Sizes sizes = {{"N", 1040}, {"D", 32}, {"M", 1040}, {"E", 32}};
  const char* result = R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,M) P, float(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  P(n,m) = half(S(n,m))
  O(n,e) +=! P(n,m) * V(m,e)
})";
  const char* reversed = R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (float(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  half P(n,m) = half(S(n,m))
  total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = A(n,e) - total(N - 1 - n)
})";
  const char* tf32 = R"(
def f(float(N,D) Q, float(M,D) K, float(M,E) V) -> (float(N,E) O) {
  S(n,m) +=! tf32(Q(n,d)) * tf32(K(m,d))
  O(n,e) +=! tf32(S(n,m)) * tf32(V(m,e))
})";
  EXPECT_EQ(launches(tf32, sizes, by_estimate), 2U);
  EXPECT_EQ(launches(result, sizes, by_estimate), 2U);
  EXPECT_GE(launches(reversed, sizes, by_estimate), 3U);
  const Sizes small = {{"N", 40}, {"D", 32}, {"M", 40}, {"E", 32}};
  for (const char* text : {result, reversed, tf32}) {
    EXPECT_EQ(difference(specialised_from(text, small), by_estimate, 1, kDevice), "");
  }
}

TEST(Stream, RandomProgramsAgree) {
  int streamed = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const RandomProduct random = random_stream(seed);
    const ir::Program program = specialised_from(random.text, random.sizes);
    Result<gpu::Mapping> mapping = mapped(program, kChained, kDevice);
    const options::MappingOptions options = mapping ? kChained : options::MappingOptions();
    if (!mapping) mapping = mapped(program, options, kDevice);  // there is no chain to ask for
    ASSERT_TRUE(mapping) << random.text << mapping.error().to_string();
    streamed += mapping->kernels.back().chosen.chain.value_or(false) ? 1 : 0;
    EXPECT_EQ(difference(program, options, seed, kDevice), "") << seed << "\n" << random.text;
    EXPECT_EQ(unproved(mapping->program), "") << seed << "\n" << random.text;
  }
  EXPECT_GE(streamed, 12);
}

INSTANTIATE_TEST_SUITE_P(Products, Streams, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::testing
