#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/rewrite/unfold.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/interp/compare.h"
#include "tc/interp/interpreter.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/print.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Windows of few channels, laid out one by one.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using options::MappingOptions;

constexpr char kChannelsFirst[] = R"(
def f(float16(N,C,H,W) I, float16(F,C,KH,KW) V) -> (O) {
  O(n,f,h,w) +=! I(n,c, 2 * h + r, 2 * w + s) * V(f,c,r,s)
})";
constexpr char kChannelsLast[] = R"(
def f(float16(N,H,W,C) I, float16(KH,KW,C,F) V) -> (O) {
  O(n,h,w,f) +=! I(n, h + r, w + s, c) * V(r,s,c,f)
})";
constexpr char kPadded[] = R"(
def f(float16(N,H,W,C) I, float16(F,KH,KW,C) V) -> (float16(N,H,W,F) O) {
  O(n,h,w,f) +=! (h + r >= 1 && h + r <= H && w + s >= 1 && w + s <= W ? I(n, h + r - 1, w + s - 1, c)
    : half(0.0)) * V(f,r,s,c) where h in 0:H, w in 0:W
})";
constexpr char kStridedAndPadded[] = R"(
def f(float16(N,C,H,W) I, float16(F,C,7,7) V, float16(F) b) -> (float16(N,F,H/2,W/2) O) {
  float S(n,f,h,w) +=! (2 * h + r >= 3 && 2 * h + r < H + 3 && 2 * w + s >= 3 && 2 * w + s < W + 3
    ? I(n, c, 2 * h + r - 3, 2 * w + s - 3) : half(0.0)) * V(f,c,r,s) where h in 0:H/2, w in 0:W/2
  O(n,f,h,w) = half(relu(S(n,f,h,w) + b(f)))
})";
constexpr char kSignal[] = R"(
def f(bfloat16(T) x, bfloat16(F,K) V) -> (y) { y(t,f) +=! x(t + k) * V(f,k) })";
constexpr char kFromTwo[] = R"(
def f(float16(N,C,H,W) I, float16(F,C,3,3) V) -> (O) {
  O(n,f,h,w) +=! I(n,c, h + r, w + s) * V(f,c,r,s) where r in 1:3
})";
constexpr char kWrittenBefore[] = R"(
def f(float16(N,H,W,C) I, float16(F,3,3,C) V) -> (float16(N,H,W,C) X, O) {
  X(n,h,w,c) = I(n,h,w,c) + 1
  O(n,h,w,f) +=! X(n, h + r, w + s, c) * V(f,r,s,c)
})";

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  std::vector<std::string> unfolded;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"channels_first",
     kChannelsFirst,
     {{"N", 2}, {"C", 3}, {"H", 9}, {"W", 12}, {"F", 4}, {"KH", 3}, {"KW", 5}},
     {"c", "s"}},
    {"whole_windows",
     kChannelsFirst,
     {{"N", 2}, {"C", 3}, {"H", 9}, {"W", 12}, {"F", 4}, {"KH", 3}, {"KW", 5}},
     {"c", "r", "s"}},
    {"channels_alone", kChannelsLast, {{"N", 2}, {"C", 3}, {"H", 6}, {"W", 7}, {"F", 4}, {"KH", 2}, {"KW", 3}}, {"c"}},
    {"channels_last",
     kChannelsLast,
     {{"N", 2}, {"C", 3}, {"H", 6}, {"W", 7}, {"F", 4}, {"KH", 2}, {"KW", 3}},
     {"s", "c"}},
    {"padded", kPadded, {{"N", 2}, {"C", 3}, {"H", 6}, {"W", 7}, {"F", 4}, {"KH", 3}, {"KW", 3}}, {"s", "c"}},
    {"padded_rows", kPadded, {{"N", 1}, {"C", 2}, {"H", 6}, {"W", 7}, {"F", 4}, {"KH", 3}, {"KW", 3}}, {"r", "c"}},
    {"strided_and_padded", kStridedAndPadded, {{"N", 1}, {"C", 3}, {"H", 12}, {"W", 10}, {"F", 3}}, {"c", "s"}},
    {"signal", kSignal, {{"T", 40}, {"F", 3}, {"K", 5}}, {"k"}},
    {"from_two", kFromTwo, {{"N", 1}, {"C", 3}, {"H", 6}, {"W", 7}, {"F", 4}}, {"r", "s"}},
    {"written_before", kWrittenBefore, {{"N", 1}, {"C", 3}, {"H", 6}, {"W", 7}, {"F", 4}}, {"s", "c"}},
};

int64_t values_of(const ir::Program& program, const std::vector<std::string>& indices) {
  int64_t result = 1;
  for (const ir::Statement& s : program.statements) {
    for (const ir::Index& index : s.indices) {
      const bool is_one = index.is_reduction && std::find(indices.begin(), indices.end(), index.name) != indices.end();
      if (is_one) result *= ir::extent_of(index);
    }
  }
  return result;
}

class Unfold : public ::testing::TestWithParam<Case> {};

/// The interpreter computes the same from both, whether or not zeros fill up the rows.
TEST_P(Unfold, GivesTheSameProgram) {
  const Case& c = GetParam();
  const ir::Program program = specialised_from(c.text, c.sizes);
  const int64_t values = values_of(program, c.unfolded);
  for (const int64_t row : {values, (values + 7) / 8 * 8}) {
    const ir::Program unfolded = gpu::unfold_products(program, [&](const ir::Program&, const ir::Statement& s) {
      return s.reduces() ? std::optional(gpu::Unfolding{c.unfolded, row}) : std::nullopt;
    });
    const auto copies = std::count_if(unfolded.statements.begin(), unfolded.statements.end(),
                                      [](const ir::Statement& s) { return gpu::is_operand_copy(s.id); });
    EXPECT_EQ(copies, 2) << ir::to_text(unfolded);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const interp::Environment data = data_for(program, seed);
      const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
      const Result<interp::Environment> results = interp::run(unfolded, data);
      ASSERT_TRUE(oracle && results) << ir::to_text(unfolded);
      for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
        EXPECT_TRUE(comparison.agrees) << comparison.sentence << ir::to_text(unfolded);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Unfold, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Sums that it cannot be of stay as they are.
TEST(UnfoldRefuses, WhatIsNoProductOfTwoReads) {
  const auto may = [](const char* text, const Sizes& sizes, const std::vector<std::string>& indices) {
    const ir::Program program = specialised_from(text, sizes);
    return gpu::unfold(program, program.statements.front(), {indices, 64}).has_value();
  };
  const Sizes sizes = {{"N", 8}, {"M", 5}, {"K", 4}};
  EXPECT_TRUE(may("def f(half(N) x, half(M,K) V) -> (y) { y(t) +=! x(t + k) * V(t,k) }", sizes, {"k"}));
  EXPECT_FALSE(may("def f(half(N) x, half(M,K) V) -> (y) { y(t) max=! x(t + k) * V(t,k) }", sizes, {"k"}));
  EXPECT_FALSE(may("def f(half(N) x, half(M,K) V) -> (y) { y(t) +=! x(t + k) * V(t,k) }", sizes, {"t"}));
  EXPECT_FALSE(may("def f(half(N) x, half(M,K) V) -> (y) { y(t) +=! x(t + k) * V(t,k) * k }", sizes, {"k"}));
  EXPECT_FALSE(
      may("def f(half(N) x, half(M) z, half(M,K) V) -> (y) { y(t) +=! x(t + k) * V(t,k) * z(t) }", sizes, {"k"}));
  EXPECT_FALSE(may("def f(half(N) x, half(M,K) V) -> (y) { y(t) +=! x(t) * V(t,k) }", sizes, {"k"}));
  EXPECT_FALSE(may("def f(half(N) x, half(M,K) V, half(K) z) -> (y) { y(t) +=! (z(k) > 0 ? x(t + k) : 0) * V(t,k) }",
                   sizes, {"k"}));
}

const gpu::Device kDevice = gpu::device_of_architecture(90);

std::vector<std::string> rows_of_copies(const char* text, const Sizes& sizes, const MappingOptions& options = {},
                                        const gpu::Device& device = kDevice) {
  const Result<gpu::Prepared> prepared = gpu::prepare(specialised_from(text, sizes), options, device);
  if (!prepared) return {prepared.error().to_string()};
  std::vector<std::string> result;
  for (const ir::Statement& s : prepared->program.statements) {
    if (!gpu::is_operand_copy(s.id)) continue;
    result.push_back(fmt::format("{} {}", s.tensor, ir::extent_of(s.indices.back())));
  }
  return result;
}

/// Few channels are unfolded; of many, boxes have rows.
TEST(UnfoldChoice, IsForFewChannels) {
  const auto of = [](int64_t channels, int64_t size) {
    return Sizes{{"N", 32}, {"C", channels}, {"H", size}, {"W", size}, {"F", 64}};
  };
  const std::vector<std::string> both = {"I_copy 24", "V_copy 24"};
  EXPECT_EQ(rows_of_copies(kStridedAndPadded, of(3, 224)), both);
  EXPECT_EQ(rows_of_copies(kStridedAndPadded, of(3, 224), {.copy_operands = false}), std::vector<std::string>{});
  const gpu::Device without_tensor_cores = gpu::device_of_architecture(61);
  EXPECT_EQ(rows_of_copies(kStridedAndPadded, of(3, 224), {}, without_tensor_cores), std::vector<std::string>{});
  for (const std::string& row : rows_of_copies(kStridedAndPadded, of(128, 56))) EXPECT_NE(row, both[0]);
}

/// From the text to the simulator, by warpgroups or not.
TEST(UnfoldChoice, GivesTheSameResults) {
  const Sizes sizes = {{"N", 2}, {"C", 3}, {"H", 48}, {"W", 32}, {"F", 64}};
  const ir::Program program = specialised_from(kStridedAndPadded, sizes);
  for (const int architecture : {80, 90}) {
    const gpu::Device device = gpu::device_of_architecture(architecture);
    const Result<gpu::Mapping> mapping = mapped(program, {}, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(unproved(mapping->program), "");
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
  }
}

/// A thread has a row of the copy, and stores it in vectors.
TEST(UnfoldChoice, CopiesWholeRows) {
  const Sizes sizes = {{"N", 2}, {"C", 3}, {"H", 64}, {"W", 48}, {"F", 64}};
  const ir::Program program = specialised_from(kStridedAndPadded, sizes);
  gpu::Device device = kDevice;
  device.processors = 2;
  const Result<gpu::Mapping> mapping = mapped(program, {}, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const std::string text = tile::to_text(mapping->program);
  EXPECT_NE(text.find("move I_copy("), std::string::npos) << text;
  EXPECT_EQ(unproved(mapping->program), "");
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

}  // namespace
}  // namespace tc::testing
