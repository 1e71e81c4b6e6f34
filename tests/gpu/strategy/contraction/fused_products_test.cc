#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Which statements share a launch with a product: however they are spelled, and as on the oracle.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// The parameters and results of a def, and spellings of the same body.
struct Case {
  const char* name;
  const char* head;
  std::vector<const char*> bodies;
  size_t launches = 1;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const char* const kWithBias = "real(M,K) A, real(K,N) B, real(N) b) -> (C";
const char* const kWithBiasPooled = "real(M,K) A, real(K,N) B, real(N) b) -> (P";
const char* const kPlain = "real(M,K) A, real(K,N) B) -> (C";

const Case kCases[] = {
    {"Bias",
     kWithBias,
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = C(m,n) + b(n)", "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)",
      "C(i,j) +=! A(i,l) * B(l,j)  C(p,q) = b(q) + C(p,q)"}},
    {"AtLeastZero",
     kPlain,
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) max= 0", "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = fmax(C(m,n), 0)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(i,j) = C(i,j) > 0 ? C(i,j) : 0"}},
    {"Scaled",
     "real(M,K) A, real(K,N) B, real(M) s) -> (C",
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) *= s(m)", "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = s(m) * C(m,n)",
      "C(j,i) +=! A(j,l) * B(l,i)  C(a,b) *= s(a)"}},
    {"ThreeInARow",
     "real(M,K) A, real(K,N) B, real(M) s, real(N) b) -> (C",
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)  C(m,n) max= 0  C(m,n) *= s(m)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = C(m,n) + b(n)  C(m,n) max= 0  C(m,n) = C(m,n) * s(m)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(i,j) += b(j)  C(m,n) = fmax(C(m,n), 0)  C(m,n) *= s(m)"}},
    {"BiasBefore",
     kWithBias,
     {"C(m,n) = b(n) where m in 0:M  C(m,n) += A(m,k) * B(k,n)",
      "C(i,j) = b(j) where i in 0:M  C(i,j) += A(i,k) * B(k,j)  C(i,j) max= 0",
      "C(m,n) = b(n) where m in 0:M  C(m,n) *= 2  C(m,n) += A(m,k) * B(k,n)"}},
    {"Residual",
     "real(M,K) A, real(K,N) B, real(N) b, real(M,N) R) -> (D",
     {"C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)  C(m,n) max= 0  D(m,n) = R(m,n)  D(m,n) += C(m,n)",
      "D(m,n) = R(m,n)  C(m,n) +=! A(m,k) * B(k,n)  C(i,j) = fmax(C(i,j) + b(j), 0)  D(p,q) += C(p,q)"}},
    {"TwoResults",
     "real(M,K) A, real(K,N) B, real(N) b) -> (C, D",
     {"C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = fmax(C(m,n), 0)  C(m,n) += b(n)",
      "C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = C(m,n)  D(m,n) max= 0  C(m,n) = C(m,n) + b(n)",
      "C(m,n) +=! A(m,k) * B(k,n)  D(j,i) = fmax(C(i,j), 0)  C(i,j) += b(j)"}},
    {"Transposed",
     kWithBias,
     {"D(m,n) +=! A(m,k) * B(k,n)  C(n,m) = D(m,n) + b(n)",
      "D(m,n) +=! A(m,k) * B(k,n)  D(m,n) += b(n)  C(j,i) = D(i,j)",
      "D(m,n) +=! A(m,k) * B(k,n)  C(n,m) = b(n) where m in 0:M  C(n,m) += D(m,n)"}},
    {"ExponentialBefore",
     "real(M,K) A, real(K,N) B, real(N) b) -> (C",
     {"E(m,k) = exp(A(m,k))  C(m,n) +=! E(m,k) * B(k,n)", "E(k,m) = exp(A(m,k))  C(m,n) +=! E(k,m) * B(k,n)",
      "E(i,j) = exp(A(i,j))  C(m,n) +=! E(m,k) * B(k,n)  C(m,n) += b(n)"}},
    {"Dequantised",
     "real(M,K) A, int8(K,N) q, real(N) s) -> (C",
     {"W(k,n) = s(n) * real(q(k,n))  C(m,n) +=! A(m,k) * W(k,n)",
      "W(n,k) = s(n) * real(q(k,n))  C(m,n) +=! A(m,k) * W(n,k)",
      "W(i,j) = real(q(i,j)) * s(j)  C(m,n) +=! A(m,k) * W(k,n)  C(m,n) max= 0"}},
    {"TwoProductsSummed",
     "real(M,K) x, real(K,N) W, real(M,K) h, real(K,N) U, real(N) b) -> (C",
     {"C(m,n) +=! x(m,k) * W(k,n)  C(m,n) += h(m,k) * U(k,n)",
      "C(m,n) +=! x(m,k) * W(k,n)  C(i,j) += h(i,l) * U(l,j)  C(m,n) += b(n)  C(m,n) max= 0",
      "C(m,n) +=! x(m,k) * W(k,n)  D(n,m) +=! h(n,k) * U(k,m)  C(m,n) = fmax(C(m,n) + D(m,n) + b(n), 0)",
      "C(m,n) +=! x(m,k) * W(k,n)  C(i,j) += U(l,j) * h(i,l)"}},
    {"Gated",
     "real(M,K) A, real(K,N) B, real(K,N) G) -> (O",
     {"P(m,n) +=! A(m,k) * B(k,n)  Q(m,n) +=! A(m,k) * G(k,n)  O(m,n) = P(m,n) * Q(m,n) / (1 + exp(-P(m,n)))",
      "P(m,n) +=! A(m,k) * B(k,n)  Q(i,j) +=! A(i,l) * G(l,j)  P(m,n) = P(m,n) / (1 + exp(-P(m,n)))  "
      "O(m,n) = P(m,n) * Q(m,n)",
      "P(m,n) +=! A(m,k) * B(k,n)  P(m,n) = P(m,n) / (1 + exp(-P(m,n)))  Q(n,m) +=! A(n,k) * G(k,m)  O(a,c) = P(a,c)  "
      "O(a,c) *= Q(a,c)",
      "P(m,n) +=! B(k,n) * A(m,k)  Q(m,n) +=! A(m,k) * G(k,n)  O(m,n) = P(m,n) * Q(m,n)"}},
    {"PairsOfColumnsPooled",
     kWithBiasPooled,
     {"C(m,n) +=! A(m,k) * B(k,n)  P(m,n) = max(C(m,2*n), C(m,2*n+1))",
      "C(m,n) +=! A(m,k) * B(k,n)  P(m,n) max=! C(m,2*n+r) where r in 0:2",
      "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)  P(i,j) = C(i,2*j+1) > C(i,2*j) ? C(i,2*j+1) : C(i,2*j)  "
      "P(m,n) max= 0",
      "C(i,j) +=! A(i,l) * B(l,j)  C(m,n) max= b(n)  P(m,n) max=! C(m,2*n+r) where r in 0:2  P(m,n) *= 0.5"}},
    {"PairsBesideTheirProduct",
     "real(M,K) A, real(K,N) B, real(N) b) -> (C, P, Q",
     {"C(m,n) +=! A(m,k) * B(k,n)  P(m,n) = max(C(m,2*n), C(m,2*n+1))  Q(n,m) = P(m,n) + C(m,2*n) * b(n)",
      "C(m,n) +=! A(m,k) * B(k,n)  P(n,m) max=! C(m,2*n+r) where r in 0:2  Q(m,n) = C(m,2*n+1) - P(n,m)"}},
};

std::string text_of(const Case& c, const char* body, const std::string& type) {
  const std::string text = fmt::format("def f({}) {{ {} }}", c.head, body);
  return std::regex_replace(text, std::regex("real"), type);
}

/// An H200.
gpu::Device hopper() {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  device.gigahertz = 1.98;
  return device;
}

/// "" if it has so many launches, without copies of operands, or what they are.
std::string other_than(size_t launches, const ir::Program& program) {
  const Result<gpu::Mapping> mapping = mapped(program, {.copy_operands = false}, hopper());
  if (!mapping) return mapping.error().to_string();
  return mapping->kernels.size() == launches ? "" : gpu::report(*mapping);
}

class FusedProducts : public ::testing::TestWithParam<Case> {};

TEST_P(FusedProducts, HaveSoManyLaunches) {
  for (const char* type : {"float", "half"}) {
    for (const char* body : GetParam().bodies) {
      const std::string text = text_of(GetParam(), body, type);
      const ir::Program program = specialised_from(text, {{"M", 512}, {"N", 512}, {"K", 512}});
      EXPECT_EQ(other_than(GetParam().launches, program), "") << text;
    }
  }
}

TEST_P(FusedProducts, AgreeWithTheOracleAndAreProved) {
  for (const char* type : {"float", "half"}) {
    for (const char* body : GetParam().bodies) {
      const std::string text = text_of(GetParam(), body, type);
      EXPECT_EQ(faults_of(specialised_from(text, {{"M", 36}, {"N", 34}, {"K", 21}}), hopper()), "") << text;
    }
  }
}

/// The launch that sums rows converts them too: so the product's operand is one for boxes.
TEST(FusedProducts, LeaveToAReductionWhatItMakes) {
  const char* text = R"(
def f(half(V,D) E, int32(B,L) I, half(D,N) W) -> (O) {
  S(b,d) +=! E(I(b,l),d)
  O(b,n) +=! S(b,d) * W(d,n)
})";
  const gpu::Device device = gpu::device_of_architecture(90);
  const Sizes large = {{"V", 40000}, {"D", 256}, {"B", 1024}, {"L", 16}, {"N", 1024}};
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, large), {}, device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 2U) << gpu::report(*mapping);
  EXPECT_EQ(mapping->program.kernels[1].block[0] % 128, 32) << "warpgroups and a warp that copies";
  const Sizes small = {{"V", 10}, {"D", 24}, {"B", 34}, {"L", 3}, {"N", 40}};
  EXPECT_EQ(difference(specialised_from(text, small), {}, 1, device), "");
}

/// What the group reads elsewhere before it writes it is not the element of the point.
TEST(FusedProducts, ReadElsewhereWhatALaterStatementWrites) {
  const char* text = R"(
def f(float(M,K) A, float(K,N) B) -> (C, E, float(M,2*N) D) {
  C(m,n) +=! A(m,k) * B(k,n)
  E(m,n) = C(m,n) + D(m,n + N)
  D(m,n) = C(m,n) where n in 0:N
})";
  EXPECT_EQ(faults_of(specialised_from(text, {{"M", 68}, {"N", 66}, {"K", 37}})), "");
}

/// Products of one kernel have reductions, operands and types of their own. The kernel's options give it again.
TEST(FusedProducts, OfDifferentReductionsShareAKernel) {
  const char* texts[] = {
      R"(
def f(float(M,K) A, float(K,N) B, float(M,L) C, float(L,N) D, float(N,M,J) E, float(N,J) F) -> (O) {
  P(m,n) +=! A(m,k) * B(k,n)
  Q(m,n) = A(m,0) where n in 0:N
  Q(m,n) += C(m,l) * D(l,n)
  Q(m,n) max= P(m,n)
  R(n,m) +=! E(n,m,j) * F(n,j)
  O(m,n) = P(m,n) * Q(m,n) + R(n,m)
})",
      R"(
def f(int32(M,K) A, int32(K,N) B, int32(M,L,J) C, int32(L,J,N) D) -> (O, P) {
  P(m,n) max=! A(m,k) - B(k,n)
  O(m,n) +=! C(m,l,j) * D(l,j,n)
  O(m,n) += P(m,n)
})",
      R"(
def f(float(M,K) A, float(K,N) B, float(M,L) C, float(L,N) D) -> (float(M,N) O) {
  O(m,n) += A(m,k) * B(k,n)
  O(m,n) += C(m,l) * D(l,n)
  O(m,n) += A(m,k) * B(k,n)
})"};
  for (const char* text : texts) {
    for (const int64_t groups : {0, 1, 2}) {
      options::MappingOptions options;
      if (groups > 0) options = {.tile = {16, 16}, .map_to_threads = {8, 4, groups}, .register_tile = {4, 2}};
      Sizes sizes = {{"M", 36}, {"N", 34}, {"K", 21}, {"L", 16}};
      if (program_from(text).sizes.size() > 4) sizes["J"] = 9;
      const ir::Program program = specialised_from(text, sizes);
      const Result<gpu::Mapping> mapping = mapped(program, options, hopper());
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      EXPECT_EQ(unproved(mapping->program), "");
      EXPECT_EQ(difference_of_mapping(program, *mapping), "") << text;
      if (mapping->kernels.size() > 1) continue;
      const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, hopper());
      ASSERT_TRUE(again) << again.error().to_string();
      EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
    }
  }
}

struct Padded {
  const char* text;
  Sizes sizes, large;  ///< for the simulator; where the numbers of launches are looked at
};

const Padded kPadded[] = {
    {R"(
def f(real(N,C,H,W) X, real(F,C,KH,KW) K, real(F) b) -> (O) {
  O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W) ?
                 X(n,c,h + kh - 1,w + kw - 1) * K(f,c,kh,kw) : 0 where h in 0:H, w in 0:W
  O(n,f,h,w) = fmax(O(n,f,h,w) + b(f), 0)
})",
     {{"N", 2}, {"C", 5}, {"H", 9}, {"W", 10}, {"F", 6}, {"KH", 3}, {"KW", 3}},
     {{"N", 32}, {"C", 64}, {"H", 56}, {"W", 56}, {"F", 64}, {"KH", 3}, {"KW", 3}}},
    {R"(
def f(real(N,C,H,W) X, real(F,C,KH,KW) K, real(F) b) -> (O) {
  O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? X(n,c,h + kh - 1,w + kw - 1) : 0) *
                 K(f,c,kh,kw) where h in 0:H, w in 0:W
  O(n,f,h,w) += b(f)
  O(n,f,h,w) max= 0
})",
     {{"N", 2}, {"C", 5}, {"H", 10}, {"W", 9}, {"F", 6}, {"KH", 3}, {"KW", 2}},
     {{"N", 32}, {"C", 64}, {"H", 56}, {"W", 56}, {"F", 64}, {"KH", 3}, {"KW", 3}}},
    {R"(
def f(real(N,H,W,C) X, real(KH,KW,C,F) K, real(F) b) -> (O) {
  O(n,h,w,f) = b(f) where n in 0:N, h in 0:H, w in 0:W
  O(n,h,w,f) += 1 <= h + kh && h + kh <= H ? (1 <= w + kw && w + kw <= W ?
                K(kh,kw,c,f) * X(n,h + kh - 1,w + kw - 1,c) : 0) : 0
  O(n,h,w,f) = O(n,h,w,f) > 0 ? O(n,h,w,f) : 0
})",
     {{"N", 2}, {"C", 8}, {"H", 9}, {"W", 10}, {"F", 16}, {"KH", 3}, {"KW", 3}},
     {{"N", 32}, {"C", 64}, {"H", 56}, {"W", 56}, {"F", 64}, {"KH", 3}, {"KW", 3}}},
};

/// The guard of a padded convolution is zero fill, and its bias and maximum are done on its results.
TEST(FusedProducts, PaddedConvolutionsAreOneLaunch) {
  for (const Padded& padded : kPadded) {
    for (const char* type : {"float", "half"}) {
      const std::string text = std::regex_replace(padded.text, std::regex("real"), type);
      EXPECT_EQ(other_than(1, specialised_from(text, padded.large)), "") << text;
      EXPECT_EQ(faults_of(specialised_from(text, padded.sizes), hopper()), "") << text;
    }
  }
}

/// What guards say of boxes, and what is more than that, on small integers.
TEST(FusedProducts, GuardedOperandsAgreeWithTheOracle) {
  const char* texts[] = {
      "def f(float(M) x, float(K) w, float(N) y) -> (C) {"
      "  C(m,n) +=! (m + k >= 2 && m + k < M + 2 ? x(m + k - 2) : 0) * w(k) * y(n) where m in 0:M }",
      "def f(float(M,K) x, float(K,N) w) -> (C) { C(m,n) +=! m >= 3 && k < 7 ? x(m,k) * w(k,n) : 0 }",
      "def f(float(M,K) x, float(K,N) w) -> (C) { C(m,n) +=! m >= 3 && m < 20 ? x(m - 3,k) * w(k,n) : 0 where m in 0:M "
      "}",
      "def f(float(M,K) x, float(K,N) w) -> (C) { C(m,n) +=! k <= m && k >= 1 ? x(m,k - 1) * w(k,n) : 0 }",
      "def f(float(L) x, float(K,N) w, float(M) y) -> (C) {"
      "  C(m,n) +=! (2 * m + k >= 3 && 2 * m + k < L + 3 ? x(2 * m + k - 3) : 0) * w(k,n) * y(m) }",
      "def f(int32(M,K) x, int32(K,N) w) -> (C) {"
      "  C(m,n) +=! (m >= 1 ? x(m - 1,k) : 0) * (n >= 2 ? w(k,n - 2) : 0) where m in 0:M, n in 0:N }",
      "def f(float(M,K) x, float(K,N) w) -> (C) {"
      "  C(m,n) +=! (m >= 1 ? x(m - 1,k) : 1) * w(k,n) where m in 0:M }",
  };
  for (const char* text : texts) {
    for (const int64_t m : {36, 65}) {
      const ir::Program symbolic = program_from(text);
      Sizes sizes;
      for (const std::string& name : symbolic.sizes)
        sizes[name] = name == "M" || name == "L" ? m : name == "N" ? 34 : 21;
      EXPECT_EQ(faults_of(specialised_from(text, sizes)), "") << text;
    }
  }
}

/// A product of one part of a tensor that is stored in another one: its copies of operands, by tiles and by boxes, may
/// reach what other blocks store.
TEST(FusedProducts, OfPartsOfTheirResultAgreeWithTheOracle) {
  struct InParts {
    const char* text;
    Sizes sizes;
  };
  const InParts programs[] = {
      {"def f(half(N,N) B) -> (half(N,N) C) { C(m,n) += C(m - N/2,k) * B(k,n) where m in N/2:N }", {{"N", 66}}},
      {"def f(half(N,N) B) -> (half(2,N,N) C) { float S(m,n) +=! C(0,m,k) * B(k,n)  C(1,m,n) = half(S(m,n)) }",
       {{"N", 64}}},
      {"def f(half(N,N) z) -> (half(N,N) C) { C(m,n) += C(m,k) * C(k,n) where m in 32:N, n in 32:N, k in 0:32 }",
       {{"N", 96}}},
      {"def f(float(N,N) B) -> (float(N,N) C) { S(m,n) +=! C(m,k) * B(k,n) where m in 0:50  "
       "C(m + 50,n) = S(m,n) where m in 0:50 }",
       {{"N", 100}}},
      {"def f(float8_e4m3(N,K) B, float(M) s) -> (float8_e4m3(2*M,K) A) { float S(m,n) +=! A(m,k) * B(n,k) where m in "
       "0:M  A(m + M,n) = S(m,n) * s(m) where m in 0:M, n in 0:N }",
       {{"M", 64}, {"N", 64}, {"K", 128}}}};
  for (const InParts& p : programs) {
    EXPECT_EQ(faults_of(specialised_from(p.text, p.sizes), hopper()), "") << p.text;
    EXPECT_EQ(faults_of(specialised_from(p.text, p.sizes)), "") << p.text;
  }
}

/// A product with statements of many kinds around it, in a random order; each changes C or D, and may read both.
std::string random_group(std::mt19937_64& random) {
  const auto chance = [&](uint64_t of) { return random() % of == 0; };
  const auto pick = [&](const std::vector<std::string>& of) { return of[random() % of.size()]; };
  std::string body;
  bool has_c = false;
  if (chance(4)) body += "T(m,k) = A(m,k) * A(m,k) - 1  ";
  const std::string a = body.empty() ? "A" : "T";
  if (chance(3)) {
    body += pick({"C(m,n) = b(n) where m in 0:M", "C(m,n) = R(m,n)", "C(n,m) = R(n,m)"}) + "  ";
    has_c = true;
  }
  if (chance(3)) body += "D(m,n) = R(m,n) + s(m)  ";
  const bool has_d = body.find("D(m,n)") != std::string::npos;
  const std::string values =
      pick({a + "(m,k) * B(k,n)", a + "(m,k) * B(k,n)", "(m >= 2 ? " + a + "(m - 2,k) : 0) * B(k,n)",
            "k >= 1 ? " + a + "(m,k - 1) * B(k,n) : 0"});
  body += fmt::format("C(m,n) {} {} where m in 0:M, k in 0:K  ", has_c ? "+=" : "+=!", values);
  if (!has_d) body += pick({"D(m,n) = C(m,n)", "D(i,j) = b(j) where i in 0:M", "D(i,j) = 2 * R(i,j) + C(i,j)"}) + "  ";
  for (uint64_t n = random() % 5; n > 0; --n) {
    body += pick({"C(m,n) += b(n)", "C(i,j) max= 0", "C(m,n) *= s(m)", "D(m,n) += C(m,n)", "C(m,n) = D(m,n) - R(m,n)",
                  "D(p,q) min= C(p,q) + R(p,q)", "C(m,n) += A(m,k) * G(k,n)", "D(i,j) += A(i,l) * G(l,j)",
                  "E(m,n) = C(m,n) + D(m,n)", "D(m,n) = D(m,n) > 3 ? C(m,n) : s(m)", "r(m) +=! C(m,n)",
                  "F(n,m) = C(m,n)", "C(m,n) += D(M - 1 - m,n)", "D(m,n) = C(m,N - 1 - n) where n in 0:N"}) +
            "  ";
  }
  return body;
}

TEST(FusedProducts, OfRandomStatementsAgreeWithTheOracle) {
  constexpr uint64_t kPrograms = 40;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    std::mt19937_64 random(seed);
    const std::string body = random_group(random);
    std::string results = "C, D";
    for (const char* name : {"E", "F", "r"}) {
      if (body.find(fmt::format("{}(", name)) != std::string::npos) results += fmt::format(", {}", name);
    }
    const std::string text = fmt::format(
        "def f(float(M,K) A, float(K,N) B, float(K,N) G, float(N) b, float(M) s, float(M,N) R) -> ({}) {{ {} }}",
        results, body);
    const bool square = random() % 2 == 0;
    const int64_t m = static_cast<int64_t>(20 + random() % 30), n = static_cast<int64_t>(20 + random() % 30);
    const Sizes sizes = {{"M", m}, {"N", square ? m : n}, {"K", static_cast<int64_t>(12 + random() % 20)}};
    const Result<ir::Program> program = try_specialised(text, sizes);
    ASSERT_TRUE(program) << text << program.error().to_string();
    EXPECT_EQ(difference(*program, {}, seed, random() % 2 == 0 ? hopper() : gpu::Device()), "") << seed << text;
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, FusedProducts, ::testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace tc::testing
