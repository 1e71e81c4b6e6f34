#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/interp/compare.h"
#include "tc/interp/tf32_factors.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Products of float32 numbers that are rounded to TF32: on the simulator as on the oracle, verified and certified. The
/// simulator's tensor cores ignore the low bits of operands, so that numbers that are not rounded give other results.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using options::MappingOptions;

const gpu::Device kHopper = gpu::device_of_architecture(90);
const gpu::Device kAmpere = gpu::device_of_architecture(80);

constexpr char kNN[] = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! tf32(A(m,k)) * tf32(B(k,n)) }";
constexpr char kNT[] = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! tf32(A(m,k)) * tf32(B(n,k)) }";
constexpr char kTN[] = "def f(float(K,M) A, float(K,N) B) -> (C) { C(m,n) +=! tf32(A(k,m)) * tf32(B(k,n)) }";
constexpr char kTT[] = "def f(float(K,M) A, float(N,K) B) -> (C) { C(m,n) +=! tf32(A(k,m)) * tf32(B(n,k)) }";
constexpr char kSquare[] = "def f(float(M,K) A) -> (float(M,M) C) { C(m,n) +=! tf32(A(m,k)) * tf32(A(n,k)) }";
constexpr char kBias[] = R"(
def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) {
  C(m,n) +=! tf32(A(m,k)) * tf32(B(k,n))
  C(m,n) = fmax(C(m,n) + b(n), 0)
})";
constexpr char kBatch[] =
    "def f(float(B,M,K) A, float(B,K,N) D) -> (C) { C(b,m,n) +=! tf32(A(b,m,k)) * tf32(D(b,k,n)) }";
constexpr char kGated[] = R"(
def f(float(M,K) A, float(N,K) B, float(N,K) G) -> (O) {
  P(m,n) +=! tf32(A(m,k)) * tf32(B(n,k))
  Q(m,n) +=! tf32(A(m,k)) * tf32(G(n,k))
  O(m,n) = P(m,n) * fmax(Q(m,n), 0)
})";
constexpr char kConvolution[] = R"(
def f(float(N,H,W,C) I, float(O,3,3,C) F) -> (R) {
  R(n,h,w,o) +=! tf32(I(n,h + kh,w + kw,c)) * tf32(F(o,kh,kw,c))
})";
constexpr char kPadded[] = R"(
def f(float(N,H,W,C) I, float(O,3,3,C) F) -> (float(N,H,W,O) R) {
  R(n,h,w,o) +=! tf32(h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c) : 0.0)
    * tf32(F(o,kh,kw,c)) where h in 0:H, w in 0:W
})";
constexpr char kBefore[] = R"(
def f(float(M,K) A, float(N,K) B) -> (C) {
  X(m,k) = tf32(A(m,k) * 3)
  C(m,n) +=! X(m,k) * tf32(B(n,k))
})";

constexpr char kComputed[] =
    "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! tf32(A(m,k) * A(m,k) + 1) * tf32(relu(B(k,n))) }";
constexpr char kMixed[] = "def f(float(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! B(k,n) * tf32(A(m,k)) }";
constexpr char kIntegers[] = "def f(float(M,K) A, int8(K,N) q) -> (C) { C(m,n) +=! tf32(A(m,k)) * float(q(k,n)) }";
constexpr char kSum[] = R"(
def f(float(M,K) x, float(K,N) W, float(M,K) h, float(K,N) U) -> (C) {
  C(m,n) +=! tf32(x(m,k)) * tf32(W(k,n)) - tf32(h(m,k)) * tf32(U(k,n))
})";
constexpr char kTriangle[] = R"(
def f(float(M,K) A, float(K,N) B) -> (C) {
  C(m,n) +=! (k <= m ? tf32(A(m,k)) : 0.0) * tf32(B(k,n))
})";

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  MappingOptions options = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// A row of shared memory has 32 numbers.
MappingOptions tile_of_tf32(int64_t warpgroups, int64_t columns, int64_t stages, std::vector<int64_t> before = {},
                            std::vector<int64_t> behind = {}) {
  MappingOptions options = warpgroup_tile(warpgroups, columns, stages, std::move(before), std::move(behind));
  options.tile.back() = 32;
  options.copy_operands = true;
  return options;
}

template <typename Kind>
int count(const tile::Program& program) {
  int result = 0;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body,
                        [&](const tile::Node& node) { result += std::holds_alternative<Kind>(node.node) ? 1 : 0; });
  }
  return result;
}

/// Thirds: numbers of which float32 has more bits than TF32.
interp::Environment thirds_for(const ir::Program& program, uint64_t seed) {
  interp::Environment data = data_for(program, seed);
  for (auto& [name, value] : data) {
    if (value.type != ScalarType::kFloat32) continue;
    for (double& x : value.floats) x = static_cast<double>(static_cast<float>(x / 3));
  }
  return data;
}

std::string difference_of_thirds(const ir::Program& program, const MappingOptions& options, const gpu::Device& device) {
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  if (!mapping) return mapping.error().to_string();
  const interp::Environment data = thirds_for(program, 1);
  const Result<interp::BoundedEnvironment> oracle =
      interp::run_bounded(options.tf32 ? interp::with_tf32_factors(program) : program, data);
  const Result<interp::Environment> results = simulated(program, *mapping, data);
  if (!oracle || !results) return (oracle ? results.error() : oracle.error()).to_string();
  std::string wrong;
  for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
    if (!comparison.agrees) wrong += comparison.sentence + "\n";
  }
  return wrong;
}

void expect_right(const Case& c, const MappingOptions& options, const gpu::Device& device) {
  const ir::Program program = specialised_from(c.text, c.sizes);
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(unproved(mapping->program), "");
  EXPECT_EQ(difference_of_mapping(program, *mapping, 2), "");
  EXPECT_EQ(difference_of_thirds(program, options, device), "");
}

/// Factors that are no reads become operands.
class Tf32Factors : public ::testing::TestWithParam<Case> {};

const Case kFactorCases[] = {
    {"computed", kComputed, {{"M", 64}, {"N", 48}, {"K", 96}}}, {"half", kMixed, {{"M", 64}, {"N", 48}, {"K", 96}}},
    {"integers", kIntegers, {{"M", 64}, {"N", 48}, {"K", 96}}}, {"sum", kSum, {{"M", 64}, {"N", 48}, {"K", 96}}},
    {"triangle", kTriangle, {{"M", 64}, {"N", 48}, {"K", 64}}},
};

TEST_P(Tf32Factors, AreMultiplied) {
  const MappingOptions options = {.tensor_cores = true};
  const Result<gpu::Mapping> mapping = mapped(specialised_from(GetParam().text, GetParam().sizes), options, kAmpere);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_GT(count<tile::MatMul>(mapping->program), 0);
  expect_right(GetParam(), options, kAmpere);
}

INSTANTIATE_TEST_SUITE_P(Cases, Tf32Factors, ::testing::ValuesIn(kFactorCases));

class Tf32 : public ::testing::TestWithParam<Case> {};

const Case kCases[] = {
    {"nn", kNN, {{"M", 64}, {"N", 64}, {"K", 64}}},
    {"nn, odd", kNN, {{"M", 33}, {"N", 51}, {"K", 29}}},
    {"nn, one slice", kNN, {{"M", 32}, {"N", 24}, {"K", 8}}},
    {"nt", kNT, {{"M", 64}, {"N", 48}, {"K", 96}}},
    {"nt, odd", kNT, {{"M", 37}, {"N", 41}, {"K", 77}}},
    {"tn", kTN, {{"M", 48}, {"N", 64}, {"K", 80}}},
    {"tt", kTT, {{"M", 80}, {"N", 64}, {"K", 48}}},
    {"square", kSquare, {{"M", 50}, {"K", 64}}},
    {"bias", kBias, {{"M", 48}, {"N", 72}, {"K", 32}}},
    {"batch", kBatch, {{"B", 3}, {"M", 32}, {"N", 40}, {"K", 48}}},
    {"convolution", kConvolution, {{"N", 2}, {"C", 16}, {"H", 9}, {"W", 12}, {"O", 24}}},
    {"padded", kPadded, {{"N", 2}, {"C", 16}, {"H", 9}, {"W", 8}, {"O", 24}}},
    {"before", kBefore, {{"M", 64}, {"N", 48}, {"K", 96}}},
};

/// By mma.sync, which rounds fragments on their way to registers.
TEST_P(Tf32, WarpsMultiply) {
  const MappingOptions options = {.tensor_cores = true};
  const Result<gpu::Mapping> mapping = mapped(specialised_from(GetParam().text, GetParam().sizes), options, kAmpere);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_GT(count<tile::MatMul>(mapping->program), 0);
  EXPECT_EQ(count<tile::MatrixLoad>(mapping->program), 0);
  expect_right(GetParam(), options, kAmpere);
}

INSTANTIATE_TEST_SUITE_P(Cases, Tf32, ::testing::ValuesIn(kCases));

class Tf32OfWarpgroups : public ::testing::TestWithParam<Case> {};

const Case kWarpgroupCases[] = {
    {"nn", kNN, {{"M", 64}, {"N", 64}, {"K", 96}}, tile_of_tf32(1, 64, 2)},
    {"nn, two warpgroups", kNN, {{"M", 128}, {"N", 128}, {"K", 128}}, tile_of_tf32(2, 128, 3)},
    {"nn, odd", kNN, {{"M", 70}, {"N", 75}, {"K", 101}}, tile_of_tf32(1, 64, 2)},
    {"nt", kNT, {{"M", 64}, {"N", 41}, {"K", 72}}, tile_of_tf32(1, 24, 2)},
    {"tn", kTN, {{"M", 64}, {"N", 64}, {"K", 64}}, tile_of_tf32(1, 64, 2)},
    {"tt", kTT, {{"M", 130}, {"N", 32}, {"K", 64}}, tile_of_tf32(1, 32, 4)},
    {"square", kSquare, {{"M", 70}, {"K", 75}}, tile_of_tf32(1, 64, 2)},
    {"bias", kBias, {{"M", 64}, {"N", 96}, {"K", 64}}, tile_of_tf32(1, 96, 2)},
    {"batch", kBatch, {{"B", 3}, {"M", 64}, {"N", 64}, {"K", 40}}, tile_of_tf32(1, 64, 2, {1})},
    {"gated", kGated, {{"M", 64}, {"N", 64}, {"K", 64}}, tile_of_tf32(1, 64, 2)},
    {"padded", kPadded, {{"N", 2}, {"C", 32}, {"H", 5}, {"W", 40}, {"O", 32}}, tile_of_tf32(1, 32, 3, {1, 1}, {1, 1})},
};

/// By wgmma, of copies that are rounded and have the reduction in their rows.
TEST_P(Tf32OfWarpgroups, Multiply) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kHopper);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_GT(count<tile::WarpgroupMatMul>(mapping->program), 0);
  expect_right(GetParam(), GetParam().options, kHopper);
}

INSTANTIATE_TEST_SUITE_P(Cases, Tf32OfWarpgroups, ::testing::ValuesIn(kWarpgroupCases));

std::string why_not(const char* text, const Sizes& sizes, MappingOptions options, const gpu::Device& device) {
  options.tensor_cores = true;
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, device);
  return mapping ? "" : mapping.error().diagnostics().at(0).message;
}

TEST(Tf32Products, AreOnlyThoseThatTheTextRounds) {
  const Sizes sizes = {{"M", 64}, {"N", 64}, {"K", 64}};
  const std::string no_atom =
      "'tensor_cores' is true, but no kernel uses them: it is no product of two operands for which the device has "
      "tensor cores";
  const char* one = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! tf32(A(m,k)) * B(k,n) }";
  const char* late = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! tf32(A(m,k) * B(k,n)) }";
  const char* partly = R"(
      def f(float(M,K) A, float(K,N) B) -> (C) {
        X(m,k) = tf32(A(m,k))
        X(m,k) = X(m,k) * 3
        C(m,n) +=! X(m,k) * tf32(B(k,n))
      })";
  for (const gpu::Device& device : {kHopper, kAmpere}) {
    EXPECT_EQ(why_not(one, sizes, {}, device), no_atom);
    EXPECT_EQ(why_not(late, sizes, {}, device), no_atom);
    EXPECT_EQ(why_not(partly, sizes, {}, device), no_atom);
  }
  EXPECT_EQ(why_not(kNT, sizes, {}, gpu::device_of_architecture(75)), no_atom);
}

/// Numbers in memory that are not rounded are no operands of wgmma.
TEST(Tf32Products, AreCopiedForWarpgroups) {
  MappingOptions options = tile_of_tf32(1, 64, 2);
  const ir::Program program = specialised_from(kNT, {{"M", 64}, {"N", 64}, {"K", 64}});
  for (const bool copies : {true, false}) {
    options.copy_operands = copies;
    const Result<gpu::Mapping> mapping = mapped(program, options, kHopper);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(count<tile::WarpgroupMatMul>(mapping->program), copies ? 1 : 0);
    EXPECT_EQ(count<tile::MatMul>(mapping->program) == 0, copies);
  }
}

/// By default warpgroups multiply large products on sm_90a, and what a statement has rounded before needs no copy.
TEST(Tf32Products, AreTakenWhereTheyAreLarge) {
  const Sizes sizes = {{"M", 2048}, {"N", 2048}, {"K", 2048}};
  const auto mapped_by_default = [&](const char* text, const gpu::Device& device) {
    Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {}, device);
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    return *std::move(mapping);
  };
  const gpu::Mapping by_warpgroups = mapped_by_default(kNN, kHopper), by_warps = mapped_by_default(kNN, kAmpere);
  EXPECT_EQ(count<tile::WarpgroupMatMul>(by_warpgroups.program), 2);  // beside each other
  EXPECT_EQ(by_warpgroups.kernels.size(), 3U);
  EXPECT_GT(count<tile::MatMul>(by_warps.program), 0);
  EXPECT_EQ(by_warps.kernels.size(), 1U);
}

constexpr char kPlain[] = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kPlainNT[] = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kHalfRounded[] = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! tf32(A(m,k)) * B(n,k) }";

MappingOptions allowing(MappingOptions options) {
  options.tf32 = true;
  return options;
}

/// The option lets tensor cores have products that the text does not round.
class Tf32Option : public ::testing::TestWithParam<Case> {};

MappingOptions as_it_lies(MappingOptions options) {
  options.copy_operands = false;
  return options;
}

const Case kOptionCases[] = {
    {"warps", kPlain, {{"M", 64}, {"N", 72}, {"K", 40}}, {.tensor_cores = true}},
    {"warps, half rounded", kHalfRounded, {{"M", 64}, {"N", 72}, {"K", 40}}, {.tensor_cores = true}},
    {"warpgroups", kPlain, {{"M", 64}, {"N", 64}, {"K", 96}}, tile_of_tf32(1, 64, 2)},
    {"warpgroups, half rounded", kHalfRounded, {{"M", 64}, {"N", 64}, {"K", 96}}, tile_of_tf32(1, 64, 2)},
    {"warpgroups, without copies", kPlainNT, {{"M", 64}, {"N", 64}, {"K", 96}}, as_it_lies(tile_of_tf32(1, 64, 2))},
};

TEST_P(Tf32Option, AllowsTensorCores) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const MappingOptions options = allowing(GetParam().options);
  const Result<gpu::Mapping> mapping = mapped(program, options, kHopper);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_GT(count<tile::MatMul>(mapping->program) + count<tile::WarpgroupMatMul>(mapping->program), 0);
  EXPECT_FALSE(mapped(program, GetParam().options, kHopper)) << "without the option";
  expect_right(GetParam(), options, kHopper);
  // Numbers are cut, so that the bound of float32 does not hold.
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, thirds_for(program, 1));
  const Result<interp::Environment> results = simulated(program, *mapping, thirds_for(program, 1));
  ASSERT_TRUE(oracle && results);
  EXPECT_FALSE(interp::compare(*results, *oracle)[0].agrees);
}

INSTANTIATE_TEST_SUITE_P(Cases, Tf32Option, ::testing::ValuesIn(kOptionCases));

TEST(Tf32OptionAlone, LeavesOthersAsTheyAre) {
  const Sizes sizes = {{"M", 512}, {"N", 512}, {"K", 512}};
  const auto text = [&](const char* def, const MappingOptions& options) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(def, sizes), options, kHopper);
    return mapping ? tile::to_text(mapping->program) : mapping.error().to_string();
  };
  for (const char* def : {"def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
                          "def f(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
                          "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) max=! A(m,k) * B(k,n) }",
                          "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) + B(k,n) }"}) {
    EXPECT_EQ(text(def, {.tf32 = true}), text(def, {})) << def;
  }
  EXPECT_EQ(text(kPlain, {.strict = true, .tf32 = true}), text(kPlain, {.strict = true}));
  EXPECT_EQ(text(kPlain, {}).find("mma"), std::string::npos);
  EXPECT_NE(text(kPlain, {.tf32 = true}).find("mma"), std::string::npos);
}

/// Only what lies otherwise is copied.
TEST(Tf32OptionAlone, CopiesNoRowsOfTheReduction) {
  const auto kernels = [](const char* def) {
    const ir::Program program = specialised_from(def, {{"M", 4096}, {"N", 4096}, {"K", 4096}});
    const Result<gpu::Mapping> mapping = mapped(program, {.tf32 = true}, kHopper);
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    return mapping ? mapping->kernels.size() : 0;
  };
  EXPECT_EQ(kernels(kPlainNT), 1U);
  EXPECT_EQ(kernels(kPlain), 2U);
  EXPECT_EQ(kernels(kNT), 3U);
}

}  // namespace
}  // namespace tc::testing
