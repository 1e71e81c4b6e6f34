#include <gtest/gtest.h>

#include "tc/gpu/rewrite/recompute.h"
#include "tc/gpu/strategy/contraction/contraction.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Temporaries beside contractions that are computed again where they are read.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr int64_t kMuch = int64_t{1} << 25;  ///< operations in the time of a launch

/// Those of the sizes that the text has.
ir::Program sized(const std::string& text, const Sizes& all) {
  Sizes sizes;
  for (const std::string& name : program_from(text).sizes) sizes[name] = all.at(name);
  return specialised_from(text, sizes);
}

ir::Program small(const std::string& text) {
  return sized(text, {{"M", 34}, {"N", 38}, {"K", 20}, {"B", 3}, {"C", 4}, {"H", 9}, {"W", 10}, {"F", 6}});
}

/// Those of the temporaries R, S and T that are left.
std::string kept(const ir::Program& program, int64_t most_operations = kMuch) {
  const ir::Program after = gpu::recompute_beside_products(program, most_operations, gpu::is_contraction);
  std::string names;
  for (const char* name : {"R", "S", "T"}) {
    if (after.find_tensor(name) != nullptr) names += name;
  }
  return names;
}

TEST(RecomputeBesideProducts, ReadsMovedOperandsWhereTheyAre) {
  for (const char* text :
       {"def f(float(M,K) A, float(K,N) B) -> (C) { T(k,m) = A(m,k)  C(m,n) +=! T(k,m) * B(k,n) }",
        "def f(half(K,M) A, half(N,K) B) -> (C) { T(m,k) = A(k,m)  S(k,n) = B(n,k)  C(m,n) +=! T(m,k) * S(k,n) }",
        // Twice, and one matrix for all of a batch.
        "def f(float(M,K) A, float(B,K,N) D) -> (C) { T(k,m) = A(m,k)  S(b,m,k) = T(k,m) where b in 0:B  "
        "C(b,m,n) +=! S(b,m,k) * D(b,k,n) }",
        // A part, of two products.
        "def f(int32(M,2*K) A, int32(K,N) B, int32(K,N) D) -> (C) { T(m,k) = A(m,k + K) where k in 0:K  "
        "C(m,n) +=! T(m,k) * B(k,n)  C(m,n) += T(m,k) * D(k,n) }",
        // With a border of zeros.
        "def f(half(B,C,H,W) X, half(F,C,3,3) K) -> (O) { "
        "T(b,c,y,x) = y >= 1 && y <= H && x >= 1 && x <= W ? X(b,c,y - 1,x - 1) : 0 where y in 0:H + 2, x in 0:W + 2  "
        "O(b,f,h,w) +=! T(b,c,h + r,w + s) * K(f,c,r,s) }",
        // Under a guard of the reader's.
        "def f(float(M,K) A, float(K,N) B) -> (C) { T(k,m) = A(m,k)  "
        "C(m,n) +=! (k >= 3 ? T(k - 3,m) : 0) * B(k,n) where k in 0:K }"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(kept(small(text)), "");
    EXPECT_EQ(faults_of(small(text), gpu::device_of_architecture(90)), "");
  }
}

TEST(RecomputeBesideProducts, KeepsOperandsThatAreMoreThanMoved) {
  for (const char* text :
       {// Another statement reads it.
        "def f(float(M,K) A, float(K,N) B) -> (C, D) { T(k,m) = A(m,k)  C(m,n) +=! T(k,m) * B(k,n)  D(k,m) = T(k,m) }",
        // Rows that lie apart come together.
        "def f(float(M,2*K) A, float(K,N) B) -> (C) { T(m,k) = A(m,2*k) where k in 0:K  C(m,n) +=! T(m,k) * B(k,n) }",
        // What lies around is not 0.
        "def f(float(M,K) A, float(K,N) B) -> (C) { T(m,k) = k >= 1 ? A(m,k - 1) : 1 where k in 0:K  "
        "C(m,n) +=! T(m,k) * B(k,n) }",
        // Two guards.
        "def f(float(M,K) A, float(K,N) B) -> (C) { T(m,k) = k >= 1 ? A(m,k - 1) : 0 where k in 0:K  "
        "C(m,n) +=! (m >= 2 ? T(m - 2,k) : 0) * B(k,n) where m in 0:M }",
        // It comes from what changes.
        "def f(float(K,N) B) -> (float(M,K) A, C) { T(k,m) = A(m,k)  A(m,k) += 1  C(m,n) +=! T(k,m) * B(k,n) }",
        // Not each element is set.
        "def f(float(K,N) B) -> (C) { T(k,m) = 0 where k in 0:K, m in 0:K  T(k,k) = B(k,0)  "
        "C(m,n) +=! T(k,m) * B(k,n) }"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(kept(small(text)), "T");
    EXPECT_EQ(faults_of(small(text), gpu::device_of_architecture(90)), "");
  }
}

const char* const kNormalised = R"(
def f(float(M,K) A, float(K,N) B, float(N) g, float(N) b, float(N) mean, float(N) var) -> (C) {
  S(n) = g(n) * rsqrt(fabs(var(n)) + 1e-3)
  T(n) = b(n) - mean(n) * S(n)
  C(m,n) +=! A(m,k) * B(k,n)
  C(m,n) = fmax(C(m,n) * S(n) + T(n), 0)
})";

TEST(RecomputeBesideProducts, ComputesFactorsOfRowsAndColumnsAgain) {
  for (const char* text :
       {kNormalised,
        "def f(float(M,K) A, float(K,N) B, float(M) s) -> (D) { S(m) = 1 / s(m)  C(m,n) +=! A(m,k) * B(k,n)  "
        "T(m) = 2 * S(m)  D(n,m) = C(m,n) * T(m) }",
        // Before the product.
        "def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) { T(n) = 2 * b(n)  C(m,n) = T(n) where m in 0:M  "
        "C(m,n) += A(m,k) * B(k,n) }"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(kept(small(text)), "");
    EXPECT_EQ(kept(small(text), 100), std::string(text).find("S(") == std::string::npos ? "T" : "ST");
    EXPECT_EQ(faults_of(small(text), gpu::device_of_architecture(90)), "");
  }
}

TEST(RecomputeBesideProducts, SavesALaunch) {
  for (const int64_t size : {512, 1024}) {
    const ir::Program program = sized(kNormalised, {{"M", size}, {"N", size}, {"K", 512}});
    const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
  }
  // More work than a launch is.
  EXPECT_EQ(kept(sized(kNormalised, {{"M", 8192}, {"N", 8192}, {"K", 512}})), "ST");
}

TEST(RecomputeBesideProducts, KeepsFactorsThatOthersNeed) {
  for (const char* text :
       {// A product reads it.
        "def f(float(M,K) A, float(K,N) B, float(K) s) -> (C) { T(k) = 2 * s(k)  C(m,n) +=! A(m,k) * B(k,n) * T(k) }",
        // It is compared.
        "def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) { T(n) = 2 * b(n)  C(m,n) +=! A(m,k) * B(k,n)  "
        "C(m,n) = C(m,n) > T(n) ? C(m,n) : 0 }",
        // No product is near.
        "def f(float(M,N) A, float(N) b) -> (C) { T(n) = 2 * b(n)  C(m,n) = A(m,n) * T(n) }",
        // A statement of the def makes what it is made of.
        "def f(float(M,K) A, float(K,N) B) -> (C) { s(n) max=! B(k,n)  T(n) = 2 * s(n)  C(m,n) +=! A(m,k) * B(k,n)  "
        "C(m,n) *= T(n) }"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(kept(small(text)), "T");
    EXPECT_EQ(faults_of(small(text), gpu::device_of_architecture(90)), "");
  }
}

}  // namespace
}  // namespace tc::testing
