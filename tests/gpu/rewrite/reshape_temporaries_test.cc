#include "tc/gpu/rewrite/reshape_temporaries.h"

#include <gtest/gtest.h>

#include "tc/gpu/rewrite/order_dims.h"
#include "tc/ir/layouts.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Products whose readers bring columns to heads.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const Sizes kSizes = {{"M", 24}, {"N", 32}, {"K", 24}, {"H", 4}, {"D", 8}};

Sizes sizes_of(const std::string& text, const Sizes& all) {
  Sizes result;
  for (const std::string& name : program_from(text).sizes) result[name] = all.at(name);
  return result;
}

/// The tensors that get a dimension more, if the temporary T does; the program agrees with the oracle then.
std::vector<std::string> reshaped(const std::string& text) {
  const ir::Program program = specialised_from(text, sizes_of(text, kSizes));
  const std::optional<gpu::Reshaped> result = gpu::reshape_temporary(program, "T");
  if (!result) return {};
  EXPECT_EQ(difference(result->program, {.strict = true}), "") << text << ir::to_text(result->program);
  for (const std::string& tensor : result->tensors) {
    EXPECT_EQ(result->program.tensor(tensor).rank(), program.tensor(tensor).rank() + 1) << text;
  }
  return result->tensors;
}

using Names = std::vector<std::string>;

TEST(ReshapeTemporaries, CutsWhatReadersAndWritersGoAlong) {
  EXPECT_EQ(reshaped("def f(float(M,K) X, float(N,K) W, float(N) b) -> (Q) { T(m,n) +=! X(m,k) * W(n,k)  "
                     "T(m,n) += b(n)  Q(h,m,d) = T(m,h * 8 + d) where h in 0:4, d in 0:8 }"),
            (Names{"T", "W", "b"}));
  EXPECT_EQ(reshaped("def f(float(M,K) X, float(K,N) W) -> (Q, s) { T(m,n) +=! X(m,k) * W(k,n)  "
                     "Q(h,d,m) = T(m,d + 8 * h) where h in 0:4, d in 0:8  s(m) +=! T(m,n) }"),
            (Names{"T", "W"}));
  EXPECT_EQ(reshaped("def f(half(M,K) X, half(N,K) W) -> (half(4,M,8) Q) { T(m,n) +=! X(m,k) * W(n,k)  "
                     "Q(n / 8,m,n % 8) = T(m,n)  Q(h,m,d) = Q(h,m,d) + T(m,h * 8 + d) where h in 0:4, d in 0:8 }"),
            (Names{"T", "T_sum", "W"}));
}

/// Heads of weights whose rows lie apart are as far apart as their rows.
TEST(ReshapeTemporaries, KeepsTheStridesOfInputs) {
  const std::string text =
      "def f(float(M,K) X, float(N,K) W, float(N) b) -> (Q) { T(m,n) +=! X(m,k) * W(n,k)  "
      "T(m,n) += b(n)  Q(h,m,d) = T(m,h * 8 + d) where h in 0:4, d in 0:8 }";
  const ir::Program program = ir::with_layouts(specialised_from(text, sizes_of(text, kSizes)),
                                               {{"W", {40, 1}}, {"b", {3}}, {"Q", {300, 12, 1}}});
  const std::optional<gpu::Reshaped> result = gpu::reshape_temporary(gpu::order_dims(program), "T");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->tensors, (Names{"T", "W", "b"}));
  EXPECT_EQ(result->program.tensor("W").strides, (std::vector<int64_t>{320, 40, 1}));
  EXPECT_EQ(result->program.tensor("b").strides, (std::vector<int64_t>{24, 3, 1}));
  EXPECT_EQ(difference(program), "");
}

/// Weights that somebody else reads otherwise stay as they are; rows of images are two indices too.
TEST(ReshapeTemporaries, LeavesInputsThatOthersRead) {
  EXPECT_EQ(reshaped("def f(float(M,K) X, float(N,K) W) -> (Q, s) { T(m,n) +=! X(m,k) * W(n,k)  "
                     "Q(h,m,d) = T(m,h * 8 + d) where h in 0:4, d in 0:8  s(n) +=! W(N - 1 - n,k) where n in 0:N }"),
            (Names{"T"}));
  EXPECT_EQ(reshaped("def f(float(M,K) X, float(N,K) W) -> (Q) { T(m,n) +=! X(m,k) * W(n,k)  "
                     "Q(i,j,n) = T(6 * i + j,n) where i in 0:4, j in 0:6 }"),
            (Names{"T", "X"}));
}

TEST(ReshapeTemporaries, LeavesSubscriptsThatMixHeads) {
  for (const char* text :
       {"def f(float(M,K) X, float(N,K) W) -> (Q) { T(m,n) +=! X(m,k) * W(n,k)  "
        "Q(h,m,d) = T(m,h * 4 + d) where h in 0:4, d in 0:8 }",
        "def f(float(M,K) X, float(N,K) W) -> (Q) { T(m,n) +=! X(m,k) * W(n,k)  "
        "Q(h,m,d) = T(m,h * 8 + d + 1) where h in 0:3, d in 0:8 }",
        "def f(float(M,K) X, float(N,K) W) -> (Q, R) { T(m,n) +=! X(m,k) * W(n,k)  "
        "Q(h,m,d) = T(m,h * 8 + d) where h in 0:4, d in 0:8  R(m,n) = T(m,N - 1 - n) where n in 0:N }",
        "def f(float(M,K) X, float(N,K) W) -> (Q) { T(m,n) +=! X(m,k) * W(n,k)  Q(n,m) = T(m,n) }",
        "def f(float(M,K) X, float(N,K) W, int32(N) I) -> (Q, R) { T(m,n) +=! X(m,k) * W(n,k)  "
        "Q(h,m,d) = T(m,h * 8 + d) where h in 0:4, d in 0:8  R(m,n) = T(m,I(n)) }"}) {
    EXPECT_EQ(reshaped(text), Names()) << text;
  }
}

/// One launch for a projection to heads, in any spelling; three for queries, keys and values.
TEST(ReshapeTemporaries, HeadsAreStoredByTheirProducts) {
  const Sizes large = {{"M", 4096}, {"N", 1024}, {"K", 1024}, {"H", 16}, {"D", 64}};
  const std::vector<std::pair<const char*, size_t>> texts = {
      {"def f(half(M,K) X, half(N,K) W, half(N) b) -> (half(H,M,D) q) { T(m,n) +=! X(m,k) * W(n,k)  T(m,n) += b(n)  "
       "q(h,m,d) = T(m,h * D + d) where h in 0:H, d in 0:D }",
       1},
      {"def f(half(M,K) X, half(K,N) W) -> (half(H,M,D) q) { T(m,n) +=! X(m,k) * W(k,n)  "
       "q(n / D,m,n % D) = T(m,n) * half(0.125) }",
       1},
      {"def f(half(M,K) X, half(3,N,K) W) -> (half(H,M,D) q, half(H,M,D) r, half(H,M,D) v) { "
       "T(m,s,n) +=! X(m,k) * W(s,n,k)  q(n / D,m,n % D) = T(m,0,n)  r(n / D,m,n % D) = T(m,1,n)  "
       "v(h,m,d) = T(m,2,D * h + d) where h in 0:H, d in 0:D }",
       3}};
  for (const auto& [text, launches] : texts) {
    const ir::Program program = specialised_from(text, sizes_of(text, large));
    const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), launches) << text << "\n" << gpu::report(*mapping);
    for (const gpu::Kernel& kernel : mapping->kernels) EXPECT_EQ(kernel.recipe, gpu::Recipe::kContraction) << text;
  }
}

/// By kernels of products, which are chosen whatever they take.
TEST(ReshapeTemporaries, ProductsOfHeadsAgreeWithTheOracle) {
  const Sizes sizes = {{"M", 70}, {"N", 96}, {"K", 72}, {"H", 6}, {"D", 16}};
  for (const char* text :
       {"def f(half(M,K) X, half(N,K) W, half(N) b) -> (half(H,M,D) q) { T(m,n) +=! X(m,k) * W(n,k)  T(m,n) += b(n)  "
        "q(h,m,d) = T(m,h * D + d) where h in 0:H, d in 0:D }",
        "def f(half(M,K) X, half(K,N) W) -> (half(H,M,D) q) { T(m,n) +=! X(m,k) * W(k,n)  q(n / D,m,n % D) = T(m,n) }",
        "def f(float(M,K) X, float(N,K) W) -> (float(H,M,D) q) { T(m,n) +=! X(m,k) * W(n,k)  "
        "q(h,m,d) = T(m,h * D + d) where h in 0:H, d in 0:D }"}) {
    const ir::Program program = specialised_from(text, sizes_of(text, sizes));
    const std::optional<gpu::Reshaped> other = gpu::reshape_temporary(program, "T");
    EXPECT_EQ(faults_of(program, gpu::device_of_architecture(90)), "") << text;
    if (other) EXPECT_EQ(faults_of(other->program, gpu::device_of_architecture(90)), "") << text;
  }
}

}  // namespace
}  // namespace tc::testing
