#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tc/gpu/strategy/coverage.h"
#include "tc/gpu/strategy/tunables.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Products that share a kernel because a block keeps its rows of what lies between them.
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
  size_t launches = 1;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kTwo[] = R"(
def f(float16(M,K) A, float16(N,K) W, float16(N) b, float16(P,N) V, float16(P) d) -> (float16(M,P) O) {
  float S(m,n) +=! A(m,k) * W(n,k)
  float16 H(m,n) = float16(fmax(S(m,n) + b(n), 0.0))
  float T(m,p) +=! H(m,n) * V(p,n)
  O(m,p) = float16(T(m,p) + d(p))
})";

/// Weights that are not transposed, and a result in between that is a result of the def.
constexpr char kKept[] = R"(
def f(float16(M,K) A, float16(K,N) W, float16(N,P) V) -> (H, O) {
  H(m,n) +=! A(m,k) * W(k,n)
  H(m,n) = fmax(H(m,n), 0)
  O(m,p) +=! H(m,n) * V(n,p)
})";

constexpr char kFour[] = R"(
def f(float16(M,A) X, float16(B,A) W1, float16(C,B) W2, float16(D,C) W3, float16(E,D) W4) -> (float16(M,E) O) {
  float S1(m,b) +=! X(m,a) * W1(b,a)
  float16 H1(m,b) = float16(fmax(S1(m,b), 0.0))
  float S2(m,c) +=! H1(m,b) * W2(c,b)
  float16 H2(m,c) = float16(fmax(S2(m,c), 0.0))
  float S3(m,d) +=! H2(m,c) * W3(d,c)
  float16 H3(m,d) = float16(fmax(S3(m,d), 0.0))
  float S4(m,e) +=! H3(m,d) * W4(e,d)
  O(m,e) = float16(S4(m,e))
})";

/// Batches that all share, with weights of their own.
constexpr char kBatches[] = R"(
def f(bfloat16(B,M,K) A, bfloat16(B,K,N) W, bfloat16(B,N,P) V) -> (float(B,M,P) O) {
  float S(b,m,n) +=! A(b,m,k) * W(b,k,n)
  bfloat16 H(b,m,n) = bfloat16(S(b,m,n) * 0.5)
  O(b,m,p) +=! H(b,m,n) * V(b,n,p)
})";

/// The second one sums over two indices of what the first one makes, and its result is transposed.
constexpr char kHeads[] = R"(
def f(float16(M,K) A, float16(H,D,K) W, float16(P,H,D) V) -> (float(P,M) O) {
  float S(m,h,d) +=! A(m,k) * W(h,d,k)
  float16 C(m,h,d) = float16(S(m,h,d))
  O(p,m) +=! C(m,h,d) * V(p,h,d)
})";

/// A tensor in between whose dimensions stand in another order.
constexpr char kTurned[] = R"(
def f(float16(M,K) A, float16(N,K) W, float16(P,N) V) -> (float(M,P) O) {
  float S(m,n) +=! A(m,k) * W(n,k)
  float16 H(n,m) = float16(S(m,n))
  O(m,p) +=! H(n,m) * V(p,n)
})";

/// Positions of images are rows, of several axes; the second product is at each position.
constexpr char kConvolutions[] = R"(
def f(float16(N,C,H,W) X, float16(F,C,3,3) K, float16(G,F) V) -> (float(N,G,H-2,W-2) O) {
  float S(n,f,h,w) +=! X(n,c,h+r,w+s) * K(f,c,r,s)
  float16 Y(n,f,h,w) = float16(fmax(S(n,f,h,w), 0.0))
  O(n,g,h,w) +=! Y(n,f,h,w) * V(g,f)
})";

/// By elements, each result a result of the def.
constexpr char kFloats[] = R"(
def f(float(B,N) I, float(O,N) W2, float(O) B2, float(P,O) W3, float(P) B3, float(Q,P) W4, float(Q) B4) -> (O2, O3, O4) {
  O2(b,o) +=! I(b,n) * W2(o,n)
  O2(b,o) = fmax(O2(b,o) + B2(o), 0)
  O3(b,p) +=! O2(b,o) * W3(p,o)
  O3(b,p) = fmax(O3(b,p) + B3(p), 0)
  O4(b,q) +=! O3(b,p) * W4(q,p)
  O4(b,q) = fmax(O4(b,q) + B4(q), 0)
})";

/// Floats that the products round to TF32.
constexpr char kRounded[] = R"(
def f(float(M,K) A, float(N,K) W, float(N,P) V) -> (O) {
  S(m,n) +=! tf32(A(m,k)) * tf32(W(n,k))
  O(m,p) +=! tf32(S(m,n)) * tf32(V(n,p))
})";

const Case kCases[] = {
    {"Whole", kTwo, {{"M", 128}, {"K", 64}, {"N", 64}, {"P", 32}}},
    {"PartialRows", kTwo, {{"M", 77}, {"K", 128}, {"N", 64}, {"P", 64}}},
    {"PartialColumns", kTwo, {{"M", 50}, {"K", 40}, {"N", 72}, {"P", 24}}},
    {"VectorsOfTwo", kTwo, {{"M", 33}, {"K", 34}, {"N", 50}, {"P", 18}}},
    {"OddWidths", kTwo, {{"M", 45}, {"K", 35}, {"N", 51}, {"P", 21}}},
    {"FewColumns", kTwo, {{"M", 64}, {"K", 48}, {"N", 32}, {"P", 2}}},
    {"ManySteps", kTwo, {{"M", 40}, {"K", 528}, {"N", 136}, {"P", 48}}},
    {"Kept", kKept, {{"M", 70}, {"K", 64}, {"N", 40}, {"P", 56}}},
    {"Four", kFour, {{"M", 100}, {"A", 128}, {"B", 64}, {"C", 64}, {"D", 32}, {"E", 2}}},
    {"FourOfAKind", kFour, {{"M", 96}, {"A", 48}, {"B", 48}, {"C", 48}, {"D", 48}, {"E", 48}}},
    {"Batches", kBatches, {{"B", 3}, {"M", 40}, {"K", 32}, {"N", 48}, {"P", 24}}},
    {"Heads", kHeads, {{"M", 40}, {"K", 32}, {"H", 3}, {"D", 16}, {"P", 24}}},
    {"HeadsOfTwelve", kHeads, {{"M", 40}, {"K", 32}, {"H", 4}, {"D", 20}, {"P", 24}}},
    {"Floats", kFloats, {{"B", 50}, {"N", 64}, {"O", 32}, {"P", 16}, {"Q", 24}}},
    {"FloatsOfFewColumns", kFloats, {{"B", 64}, {"N", 128}, {"O", 64}, {"P", 32}, {"Q", 2}}},
    {"FloatsOfOddWidths", kFloats, {{"B", 45}, {"N", 67}, {"O", 35}, {"P", 21}, {"Q", 3}}},
    {"Convolutions", kConvolutions, {{"N", 2}, {"C", 16}, {"H", 8}, {"W", 12}, {"F", 24}, {"G", 16}}},
    {"Rounded", kRounded, {{"M", 40}, {"K", 32}, {"N", 40}, {"P", 24}}},
    {"Turned", kTurned, {{"M", 40}, {"K", 32}, {"N", 40}, {"P", 24}}},
};

class Chains : public ::testing::TestWithParam<Case> {
 protected:
  ir::Program program() const { return specialised_from(GetParam().text, GetParam().sizes); }
};

TEST_P(Chains, HaveSoManyLaunches) {
  const Result<gpu::Mapping> mapping = mapped(program(), kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), GetParam().launches) << gpu::report(*mapping);
}

TEST_P(Chains, AgreeWithTheOracle) {
  for (const uint64_t seed : {1, 2}) EXPECT_EQ(difference(program(), kChained, seed, kDevice), "");
}

TEST_P(Chains, AreProved) {
  const ir::Program own = program();
  const Result<gpu::Mapping> mapping = mapped(own, kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    EXPECT_EQ(coverage.faults, std::vector<std::string>());
    for (const tile::Coverage::Item& item : coverage.items) EXPECT_TRUE(item.complete) << item.name;
  }
}

TEST_P(Chains, OptionsGiveThemAgain) {
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

/// Layers of a perceptron, with weights of one tensor.
std::string layers(int count) {
  std::string text = "def f(half(B,N) X0, half(L,N,N) W, half(L,N) bias) -> (half(B,N) Y) {";
  for (int i = 0; i < count; ++i) {
    const std::string result = i + 1 == count ? "Y" : fmt::format("half X{}", i + 1);
    text += fmt::format(" float S{0}(b,n) +=! X{0}(b,k) * W({0},n,k) ", i);
    text += fmt::format(" {0}(b,n) = half(relu(S{1}(b,n) + bias({1},n)))", result, i);
  }
  return text + " }";
}

size_t launches(const std::string& text, const Sizes& sizes, const options::MappingOptions& options = {}) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, kDevice);
  EXPECT_TRUE(mapping) << mapping.error().to_string();
  return mapping ? mapping->kernels.size() : 0;
}

TEST(Chain, IsChosenWhereTheEstimateGains) {
  const Sizes sizes = {{"B", 4096}, {"N", 128}, {"L", 6}};
  EXPECT_EQ(launches(layers(6), sizes), 1U);
  EXPECT_EQ(launches(layers(6), sizes, {.chain = false}), 6U);
  // Blocks would read large weights again and again, or have no room for rows.
  EXPECT_EQ(launches(kTwo, {{"M", 16384}, {"K", 1024}, {"N", 1024}, {"P", 1024}}), 2U);
  EXPECT_EQ(launches(kTwo, {{"M", 4096}, {"K", 128}, {"N", 4096}, {"P", 128}}, {.split_reduction = 1}), 2U);
}

TEST(Chain, OfManyProductsAgreesWithTheOracle) {
  EXPECT_EQ(difference(specialised_from(layers(7), {{"B", 50}, {"N", 32}, {"L", 7}}), kChained, 1, kDevice), "");
}

TEST(Chain, OfTensorsThatAreAlignedToTheirElementsGivesTheSame) {
  const ir::Program program = specialised_from(kTwo, {{"M", 50}, {"K", 40}, {"N", 72}, {"P", 24}});
  const interp::Environment data = data_for(program, 1);
  const Result<gpu::Mapping> vectors = mapped(program, kChained, kDevice);
  const Result<gpu::Mapping> elements = mapped(program, kChained, kDevice, true);
  ASSERT_TRUE(vectors && elements);
  ASSERT_EQ(elements->kernels.size(), 1U);
  const auto expected = simulated(program, *vectors, data), found = simulated(program, *elements, data);
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(found->at("O").floats, expected->at("O").floats);
}

/// What a product leaves may be read by the next one alone, in the same rows.
TEST(Chain, LeavesProductsApartThatTouchMore) {
  const char* residual = R"(
def f(half(M,N) A, half(N,N) U, half(N,N) V, half(N,N) W) -> (half(M,N) O) {
  float S(m,n) +=! A(m,k) * U(n,k)
  half H(m,n) = half(S(m,n))
  float T(m,n) +=! H(m,k) * V(n,k)
  half I(m,n) = half(T(m,n))
  float R(m,n) +=! I(m,k) * W(n,k)
  O(m,n) = half(R(m,n) + H(m,n))
})";
  const char* square = R"(
def f(half(M,K) A, half(N,K) W) -> (float(N,N) O) {
  float S(m,n) +=! A(m,k) * W(n,k)
  half H(m,n) = half(S(m,n))
  O(p,q) +=! H(m,p) * H(m,q)
})";
  const char* shifted = R"(
def f(half(M,K) A, half(N,K) W, half(P,N) V) -> (float(M,P) O) {
  float S(m,n) +=! A(m,k) * W(n,k)
  half H(m,n) = half(S(m,n))
  O(m,p) +=! H(M - 1 - m,n) * V(p,n)
})";
  const options::MappingOptions by_estimate{.split_reduction = 1};
  EXPECT_EQ(launches(residual, {{"M", 2048}, {"N", 64}}, by_estimate), 2U);
  EXPECT_EQ(launches(square, {{"M", 2048}, {"K", 64}, {"N", 64}}, by_estimate), 2U);
  EXPECT_EQ(launches(shifted, {{"M", 2048}, {"K", 64}, {"N", 64}, {"P", 64}}, by_estimate), 2U);
  EXPECT_EQ(difference(specialised_from(residual, {{"M", 40}, {"N", 32}}), by_estimate, 1, kDevice), "");
}

std::string message(const std::string& text, const Sizes& sizes, const options::MappingOptions& options) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, kDevice);
  return mapping ? "" : mapping.error().diagnostics().at(0).message;
}

TEST(Chain, IsAnErrorWhereThereIsNone) {
  const char* one = "def f(half(M,K) A, half(N,K) W) -> (float(M,N) O) { O(m,n) +=! A(m,k) * W(n,k) }";
  EXPECT_EQ(
      message(one, {{"M", 64}, {"K", 64}, {"N", 64}}, {.chain = true}),
      "'chain' is true, but no kernel has products that follow each other: none reads what the one before makes, or "
      "a block has no room for its rows");
  const Sizes sizes = {{"M", 64}, {"K", 64}, {"N", 64}, {"P", 64}};
  EXPECT_EQ(message(kTwo, sizes, {.kernel = {{.writes = "S", .chain = true}, {.writes = "T", .chain = false}}}),
            "'chain' of the kernel 'S' is set, but the recipe 'contraction', which makes it, does not follow it");
}

TEST(Chain, OptionsOfOneProductLeaveItApart) {
  const Sizes sizes = {{"B", 4096}, {"N", 128}, {"L", 3}};
  EXPECT_EQ(launches(layers(3), sizes, {.kernel = {{.writes = "S2", .chain = false}}}), 2U);
  EXPECT_EQ(launches(layers(3), sizes, {.kernel = {{.writes = "S1", .chain = false}}}), 3U);
  EXPECT_EQ(launches(layers(3), sizes,
                     {.kernel = {{.writes = "S2",
                                  .tile = {64, 64, 32},
                                  .register_tile = {2, 4},
                                  .map_to_threads = {16, 32, 1},
                                  .tensor_cores = true}}}),
            2U);
}

TEST(Chain, IsTriedByASearch) {
  const ir::Program program = specialised_from(layers(3), {{"B", 4096}, {"N", 128}, {"L", 3}});
  const Result<std::vector<gpu::Tunable>> found = gpu::tunables(program, {}, kDevice);
  ASSERT_TRUE(found) << found.error().to_string();
  const auto chain = std::find_if(found->begin(), found->end(), [](const auto& t) { return t.field == "chain"; });
  ASSERT_NE(chain, found->end());
  EXPECT_EQ(chain->values, (std::vector<std::vector<int64_t>>{{}, {0}, {1}}));
}

INSTANTIATE_TEST_SUITE_P(Products, Chains, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::testing
