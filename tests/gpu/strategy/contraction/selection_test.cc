#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tc/gpu/strategy/coverage.h"
#include "tc/interp/compare.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Products in which data choose the slice of an operand for each row.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const gpu::Device kDevice = gpu::device_of_architecture(90);

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kExperts[] = R"(
def f(bfloat16(T,K) X, bfloat16(P,K,N) W, int32(T) E) -> (bfloat16(T,N) Y) {
  Y(t,n) +=! X(t,k) * W(E(t),k,n)
})";
constexpr char kAlongReduction[] = R"(
def f(float16(T,K) X, float16(P,N,K) W, int64(T) E) -> (float(T,N) Y) {
  Y(t,n) +=! float(X(t,k)) * float(W(E(t),n,k))
})";
constexpr char kInPlace[] = R"(
def f(float16(T,K) X, float16(P,K,N) W, int32(T) E, float16(N) b) -> (float16(T,N) Y) {
  Y(t,n) += X(t,k) * W(E(t),k,n)
  Y(t,n) = fmax(Y(t,n) + b(n), 0)
})";
constexpr char kGated[] = R"(
def f(bfloat16(T,K) X, bfloat16(P,K,N) W, bfloat16(P,K,N) G, int32(T) E) -> (float(T,N) O) {
  A(t,n) +=! float(X(t,k)) * float(W(E(t),k,n))
  B(t,n) +=! float(X(t,k)) * float(G(E(t),k,n))
  O(t,n) = A(t,n) * fmax(B(t,n), 0)
})";
constexpr char kTwoAxes[] = R"(
def f(float16(B,S,K) X, float16(2,P,K,N) W, uint8(S,B) E) -> (float16(B,S,N) Y) {
  Y(b,s,n) +=! X(b,s,k) * W(1,int32(E(s,b)),k,n)
})";
constexpr char kFloat8[] = R"(
def f(float8_e4m3(T,K) X, float8_e4m3(P,N,K) W, int32(T) E) -> (float16(T,N) Y) {
  Y(t,n) +=! half(X(t,k)) * half(W(E(t),n,k))
})";

/// 4 x 16 rows.
options::MappingOptions of_two_axes(options::MappingOptions options) {
  options.tile = {4, 16, 64, 64};
  options.register_tile = {1, 2, 16};
  return options;
}

const Case kCases[] = {
    {"experts", kExperts, {{"T", 128}, {"P", 8}, {"K", 128}, {"N", 64}}, warpgroup_tile(1, 64, 3)},
    {"part of a tile", kExperts, {{"T", 150}, {"P", 5}, {"K", 72}, {"N", 72}}, warpgroup_tile(2, 64, 2)},
    {"one step", kExperts, {{"T", 130}, {"P", 3}, {"K", 64}, {"N", 40}}, warpgroup_tile(1, 40, 2)},
    {"along the reduction", kAlongReduction, {{"T", 70}, {"P", 4}, {"K", 200}, {"N", 33}}, warpgroup_tile(1, 32, 2)},
    {"in place", kInPlace, {{"T", 70}, {"P", 4}, {"K", 128}, {"N", 72}}, warpgroup_tile(1, 64, 2)},
    {"gated", kGated, {{"T", 128}, {"P", 6}, {"K", 128}, {"N", 64}}, warpgroup_tile(1, 64, 2)},
    {"rows of two axes",
     kTwoAxes,
     {{"B", 26}, {"S", 10}, {"P", 6}, {"K", 64}, {"N", 64}},
     of_two_axes(warpgroup_tile(1, 64, 2))},
    {"float8",
     kFloat8,
     {{"T", 64}, {"P", 4}, {"K", 256}, {"N", 64}},
     [] {
       options::MappingOptions options = warpgroup_tile(1, 64, 2);
       options.tile.back() = 128;
       return options;
     }()},
};

int count_products(const tile::Program& program) {
  int result = 0;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body,
                        [&](const tile::Node& node) { result += tile::warpgroup_product_of(node) != nullptr ? 1 : 0; });
  }
  return result;
}

class Selection : public ::testing::TestWithParam<Case> {};

TEST_P(Selection, AgreesWithTheOracleAndIsProved) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  EXPECT_GE(count_products(mapping->program), 1);
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) EXPECT_EQ(coverage.faults, std::vector<std::string>{});
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

TEST_P(Selection, OptionsAskForTheSameKernel) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
}

INSTANTIATE_TEST_SUITE_P(Cases, Selection, ::testing::ValuesIn(kCases));

/// What is wrong with the results for these values of E; data of the weights may be changed before.
std::string wrong_for(
    const std::vector<int64_t>& selection, const std::function<void(interp::Environment&)>& change = [](auto&) {}) {
  const Sizes sizes = {{"T", static_cast<int64_t>(selection.size())}, {"P", 9}, {"K", 72}, {"N", 64}};
  const ir::Program program = specialised_from(kExperts, sizes);
  const Result<gpu::Mapping> mapping = mapped(program, warpgroup_tile(1, 64, 2), kDevice);
  if (!mapping) return mapping.error().to_string();
  interp::Environment data = data_for(program, 3);
  data.at("E").integers = selection;
  change(data);
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
  if (!oracle) return oracle.error().to_string();
  std::string wrong;
  for (uint64_t seed : {1, 2}) {
    const Result<interp::Environment> results = simulated(program, *mapping, data, seed);
    if (!results) return results.error().to_string();
    for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
      if (!comparison.agrees) wrong += comparison.sentence + "\n";
    }
  }
  return wrong;
}

std::vector<int64_t> selection_of(size_t rows, const std::function<int64_t(int64_t)>& value) {
  std::vector<int64_t> result(rows);
  for (size_t i = 0; i < rows; ++i) result[i] = value(static_cast<int64_t>(i));
  return result;
}

TEST(Selection, TakesRowsInAnyOrder) {
  EXPECT_EQ(wrong_for(selection_of(150, [](int64_t t) { return t / 20; })), "");           // sorted
  EXPECT_EQ(wrong_for(selection_of(150, [](int64_t t) { return 8 - t / 20; })), "");       // falling
  EXPECT_EQ(wrong_for(selection_of(150, [](int64_t t) { return t * 7 % 9; })), "");        // mixed
  EXPECT_EQ(wrong_for(selection_of(150, [](int64_t) { return 8; })), "");                  // one value
  EXPECT_EQ(wrong_for(selection_of(150, [](int64_t t) { return t == 64 ? 0 : 7; })), "");  // most never
  EXPECT_EQ(wrong_for(selection_of(64, [](int64_t t) { return t < 63 ? 2 : 1; })), "");
}

/// A weight that is no number is no factor of the rows that do not select it.
TEST(Selection, LeavesOutWhatOtherRowsSelect) {
  const auto spoil = [](interp::Environment& data) {
    interp::Value& weights = data.at("W");
    const size_t of_slice = weights.floats.size() / 9;
    std::fill_n(weights.floats.begin() + static_cast<long>(4 * of_slice), of_slice,
                std::numeric_limits<double>::quiet_NaN());
    std::fill_n(weights.floats.begin() + static_cast<long>(5 * of_slice), of_slice,
                std::numeric_limits<double>::infinity());
  };
  EXPECT_EQ(wrong_for(selection_of(150, [](int64_t t) { return t / 20; }), spoil), "");
  EXPECT_EQ(wrong_for(selection_of(150, [](int64_t t) { return t % 4; }), spoil), "");
}

int products_by_default(const std::string& text, const Sizes& sizes, const options::MappingOptions& options = {}) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, kDevice);
  return mapping ? count_products(mapping->program) : -1;
}

TEST(Selection, IsTheDefaultWhereRowsAreMany) {
  const Sizes large = {{"T", 4096}, {"P", 64}, {"K", 2048}, {"N", 1408}};
  EXPECT_EQ(products_by_default(kExperts, large), 1);
  EXPECT_EQ(products_by_default(kExperts, large, {.tensor_cores = false}), 0);
  EXPECT_EQ(products_by_default(kExperts, {{"T", 64}, {"P", 64}, {"K", 2048}, {"N", 1408}}), 0);
}

/// Statements behind the product may be selected, too.
TEST(Selection, MeetsStatementsOfTheSameRows) {
  const char* text = R"(
def f(float16(T,K) X, float16(P,K,N) W, int32(T) E, float16(P,N) b, float16(T) s) -> (float16(T,N) Y) {
  Y(t,n) +=! X(t,k) * W(E(t),k,n)
  Y(t,n) = s(t) * fmax(Y(t,n) + b(E(t),n), 0)
})";
  const ir::Program program = specialised_from(text, {{"T", 70}, {"P", 5}, {"K", 64}, {"N", 64}});
  const Result<gpu::Mapping> mapping = mapped(program, warpgroup_tile(1, 64, 2), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->program.kernels.size(), 1U);
  EXPECT_EQ(count_products(mapping->program), 1);
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

/// What selects slices is read before all else, so a kernel that writes it does not go through them.
TEST(Selection, IsNotWrittenByItsKernel) {
  const char* text = R"(
def f(float16(T,K) X, float16(P,K,N) W, int32(T) E) -> (float(T,N) Y, int32(T) F) {
  F(t) = E(t)
  Y(t,n) +=! float(X(t,k)) * float(W(F(t),k,n))
  F(t) = E(t) + 1
})";
  const ir::Program program = specialised_from(text, {{"T", 70}, {"P", 5}, {"K", 64}, {"N", 64}});
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference(program, {}, seed, kDevice), "");
}

TEST(Selection, RandomProductsAreRightAndProved) {
  constexpr uint64_t kSeeds = 12;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const WarpgroupProduct product = random_selected_product(seed);
    SCOPED_TRACE(product.text);
    const ir::Program program = specialised_from(product.text, product.sizes);
    const Result<gpu::Mapping> mapping = mapped(program, product.options, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    ASSERT_EQ(mapping->program.kernels.size(), 1U);
    EXPECT_GE(count_products(mapping->program), 1);
    EXPECT_EQ(unproved(mapping->program), "");
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
  }
}

/// Rows that are gathered are copied by blocks, as before.
TEST(Selection, IsNoneOfGatheredRows) {
  const char* text = R"(
def f(float16(R,K) X, float16(K,N) W, int32(T) E) -> (float(T,N) Y) {
  Y(t,n) +=! float(X(E(t),k)) * float(W(k,n))
})";
  EXPECT_EQ(products_by_default(text, {{"T", 1024}, {"R", 1024}, {"K", 1024}, {"N", 1024}}), 0);
}

}  // namespace
}  // namespace tc::testing
