#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/common/program.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// What surrounds a product shares its launch, however it is spelled, with default options. So do the stages of a blur
/// and the halves of a rotary embedding.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// A def in several spellings: the text behind "def f(", with `real` for its type.
struct Case {
  const char* name;
  std::vector<const char*> spellings;
  size_t launches = 1;
  size_t on_ampere = launches;  ///< where the estimate finds another launch faster
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"Bias",
     {"real(M,K) A, real(K,N) B, real(N) b) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = C(m,n) + b(n) }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (C) { T(j,i) +=! B(l,i) * A(j,l)  C(m,n) = b(n) + T(m,n) }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (D) { C(n,m) +=! B(k,m) * A(n,k)  T(p,q) = C(p,q)  D(m,n) = T(m,n) - "
      "(-b(n)) }"}},
    {"BiasAdded",
     {"real(M,K) A, real(K,N) B, real(N) b) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n) }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (C) { C(i,j) +=! B(l,j) * A(i,l)  C(p,q) += 2 * b(q)  C(i,j) += -b(j) }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (C) { C(n,m) +=! A(n,k) * B(k,m)  C(n,m) += v where v = b(m) }"}},
    {"AtLeastZero",
     {"real(M,K) A, real(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) max= 0 }",
      "real(M,K) A, real(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(i,j) = C(i,j) < 0 ? 0 : C(i,j) }",
      "real(M,K) A, real(K,N) B) -> (D) { C(n,m) +=! B(k,m) * A(n,k)  D(m,n) = C(m,n)  D(i,j) = relu(D(i,j)) }",
      "real(M,K) A, real(K,N) B) -> (C) { C(m,n) = 0 where m in 0:M, n in 0:N  C(m,n) += A(m,k) * B(k,n)  "
      "C(m,n) = select(C(m,n) > 0, C(m,n), 0) }"}},
    {"Scaled",
     {"real(M,K) A, real(K,N) B, real(M) s) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) *= s(m) }",
      "real(M,K) A, real(K,N) B, real(M) s) -> (D) { C(i,j) +=! A(i,l) * B(l,j)  D(m,n) = C(m,n) * s(m) }",
      "real(M,K) A, real(K,N) B, real(M) s) -> (D) { C(m,n) +=! B(k,n) * A(m,k)  D(m,n) = s(m) where n in 0:N  "
      "D(i,j) *= C(i,j) }"}},
    {"BiasBefore",
     {"real(M,K) A, real(K,N) B, real(N) b) -> (C) { C(m,n) = b(n) where m in 0:M  C(m,n) += A(m,k) * B(k,n) }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (C) { T(m,n) = b(n) where m in 0:M  C(m,n) = T(m,n)  "
      "C(i,j) += B(l,j) * A(i,l) }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (C) { C(m,n) = 0 where m in 0:M, n in 0:N  C(p,q) += b(q)  "
      "C(m,n) += A(m,k) * B(k,n) }"}},
    {"ReluAndResidual",
     {"real(M,K) A, real(K,N) B, real(N) b, real(M,N) R) -> (D) { C(m,n) +=! A(m,k) * B(k,n)  "
      "D(m,n) = relu(C(m,n) + b(n)) + R(m,n) }",
      "real(M,K) A, real(K,N) B, real(N) b, real(M,N) R) -> (D) { D(m,n) +=! A(m,k) * B(k,n)  D(m,n) = D(m,n) + b(n)  "
      "D(m,n) = D(m,n) > 0 ? D(m,n) : 0  D(i,j) = R(i,j) + D(i,j) }",
      "real(M,K) A, real(K,N) B, real(N) b, real(N,M) R) -> (D) { C(m,n) = b(n) where m in 0:M  "
      "C(m,n) += B(k,n) * A(m,k)  C(m,n) max= 0  D(m,n) = C(m,n) + R(n,m) }"}},
    {"ThreeInARow",
     {"real(M,K) A, real(K,N) B, real(N) b, real(M) s) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)  "
      "C(m,n) max= 0  C(m,n) *= s(m) }",
      "real(M,K) A, real(K,N) B, real(N) b, real(M) s) -> (F) { C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = C(m,n) + b(n)  "
      "E(n,m) = fmax(D(m,n), 0)  F(m,n) = s(m) * E(n,m) }",
      "real(M,K) A, real(K,N) B, real(N) b, real(M) s) -> (C) { C(i,j) +=! B(l,j) * A(i,l)  "
      "C(m,n) = s(m) * (C(m,n) + b(n) > 0 ? C(m,n) + b(n) : 0) }"}},
    {"OfHalves",
     {"half(M,K) A, half(K,N) B, half(N) b) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n) }",
      "half(M,K) A, half(K,N) B, half(N) b) -> (half(M,N) C) { float S(m,n) +=! float(A(m,k)) * float(B(k,n))  "
      "C(m,n) = half(S(m,n) + float(b(n))) }",
      "half(M,K) A, half(K,N) B, half(N) b) -> (half(M,N) C) { float S(i,j) +=! B(l,j) * A(i,l)  S(i,j) += b(j)  "
      "C(m,n) = half(S(m,n)) }"}},
    {"TwoResults",
     {"real(M,K) A, real(K,N) B, real(N) b) -> (C, D) { C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = fmax(C(m,n) + b(n), 0) }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (D, C) { C(m,n) +=! A(m,k) * B(k,n)  T(m,n) = C(m,n) + b(n)  "
      "D(n,m) = T(m,n) > 0 ? T(m,n) : 0 }",
      "real(M,K) A, real(K,N) B, real(N) b) -> (C, D) { C(j,i) +=! B(l,i) * A(j,l)  D(m,n) = C(m,n)  D(m,n) += b(n)  "
      "D(i,j) max= 0 }"}},
    {"PairsOfColumnsPooled",
     {"real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n) = max(C(m,2*n), C(m,2*n+1)) }",
      "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! B(k,n) * A(m,k)  P(j,i) max=! C(j,2*i+r) where r in 0:2 }",
      "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n) = C(m,2*n)  P(m,n) max= C(m,2*n+1) }",
      "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n/2) max=! C(m,n) }"}},
    {"PairsOfColumnsAveraged",
     {"real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n) +=! C(m,2*n+r) / 2 where r in 0:2 }",
      "real(M,K) A, real(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  P(m,n/2) +=! 0.5 * C(m,n) }",
      "real(M,K) A, real(K,N) B) -> (Q) { C(m,n) +=! B(k,n) * A(m,k)  P(m,n) = (C(m,2*n) + C(m,2*n+1)) * 0.5  "
      "Q(m,n) = P(m,n) }"}},
    {"Transposed",
     {"real(M,K) A, real(K,N) B) -> (D) { C(m,n) +=! A(m,k) * B(k,n)  D(n,m) = C(m,n) }",
      "real(M,K) A, real(K,N) B) -> (D) { D(n,m) +=! A(m,k) * B(k,n) }",
      "real(M,K) A, real(K,N) B) -> (E) { C(m,n) +=! B(k,n) * A(m,k)  D(i,j) = C(i,j)  E(n,m) = D(m,n) }"}},
    {"TwoProductsSummed",
     {"real(M,K) x, real(K,N) W, real(M,K) h, real(K,N) U) -> (C) { C(m,n) +=! x(m,k) * W(k,n)  "
      "C(m,n) += h(m,k) * U(k,n) }",
      "real(M,K) x, real(K,N) W, real(M,K) h, real(K,N) U) -> (C) { C(m,n) +=! x(m,k) * W(k,n) + h(m,k) * U(k,n) }",
      "real(M,K) x, real(K,N) W, real(M,K) h, real(K,N) U) -> (O) { P(m,n) +=! x(m,k) * W(k,n)  "
      "Q(i,j) +=! U(l,j) * h(i,l)  O(m,n) = Q(m,n) + P(m,n) }"}},
    {"Gated",
     {"real(M,K) A, real(K,N) B, real(K,N) G) -> (O) { P(m,n) +=! A(m,k) * B(k,n)  Q(m,n) +=! A(m,k) * G(k,n)  "
      "O(m,n) = P(m,n) * sigmoid(P(m,n)) * Q(m,n) }",
      "real(M,K) A, real(K,N) B, real(K,N) G) -> (O) { Q(m,n) +=! A(m,k) * G(k,n)  P(i,j) +=! B(l,j) * A(i,l)  "
      "S(m,n) = sigmoid(P(m,n))  O(m,n) = Q(m,n)  O(m,n) *= P(m,n)  O(m,n) *= S(m,n) }",
      "real(M,K) A, real(K,N) B, real(K,N) G) -> (P) { P(m,n) +=! A(m,k) * B(k,n)  Q(n,m) +=! A(m,k) * G(k,n)  "
      "P(m,n) = P(m,n) / (1 + exp(-P(m,n))) * Q(n,m) }"}},
    {"ExponentialBefore",
     {"real(M,K) A, real(K,N) B) -> (C) { E(m,k) = exp(A(m,k))  C(m,n) +=! E(m,k) * B(k,n) }",
      "real(M,K) A, real(K,N) B) -> (C) { C(m,n) +=! e * B(k,n) where e = exp(A(m,k)) }",
      "real(M,K) A, real(K,N) B) -> (C) { E(k,m) = exp(A(m,k))  C(i,j) +=! B(l,j) * E(l,i) }"},
     1,
     2},
    {"DequantisedBefore",
     {"real(M,K) A, int8(K,N) q, real(N) s) -> (C) { W(k,n) = real(q(k,n)) * s(n)  C(m,n) +=! A(m,k) * W(k,n) }",
      "real(M,K) A, int8(K,N) q, real(N) s) -> (C) { C(m,n) +=! s(n) * real(q(k,n)) * A(m,k) }",
      "real(M,K) A, int8(K,N) q, real(N) s) -> (C) { W(k,n) = real(q(k,n))  C(m,n) +=! W(k,n) * A(m,k)  "
      "C(i,j) *= s(j) }"}},
    {"RowSums",
     {"real(M,K) A, real(K,N) B) -> (C, R) { C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! C(m,n) }",
      "real(M,K) A, real(K,N) B) -> (R) { C(n,m) +=! B(k,m) * A(n,k)  R(i) +=! C(i,j) }",
      "real(M,K) A, real(K,N) B) -> (C, R) { C(m,n) +=! A(m,k) * B(k,n)  R(m) = 0 where m in 0:M  R(i) += C(i,j) }"},
     2},
    {"ColumnMaxima",
     {"real(M,K) A, real(K,N) B) -> (C, Q) { C(m,n) +=! A(m,k) * B(k,n)  Q(n) max=! C(m,n) }",
      "real(M,K) A, real(K,N) B) -> (Q) { C(j,i) +=! B(l,i) * A(j,l)  D(i,j) = C(j,i)  Q(m) max=! D(m,n) }",
      "real(M,K) A, real(K,N) B) -> (C, Q) { C(m,n) +=! A(m,k) * B(k,n)  Q(n) = -inf where n in 0:N  "
      "Q(n) max= C(m,n) }"},
     2},
    {"ScalarSum",
     {"real(M,K) A, real(K,N) B) -> (C, L) { C(m,n) +=! A(m,k) * B(k,n)  L +=! C(m,n) }",
      "real(M,K) A, real(K,N) B) -> (L) { C(i,j) +=! B(l,j) * A(i,l)  L(0) +=! C(m,n) }",
      "real(M,K) A, real(K,N) B) -> (C, L) { C(m,n) +=! A(m,k) * B(k,n)  L = 0  D(m,n) = C(m,n)  L += D(m,n) }"},
     2},
};

std::string text_of(const std::string& spelling, const std::string& type) {
  return std::regex_replace("def f(" + spelling, std::regex("\\breal\\b"), type);
}

gpu::Device hopper() { return gpu::device_of_architecture(90); }

/// "" if a mapping has so many launches at most, of which one is that of a contraction; else the report.
std::string more_than(size_t launches, const std::string& text, const Sizes& sizes, const gpu::Device& device,
                      bool by_tensor_cores) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {}, device);
  if (!mapping) return mapping.error().to_string();
  const std::vector<gpu::Kernel>& kernels = mapping->kernels;
  const bool multiplies = std::any_of(kernels.begin(), kernels.end(), [&](const gpu::Kernel& kernel) {
    return kernel.recipe == gpu::Recipe::kContraction && kernel.chosen.tensor_cores.value_or(false) == by_tensor_cores;
  });
  return kernels.size() <= launches && multiplies ? "" : text + "\n" + gpu::report(*mapping);
}

class NoCliffs : public ::testing::TestWithParam<Case> {};

/// On an A100 products of floats are those that the estimate finds faster in parts, or apart.
TEST_P(NoCliffs, HasSoManyLaunches) {
  const Sizes sizes = {{"M", 512}, {"N", 512}, {"K", 512}};
  for (const char* spelling : GetParam().spellings) {
    const std::string of_halves = text_of(spelling, "half"), of_floats = text_of(spelling, "float");
    EXPECT_EQ(more_than(GetParam().launches, of_halves, sizes, hopper(), true), "");
    EXPECT_EQ(more_than(GetParam().on_ampere, of_halves, sizes, ampere(), true), "");
    if (of_floats == of_halves) continue;
    EXPECT_EQ(more_than(GetParam().launches, of_floats, sizes, hopper(), false), "");
  }
}

/// By elements, by mma.sync and by warpgroups, a spelling each.
TEST_P(NoCliffs, AgreesWithTheOracle) {
  const Sizes odd = {{"M", 37}, {"N", 46}, {"K", 33}}, boxes = {{"M", 70}, {"N", 72}, {"K", 72}};
  for (size_t s = 0; s < GetParam().spellings.size(); ++s) {
    const std::string spelling = GetParam().spellings[s];
    const std::string text = text_of(spelling, s % 3 == 0 ? "float" : "half");
    const std::string wrong = s % 3 == 0 ? difference(specialised_from(text, odd), {}, 1, hopper())
                              : s % 3 == 1
                                  ? difference(specialised_from(text, odd), {.tensor_cores = true}, 1, ampere())
                                  : difference(specialised_from(text, boxes), warpgroup_tile(1, 24, 2), 1, hopper());
    EXPECT_EQ(wrong, "") << text;
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, NoCliffs, ::testing::ValuesIn(kCases), name_of);

/// Texts with `real` for the type, and sizes for the launches and for the simulator.
struct Large {
  const char* name;
  std::vector<const char*> spellings;
  Sizes large, small;
};

const Large kLarge[] = {
    {"PaddedConvolution",
     {"real(N,C,H,W) X, real(F,C,KH,KW) K, real(F) b) -> (O) { "
      "O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? X(n,c,h + kh - 1,w + kw - 1) : 0) * "
      "K(f,c,kh,kw) where h in 0:H, w in 0:W  O(n,f,h,w) = relu(O(n,f,h,w) + b(f)) }",
      "real(N,H,W,C) X, real(KH,KW,C,F) K, real(F) b) -> (O) { "
      "O(n,h,w,f) = b(f) where n in 0:N, h in 0:H, w in 0:W  O(n,h,w,f) += K(kh,kw,c,f) * (0 <= h + kh - 1 && "
      "h + kh - 1 < H && 0 <= w + kw - 1 && w + kw - 1 < W ? X(n,h + kh - 1,w + kw - 1,c) : 0)  O(n,h,w,f) max= 0 }",
      "real(N,C,H,W) X, real(F,C,KH,KW) K, real(F) b) -> (R) { "
      "P(n,c,y,x) = y >= 1 && y <= H && x >= 1 && x <= W ? X(n,c,y - 1,x - 1) : 0 where y in 0:H + 2, x in 0:W + 2  "
      "O(n,f,h,w) +=! P(n,c,h + kh,w + kw) * K(f,c,kh,kw)  Q(n,f,h,w) = O(n,f,h,w) + b(f)  "
      "R(n,f,h,w) = Q(n,f,h,w) > 0 ? Q(n,f,h,w) : 0 }"},
     {{"N", 32}, {"C", 64}, {"H", 56}, {"W", 56}, {"F", 64}, {"KH", 3}, {"KW", 3}},
     {{"N", 2}, {"C", 5}, {"H", 9}, {"W", 10}, {"F", 6}, {"KH", 3}, {"KW", 3}}},
    {"Blur",
     {"real(N,M) X) -> (Y) { T(i,j) = X(i,j) + 2 * X(i,j+1) + X(i,j+2)  Y(i,j) = T(i,j) + 2 * T(i+1,j) + T(i+2,j) }",
      "real(N,M) X, real(R) w) -> (Y) { T(i,j) +=! X(i+r,j) * w(r)  Y(i,j) +=! w(s) * T(i,j+s) }",
      "real(N,M) X) -> (Y) { T(j,i) = X(i,max(j-1,0)) + X(i,j) + X(i,min(j+1,M-1)) where i in 0:N, j in 0:M  "
      "Y(i,j) = T(j,i) where i in 0:N  Y(i,j) += T(j,max(i-1,0)) where i in 0:N  "
      "Y(i,j) += T(j,min(i+1,N-1)) where i in 0:N }"},
     {{"N", 8192}, {"M", 8192}, {"R", 5}},
     {{"N", 60}, {"M", 131}, {"R", 5}}},
    {"RotaryEmbedding",
     {"real(T,H,D) x, real(T,E) c, real(T,E) s) -> (real(T,H,D) y) { "
      "y(t,h,e) = x(t,h,e) * c(t,e) - x(t,h,e + E) * s(t,e) where e in 0:E  "
      "y(t,h,e + E) = x(t,h,e + E) * c(t,e) + x(t,h,e) * s(t,e) where e in 0:E }",
      "real(T,H,D) x, real(T,E) c, real(T,E) s) -> (real(T,H,D) y) { "
      "y(a,g,d) = s(a,d - E) * x(a,g,d - E) + c(a,d - E) * x(a,g,d) where d in E:D  "
      "y(t,h,e) = c(t,e) * x(t,h,e) - s(t,e) * x(t,h,e + E) where e in 0:E }",
      "real(T,H,D) x, real(T,E) c, real(T,E) s) -> (real(T,H,D) y) { "
      "y(t,h,d) = d >= E ? x(t,h,d) * c(t,d - E) + x(t,h,d - E) * s(t,d - E) : x(t,h,d) * c(t,d) - x(t,h,d + E) * "
      "s(t,d) where d in 0:D }"},
     {{"T", 4096}, {"H", 32}, {"D", 128}, {"E", 64}},
     {{"T", 20}, {"H", 3}, {"D", 16}, {"E", 8}}},
};

void PrintTo(const Large& c, std::ostream* out) { *out << c.name; }

Sizes sizes_of(const std::string& text, const Sizes& all) {
  const ir::Program symbolic = program_from(text);
  Sizes result;
  for (const std::string& name : symbolic.sizes) result[name] = all.at(name);
  return result;
}

class NoCliffsOf : public ::testing::TestWithParam<Large> {};

TEST_P(NoCliffsOf, IsOneLaunch) {
  for (const char* spelling : GetParam().spellings) {
    for (const char* type : {"float", "half"}) {
      const std::string text = text_of(spelling, type);
      for (const gpu::Device& device : {hopper(), ampere()}) {
        // Of halves, layouts that warpgroups take may come from copies.
        const options::MappingOptions options{.copy_operands = false};
        const Result<gpu::Mapping> mapping =
            mapped(specialised_from(text, sizes_of(text, GetParam().large)), options, device);
        ASSERT_TRUE(mapping) << mapping.error().to_string();
        EXPECT_EQ(mapping->kernels.size(), 1U) << text << "\n" << gpu::report(*mapping);
      }
    }
  }
}

TEST_P(NoCliffsOf, AgreesWithTheOracle) {
  gpu::Device busy = hopper();
  busy.instances_of_launch = 256;  // few elements are many
  for (const char* spelling : GetParam().spellings) {
    for (const char* type : {"float", "half"}) {
      const std::string text = text_of(spelling, type);
      EXPECT_EQ(difference(specialised_from(text, sizes_of(text, GetParam().small)), {}, 1, busy), "") << text;
    }
  }
}

std::string name_of_large(const ::testing::TestParamInfo<Large>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, NoCliffsOf, ::testing::ValuesIn(kLarge), name_of_large);

/// A scalar that is reduced of a product's results is no reason for one thread to compute both.
TEST(TinyProducts, DoNotWaitForTheirSums) {
  for (const char* sum : {"Z +=! C(m,n)", "Z min=! C(m,n)", "X(m) +=! C(m,n)"}) {
    for (const auto& [rows, columns, reduced] : {std::tuple(16, 8, 24), {8, 4, 4}, {3, 50, 7}}) {
      const std::string text =
          fmt::format("def f(float(M,K) A, float(K,N) B) -> (C, {}) {{ C(m,n) +=! A(m,k) * B(k,n)  {} }}", sum[0], sum);
      const ir::Program program = specialised_from(text, {{"M", rows}, {"N", columns}, {"K", reduced}});
      const Result<gpu::Mapping> mapping = mapped(program, {}, hopper());
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      double us = 0;
      for (const gpu::Estimate& estimate : mapping->estimates) us += estimate.us;
      EXPECT_LT(us, 5) << text << gpu::report(*mapping);
      EXPECT_EQ(difference_of_mapping(program, *mapping, 1), "") << text;
    }
  }
}

}  // namespace
}  // namespace tc::testing
