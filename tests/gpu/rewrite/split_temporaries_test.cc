#include "tc/gpu/rewrite/split_temporaries.h"

#include <gtest/gtest.h>

#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Products whose readers look at one of several ranges of their columns.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// 64 rows, 32 columns in each part.
const Sizes kSizes = {{"M", 64}, {"N", 32}, {"K", 24}, {"N2", 64}, {"N3", 96}, {"N4", 128}, {"H", 4}, {"D", 8}};

Sizes sizes_of(const std::string& text, const Sizes& all) {
  Sizes result;
  for (const std::string& name : program_from(text).sizes) result[name] = all.at(name);
  return result;
}

/// What products write, in parts.
ir::Program split(const ir::Program& program) {
  for (const ir::Tensor& tensor : program.tensors) {
    if (const auto parts = gpu::split_temporary(program, tensor.name)) return parts->program;
  }
  return program;
}

std::vector<std::string> writes_of(const ir::Program& program) {
  std::vector<std::string> result;
  for (const ir::Statement& s : program.statements) result.push_back(s.tensor);
  return result;
}

const char* const kGated[] = {
    "def f(float(M,K) A, float(K,N2) B) -> (float(M,N2/2) G) { H(m,n) +=! A(m,k) * B(k,n)  "
    "G(m,n) = H(m,n) * sigmoid(H(m,n + N2/2)) where n in 0:N2/2 }",
    "def f(float(M,K) A, float(N2,K) B, float(N2) b) -> (float(M,N2/2) G) { H(m,n) +=! A(m,k) * B(n,k)  H(m,n) += b(n) "
    " G(m,n) = fmax(H(m,n),0) * H(m,n + N2/2) where n in 0:N2/2 }",
    "def f(float(M,K) A, float(N2,K) B, float(N2) b) -> (float(M,N2/2) G) { H(m,n) = b(n) where m in 0:M  "
    "H(m,n) += A(m,k) * B(n,k)  G(m,n) = H(m,n) where n in 0:N2/2  G(m,n) *= H(m,n + N2/2) where n in 0:N2/2 }",
    "def f(float(M,K) A, float(K,2,N) B) -> (G) { H(m,s,n) +=! A(m,k) * B(k,s,n)  "
    "G(m,n) = H(m,0,n) * tanh(H(m,1,n)) }",
    "def f(float(M,K) A, float(N,2,K) B) -> (G) { H(m,n,s) +=! A(m,k) * B(n,s,k)  "
    "G(m,n) = H(m,n,1) * tanh(H(m,n,0)) }"};

TEST(SplitTemporaries, MakesAProductOfEachPart) {
  for (const char* text : kGated) {
    const ir::Program program = specialised_from(text, sizes_of(text, kSizes));
    const std::vector<std::string> writes = writes_of(split(program));
    EXPECT_EQ(std::count(writes.begin(), writes.end(), "H"), 0) << text;
    EXPECT_GE(std::count(writes.begin(), writes.end(), "H_1"), 1) << text;
    EXPECT_EQ(std::count(writes.begin(), writes.end(), "H_1"), std::count(writes.begin(), writes.end(), "H_2")) << text;
    EXPECT_EQ(difference(split(program), {.strict = true}), "") << text << ir::to_text(split(program));
    EXPECT_EQ(faults_of(split(program), gpu::device_of_architecture(90)), "") << text;
  }
}

TEST(SplitTemporaries, PutsReadersOfAPartBehindItsWriters) {
  const char* text =
      "def f(float(M,K) A, float(N3,K) B, float(N3) b) -> (float(M,N) p, float(M,N) q, float(M,N) r) { "
      "T(m,n) +=! A(m,k) * B(n,k)  T(m,n) += b(n)  p(m,n) = T(m,n) where n in 0:N  q(m,n) = T(m,n + N) where n in 0:N  "
      "r(m,n) = T(m,n + 2 * N) where n in 0:N }";
  const ir::Program program = specialised_from(text, sizes_of(text, kSizes));
  EXPECT_EQ(writes_of(split(program)),
            (std::vector<std::string>{"T_1", "T_1", "p", "T_2", "T_2", "q", "T_3", "T_3", "r"}));
  EXPECT_EQ(difference(split(program), {.strict = true}), "");
}

/// A reader of all, of ranges that overlap, of elements that data choose; a writer that mixes columns, or is no
/// product; a result.
TEST(SplitTemporaries, LeavesWhatReadersShare) {
  for (const char* text :
       {"def f(float(M,K) A, float(K,N2) B) -> (float(M,N2/2) G, s) { H(m,n) +=! A(m,k) * B(k,n)  "
        "G(m,n) = H(m,n) * H(m,n + N2/2) where n in 0:N2/2  s(m) +=! H(m,n) }",
        "def f(float(M,K) A, float(K,N2) B) -> (float(M,N2/2) G) { H(m,n) +=! A(m,k) * B(k,n)  "
        "G(m,n) = H(m,n) * H(m,n + N2/2 - 1) where n in 0:N2/2 }",
        "def f(float(M,K) A, float(K,N2) B, int32(N) I) -> (float(M,N) G) { H(m,n) +=! A(m,k) * B(k,n)  "
        "G(m,n) = H(m,n) * H(m,I(n)) where n in 0:N }",
        "def f(float(M,K) A, float(K,N2) B) -> (float(M,N2/2) G) { H(m,n) +=! A(m,k) * B(k,n)  "
        "H(m,n) = H(m,N2 - 1 - n)  G(m,n) = H(m,n) * H(m,n + N2/2) where n in 0:N2/2 }",
        "def f(float(M,K) A, float(K,N2) B) -> (H, float(M,N2/2) G) { H(m,n) +=! A(m,k) * B(k,n)  "
        "G(m,n) = H(m,n) * H(m,n + N2/2) where n in 0:N2/2 }"}) {
    const ir::Program program = specialised_from(text, sizes_of(text, kSizes));
    EXPECT_EQ(ir::to_text(split(program)), ir::to_text(program)) << text;
    EXPECT_EQ(difference(split(program), {.strict = true}), "") << text;
  }
}

/// Columns that nobody reads are not computed.
TEST(SplitTemporaries, LeavesOutWhatNobodyReads) {
  const char* text =
      "def f(float(M,K) A, float(K,N4) B) -> (float(M,N) G) { H(m,n) +=! A(m,k) * B(k,n)  "
      "G(m,n) = H(m,n + N) * H(m,n + 3 * N) where n in 0:N }";
  const ir::Program program = split(specialised_from(text, sizes_of(text, kSizes)));
  EXPECT_EQ(writes_of(program), (std::vector<std::string>{"H_1", "H_2", "G"}));
  EXPECT_EQ(difference(program, {.strict = true}), "");
}

/// What a part is made of is split with it: of halves, sums are temporaries of their own.
TEST(SplitTemporaries, SplitsWhatPartsAreMadeOf) {
  const char* text =
      "def f(half(M,K) A, half(N2,K) B, half(N2) b) -> (half(M,N2/2) G) { H(m,n) = b(n) where m in 0:M  "
      "H(m,n) += A(m,k) * B(n,k)  X(m,n) = H(m,n) where n in 0:N2/2  Y(m,n) = H(m,n + N2/2) where n in 0:N2/2  "
      "G(m,n) = X(m,n) * sigmoid(Y(m,n)) }";
  const ir::Program program = split(specialised_from(text, sizes_of(text, kSizes)));
  EXPECT_EQ(writes_of(program),
            (std::vector<std::string>{"H_1", "H_sum_1", "H_1", "X", "H_2", "H_sum_2", "H_2", "Y", "G"}));
  EXPECT_EQ(difference(program, {.strict = true}), "");
  EXPECT_EQ(faults_of(program, gpu::device_of_architecture(90)), "");
}

/// In between, a reader writes what a later writer reads: it stays where it is. H is filled before all.
TEST(SplitTemporaries, KeepsDependences) {
  const char* text =
      "def f(float(M,K) A, float(K,N2) B, float(M,N) x) -> (float(M,N) y, float(M,N) z) { "
      "H(m,n) +=! A(m,k) * B(k,n)  y(m,n) = x(m,n) + H(m,n) where n in 0:N  H(m,n + N) = H(m,n + N) * y(m,n) where n "
      "in "
      "0:N  y(m,n) = H(m,n) where n in 0:N  z(m,n) = H(m,n + N) + y(m,n) where n in 0:N }";
  const ir::Program program = split(specialised_from(text, sizes_of(text, kSizes)));
  EXPECT_EQ(writes_of(program), (std::vector<std::string>{"H_1", "H_1", "y", "H_2", "H_2", "H_2", "y", "z"}));
  EXPECT_EQ(difference(program, {.strict = true}), "");
}

/// Of large products no launch is left that only goes through results.
TEST(SplitTemporaries, LeavesLaunchesOfProductsOnly) {
  const Sizes large = {{"M", 8192},  {"N", 2048}, {"K", 512}, {"N2", 4096},
                       {"N3", 3072}, {"H", 16},   {"D", 64},  {"S", 48}};
  const std::vector<std::pair<const char*, size_t>> texts = {
      {"def f(half(M,K) A, half(N2,K) B, half(N2) b) -> (half(M,N2/2) G) { H(m,n) +=! A(m,k) * B(n,k)  "
       "H(m,n) += b(n)  G(m,n) = H(m,n) * sigmoid(H(m,n + N2/2)) where n in 0:N2/2 }",
       1},
      {"def f(half(M,K) A, half(K,N2) B) -> (half(M,N2/2) G) { H(m,n) +=! A(m,k) * B(k,n)  "
       "X(m,n) = H(m,n + N2/2) where n in 0:N2/2  G(m,n) = H(m,n) * tanh(X(m,n)) where n in 0:N2/2 }",
       1},
      {"def f(half(M,K) A, half(2,N,K) B) -> (G) { H(m,s,n) +=! A(m,k) * B(s,n,k)  "
       "G(m,n) = H(m,1,n) * fmax(H(m,0,n), 0) }",
       1},
      {"def f(half(M,K) X, half(S,D,K) W, half(S,D) b) -> (half(H,M,D) q, half(H,M,D) r, half(H,M,D) v) { "
       "T(m,h,d) +=! X(m,k) * W(h,d,k)  T(m,h,d) += b(h,d)  q(h,m,d) = T(m,h,d) where h in 0:H  "
       "r(h,m,d) = T(m,H + h,d) where h in 0:H  v(h,m,d) = T(m,2 * H + h,d) where h in 0:H }",
       3}};
  for (const auto& [text, launches] : texts) {
    const ir::Program program = specialised_from(text, sizes_of(text, large));
    const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), launches) << text << "\n" << gpu::report(*mapping);
    for (const gpu::Kernel& kernel : mapping->kernels) EXPECT_EQ(kernel.recipe, gpu::Recipe::kContraction) << text;
  }
}

}  // namespace
}  // namespace tc::testing
