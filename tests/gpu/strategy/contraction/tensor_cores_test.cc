#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tc/gpu/strategy/tunables.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/products.h"

/// Contractions by products of tiles: on the simulator as on the oracle, verified and certified.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

int count_products(const tile::Program& program) {
  int result = 0;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      result += std::holds_alternative<tile::MatMul>(node.node) ? 1 : 0;
    });
  }
  return result;
}

int count_element_reads(const tile::Program& program) {
  int result = 0;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      const auto* move = std::get_if<tile::Move>(&node.node);
      result += move && move->elements == 1 && move->source.ends_with("_shared") ? 1 : 0;
    });
  }
  return result;
}

const options::MappingOptions kByTensorCores{.tensor_cores = true, .copy_operands = false};

/// One whose warps multiply fragments: what warpgroups do is tested apart.
const gpu::Device kDevice = [] {
  gpu::Device device;
  device.warpgroup_products = 0;
  return device;
}();

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  bool matrices = true;  ///< all fragments are loaded as matrices
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kNN[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kNT[] = "def f(bfloat16(M,K) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kTN[] = "def f(float16(K,M) A, float16(K,N) B) -> (C) { C(m,n) +=! A(k,m) * B(k,n) }";
constexpr char kTT[] = "def f(bfloat16(K,M) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(k,m) * B(n,k) }";
constexpr char kToFloat[] =
    "def f(float16(M,K) A, float16(K,N) B) -> (float(M,N) C) { C(m,n) +=! float(B(k,n)) * float(A(m,k)) }";
constexpr char kBias[] = R"(
def f(float16(M,K) A, float16(K,N) B, float(N) b) -> (float(M,N) C) {
  C(m,n) +=! float(A(m,k)) * float(B(k,n))
  C(m,n) = fmax(C(m,n) + b(n), 0)
})";
constexpr char kBatch[] = "def f(float16(B,M,K) A, float16(B,K,N) D) -> (C) { C(b,m,n) +=! A(b,m,k) * D(b,k,n) }";
constexpr char kAxes[] =
    "def f(float16(A,B,C,D) X, float16(D,B,E,F) Y) -> (Z) { Z(a,c,e,f) +=! X(a,b,c,d) * Y(d,b,e,f) }";
constexpr char kConvolution[] =
    "def f(float16(N,C,H,W) I, float16(O,C,KH,KW) F) -> (R) { R(n,o,h,w) +=! I(n,c,h + kh,w + kw) * F(o,c,kh,kw) }";
constexpr char kChannelsLast[] =
    "def f(float16(N,H,W,C) I, float16(KH,KW,O,C) F) -> (R) { R(n,h,w,o) +=! I(n,2*h + kh,w + kw,c) * F(kh,kw,o,c) }";
constexpr char kTwice[] = "def f(float16(M,K) A) -> (C) { C(m,n) +=! A(m,k) * A(n,k) }";
constexpr char kBackwards[] =
    "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,N - 1 - n) where n in 0:N }";
constexpr char kGathered[] =
    "def f(float16(V,K) A, int32(M) I, float16(K,N) B) -> (C) { C(m,n) +=! A(I(m),k) * B(k,n) }";
constexpr char kStrided[] =
    "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,2*k) * B(k,n) where k in 0:K/2 }";

constexpr char kPadded[] = R"(
def f(float16(N,C,H,W) I, float16(O,C,3,3) F, float(O) b) -> (float(N,O,H,W) R) {
  R(n,o,h,w) +=! float(h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c,h + kh - 1,w + kw - 1)
    : float16(0.0)) * float(F(o,c,kh,kw)) where h in 0:H, w in 0:W
  R(n,o,h,w) = fmax(R(n,o,h,w) + b(o), 0)
})";
constexpr char kPaddedLast[] = R"(
def f(float16(N,H,W,C) I, float16(O,3,3,C) F) -> (float16(N,H,W,O) R) {
  R(n,h,w,o) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c)
    : float16(0.0)) * F(o,kh,kw,c) where h in 0:H, w in 0:W
})";

const Case kCases[] = {
    {"nn", kNN, {{"M", 64}, {"N", 64}, {"K", 64}}},
    {"nn, partial", kNN, {{"M", 70}, {"N", 56}, {"K", 40}}},
    {"nn, odd", kNN, {{"M", 33}, {"N", 51}, {"K", 29}}},
    {"nn, one slice", kNN, {{"M", 16}, {"N", 24}, {"K", 16}}},
    {"nn, rest of one", kNN, {{"M", 40}, {"N", 24}, {"K", 33}}},
    {"nt", kNT, {{"M", 64}, {"N", 48}, {"K", 96}}},
    {"nt, odd", kNT, {{"M", 37}, {"N", 41}, {"K", 77}}},
    {"tn", kTN, {{"M", 48}, {"N", 64}, {"K", 80}}},
    {"tt", kTT, {{"M", 80}, {"N", 64}, {"K", 48}}},
    {"tt, odd", kTT, {{"M", 33}, {"N", 65}, {"K", 47}}},
    {"float result", kToFloat, {{"M", 64}, {"N", 40}, {"K", 64}}},
    {"bias", kBias, {{"M", 48}, {"N", 72}, {"K", 32}}},
    {"batch", kBatch, {{"B", 3}, {"M", 32}, {"N", 40}, {"K", 48}}},
    {"axes", kAxes, {{"A", 6}, {"B", 3}, {"C", 10}, {"D", 16}, {"E", 5}, {"F", 8}}},
    {"convolution", kConvolution, {{"N", 2}, {"C", 16}, {"H", 9}, {"W", 12}, {"O", 24}, {"KH", 3}, {"KW", 3}}, false},
    {"channels last", kChannelsLast, {{"N", 2}, {"C", 16}, {"H", 9}, {"W", 12}, {"O", 24}, {"KH", 3}, {"KW", 3}}},
    {"padded", kPadded, {{"N", 2}, {"C", 16}, {"H", 8}, {"W", 16}, {"O", 24}}, false},
    {"padded, odd", kPadded, {{"N", 1}, {"C", 32}, {"H", 7}, {"W", 9}, {"O", 17}}, false},
    {"padded, channels last", kPaddedLast, {{"N", 2}, {"C", 32}, {"H", 9}, {"W", 8}, {"O", 24}}},
    {"twice", kTwice, {{"M", 50}, {"K", 64}}},
    {"backwards", kBackwards, {{"M", 64}, {"N", 32}, {"K", 32}}},
    {"backwards, rest", kBackwards, {{"M", 64}, {"N", 32}, {"K", 40}}},
    {"strided", kStrided, {{"M", 32}, {"N", 32}, {"K", 64}}, false},
};

class TensorCores : public ::testing::TestWithParam<Case> {};

TEST_P(TensorCores, AgreeWithTheOracleAndAreProved) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, kByTensorCores, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  EXPECT_GT(count_products(mapping->program), 0);
  EXPECT_EQ(count_element_reads(mapping->program) == 0, GetParam().matrices);
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

/// The options of a plan ask for it.
TEST_P(TensorCores, OptionsAskForTheSameKernel) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, kByTensorCores, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
}

INSTANTIATE_TEST_SUITE_P(Cases, TensorCores, ::testing::ValuesIn(kCases));

TEST(TensorCores, MultiplyRowsThatDataChoose) {
  const ir::Program program = specialised_from(kGathered, {{"V", 50}, {"M", 48}, {"N", 40}, {"K", 64}});
  const Result<gpu::Mapping> mapping = mapped(program, kByTensorCores, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_GT(count_products(mapping->program), 0);
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

TEST(TensorCores, AreTakenWhereProductsAreLarge) {
  const ir::Program program = specialised_from(kNN, {{"M", 512}, {"N", 512}, {"K", 512}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_GT(count_products(mapping->program), 0);
  EXPECT_EQ(unproved(mapping->program), "");
  const Result<gpu::Mapping> without = mapped(program, {.tensor_cores = false}, kDevice);
  ASSERT_TRUE(without) << without.error().to_string();
  EXPECT_EQ(count_products(without->program), 0);
  EXPECT_LT(mapping->kernels[0].planned_us, without->kernels[0].planned_us);
}

/// Options from before there were tensor cores mean what they meant.
TEST(TensorCores, AreNotTakenWhereTilesAreGiven) {
  const ir::Program program = specialised_from(kNN, {{"M", 256}, {"N", 256}, {"K", 128}});
  const Result<gpu::Mapping> mapping =
      mapped(program, {.tile = {64, 64, 16}, .map_to_threads = {16, 16}, .register_tile = {4, 4}});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(count_products(mapping->program), 0);
}

std::string refusal(const std::string& text, const Sizes& sizes, const gpu::Device& device = kDevice,
                    options::MappingOptions options = kByTensorCores) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, device);
  return mapping ? "" : mapping.error().diagnostics().at(0).message;
}

TEST(TensorCores, WhatHasNoneIsRefused) {
  const Sizes sizes = {{"M", 64}, {"N", 64}, {"K", 64}};
  const std::string no_atom =
      "'tensor_cores' is true, but no kernel uses them: it is no product of two operands for which the device has "
      "tensor "
      "cores";
  EXPECT_EQ(refusal("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", sizes), no_atom);
  EXPECT_EQ(refusal("def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) max=! A(m,k) * B(k,n) }", sizes), no_atom);
  gpu::Device old;
  old.architecture = 75;
  EXPECT_EQ(refusal(kNN, sizes, old), no_atom);
  EXPECT_EQ(
      refusal("def f(float(N) x) -> (y) { y(n) = 2 * x(n) }", {{"N", 100}}),
      "'tensor_cores' is true, but no kernel uses them: no product is large enough, or none reads its operands often "
      "enough");
  EXPECT_EQ(refusal(kNN, {{"M", 64}, {"N", 64}, {"K", 7}}),
            "'tensor_cores' is true, but no kernel uses them: no step of 16 values or a multiple fits the 7 of 'k'");
  EXPECT_EQ(refusal(kNN, sizes, kDevice, {.tensor_cores = true, .strict = true}),
            "'tensor_cores' is true, but no kernel uses them: strict kernels keep the order of sums");
  options::MappingOptions crooked = kByTensorCores;
  crooked.tile = {48, 20, 16};
  crooked.register_tile = {4, 5};
  EXPECT_EQ(refusal(kNN, sizes, kDevice, crooked),
            "'tensor_cores' is true, but no kernel uses them: 4 by 12 threads are no warps of 4 by 8");
}

/// What lies behind the end of the reduction is not multiplied by zeros: it may be a NaN.
TEST(TensorCores, NothingBehindTheReductionIsRead) {
  const std::string guarded =
      "def f(float16(M,L) A, float16(K,N) B) -> (C) {"
      "  C(m,n) +=! float(k >= 1 && k < L + 1 ? A(m,k - 1) : float16(0)) * float(B(k,n)) where k in 0:K }";
  const std::string plain =
      "def f(float16(M,L) A, float16(K,N) B) -> (C) {"
      "  C(m,n) +=! float(A(m,k)) * float(B(k,n)) where k in 0:K }";
  for (const auto& [text, used] : {std::pair{guarded, 49}, std::pair{plain, 50}}) {
    for (const int64_t steps : {0, 32}) {
      const ir::Program program = specialised_from(text, {{"M", 32}, {"N", 32}, {"K", 50}, {"L", 64}});
      interp::Environment data = data_for(program, 1);
      for (size_t i = 0; i < data.at("A").floats.size(); ++i) {
        if (static_cast<int>(i % 64) >= used) data.at("A").floats[i] = std::numeric_limits<double>::infinity();
      }
      options::MappingOptions options = kByTensorCores;
      if (steps > 0) options.tile = {16, 16, steps};
      const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      EXPECT_GT(count_products(mapping->program), 0);
      const Result<interp::Environment> result = simulated(program, *mapping, data),
                                        oracle = interp::run(program, data);
      ASSERT_TRUE(result) << result.error().to_string();
      ASSERT_TRUE(oracle) << oracle.error().to_string();
      EXPECT_EQ(result->at("C").floats, oracle->at("C").floats) << text << options::to_text(options);
    }
  }
}

/// By default, and by plans of tensor cores that a search would try.
TEST(TensorCores, RandomProductsAgree) {
  int by_tiles = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const RandomProduct product = random_product(seed);
    const Result<ir::Program> program = try_specialised(product.text, product.sizes);
    ASSERT_TRUE(program) << product.text << program.error().to_string();
    std::vector<options::MappingOptions> all = {{}};
    if (const auto plans = gpu::top(*program, kByTensorCores, kDevice, 8)) {
      if (!plans->empty()) all.push_back((*plans)[seed % plans->size()].options);
    }
    for (const options::MappingOptions& options : all) {
      const Result<gpu::Mapping> mapping = mapped(*program, options, kDevice);
      ASSERT_TRUE(mapping) << product.text << options::to_text(options) << mapping.error().to_string();
      by_tiles += count_products(mapping->program) > 0 ? 1 : 0;
      EXPECT_EQ(difference_of_mapping(*program, *mapping, seed), "") << seed << "\n"
                                                                     << product.text << options::to_text(options);
      if (seed % 4 == 0) {
        EXPECT_EQ(unproved(mapping->program), "") << seed << "\n" << product.text << options::to_text(options);
      }
    }
  }
  EXPECT_GE(by_tiles, 10);
}

}  // namespace
}  // namespace tc::testing
