#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Contractions by products of warpgroups that boxes feed: on the simulator as on the oracle, verified and certified.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const gpu::Device kDevice = gpu::device_of_architecture(90);

int count_products(const tile::Program& program) {
  int result = 0;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      result += std::holds_alternative<tile::WarpgroupMatMul>(node.node) ? 1 : 0;
    });
  }
  return result;
}

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kNN[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kNT[] = "def f(bfloat16(M,K) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kTN[] = "def f(float16(K,M) A, float16(K,N) B) -> (C) { C(m,n) +=! A(k,m) * B(k,n) }";
constexpr char kTT[] = "def f(bfloat16(K,M) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(k,m) * B(n,k) }";
constexpr char kSwapped[] = "def f(float16(K,N) B, float16(M,K) A) -> (C) { C(m,n) +=! B(k,n) * A(m,k) }";
constexpr char kTransposedResult[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(n,m) +=! A(m,k) * B(k,n) }";
constexpr char kToFloat[] =
    "def f(float16(M,K) A, float16(K,N) B) -> (float(M,N) C) { C(m,n) +=! float(B(k,n)) * float(A(m,k)) }";
constexpr char kEpilogue[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b, float16(M,N) R) -> (C, D) {
  C(m,n) +=! A(m,k) * B(k,n)
  D(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)
})";
constexpr char kPooled[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (C, float16(M,J) P) {
  C(m,n) +=! A(m,k) * B(k,n)
  P(m,j) = fmax(C(m,2 * j), C(m,2 * j + 1)) where j in 0:J
})";
constexpr char kInPlace[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (float16(M,N) C) {
  C(m,n) += A(m,k) * B(k,n)
})";
constexpr char kSumOfProducts[] = R"(
def f(float16(M,K) x, float16(K,N) W, float16(M,L) h, float16(L,N) U, float16(N) b) -> (C) {
  C(m,n) +=! x(m,k) * W(k,n)
  C(m,n) += h(m,l) * U(l,n)
  C(m,n) = fmax(C(m,n) + b(n), 0)
})";
constexpr char kGated[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(K,N) G) -> (float(M,N) O) {
  P(m,n) +=! float(A(m,k)) * float(B(k,n))
  Q(m,n) +=! float(A(m,k)) * float(G(k,n))
  O(m,n) = P(m,n) * fmax(Q(m,n), 0)
})";
constexpr char kPaddedLast[] = R"(
def f(float16(N,H,W,C) I, float16(O,3,3,C) F) -> (float16(N,H,W,O) R) {
  R(n,h,w,o) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c)
    : float16(0.0)) * F(o,kh,kw,c) where h in 0:H, w in 0:W
})";
constexpr char kWeightsGradient[] = R"(
def f(float16(N,H,W,C) I, float16(N,H,W,O) R) -> (F) {
  F(o,kh,kw,c) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c)
    : float16(0.0)) * R(n,h,w,o) where kh in 0:3, kw in 0:3
})";
/// Two products of one tensor, whose other operands have their dimensions in different orders, or at multiples.
std::string gated_gradient(const std::string& second, const std::string& at) {
  return "def f(float16(N,H,W,C) X, float16(N,H,W,O) D, float16(" + second + ") E) -> (float(C,O) R) {\n" +
         "  float G(c,o) +=! X(n,h,w,c) * D(n,h,w,o)\n  float K(c,o) +=! X(n,h,w,c) * E(" + at + ")\n" +
         "  R(c,o) = G(c,o) * sigmoid(K(c,o))\n}";
}
constexpr char kEverySecondRow[] =
    "def f(float16(L,K) A, float16(N,K) B) -> (float16(M,N) C) { C(m,n) +=! A(2 * m,k) * B(n,k) }";
constexpr char kStrided[] = R"(
def f(float16(N,H,W,C) I, float16(O,3,3,C) F) -> (R) {
  R(n,h,w,o) +=! (2 * h + kh >= 1 && 2 * h + kh <= H && 2 * w + kw >= 1 && 2 * w + kw <= W
    ? I(n,2 * h + kh - 1,2 * w + kw - 1,c) : float16(0.0)) * F(o,kh,kw,c) where h in 0:H/2, w in 0:W/2
})";
constexpr char kDilated[] = R"(
def f(float16(N,H,W,C) I, float16(O,2,3,C) F) -> (R) {
  R(n,h,w,o) +=! I(n,2 * h + 3 * kh,4 * w + kw,c) * F(o,kh,kw,c) where h in 0:(H-3)/2, w in 0:(W-2)/4
})";
constexpr char kEveryThird[] = R"(
def f(float16(N,L,C) I, float16(O,5,C) F) -> (R) {
  R(n,l,o) +=! I(n,3 * l + k,c) * F(o,k,c) where l in 0:(L-2)/3
})";
constexpr char kSlides[] = R"(
def f(float16(N,H,W,C) I, float16(O,2,3,C) F) -> (float16(N,H - 1,W - 2,O) R) {
  R(n,h,w,o) +=! I(n,h + kh,w + kw,c) * F(o,kh,kw,c)
})";
constexpr char kFourAxes[] =
    "def f(float16(A,B,C,D) X, float16(D,B,E,F) Y) -> (Z) { Z(a,c,e,f) +=! X(a,b,c,d) * Y(d,b,e,f) }";
constexpr char kFirstChannels[] =
    "def f(float16(N,C,P) I, float16(F,C,1,1) W) -> (O) { O(n,f,p) +=! I(n,c,p) * W(f,c,0,0) }";
constexpr char kTurnedRows[] =
    "def f(float16(Q,P,K) A, float16(X,Y,K) B) -> (float16(P,X,Q,Y) C) { C(p,x,q,y) +=! A(q,p,k) * B(x,y,k) }";
constexpr char kGatedImages[] = R"(
def f(float16(N,H,W,C) I, float16(3,C,O) F, float16(3,C,O) G) -> (float(N,H,W - 2,O) R) {
  P(n,h,w,o) +=! float(I(n,h,w + kw,c)) * float(F(kw,c,o))
  Q(n,h,w,o) +=! float(I(n,h,w + kw,c)) * float(G(kw,c,o))
  R(n,h,w,o) = P(n,h,w,o) * fmax(Q(n,h,w,o), 0)
})";
constexpr char kBatch[] = "def f(float16(B,M,K) A, float16(B,K,N) D) -> (C) { C(b,m,n) +=! A(b,m,k) * D(b,k,n) }";
constexpr char kParts[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (float(4,M,N) P) {
  P(p,m,n) +=! float(A(m,128 * p + k)) * float(B(128 * p + k,n)) where p in 0:4, k in 0:128
})";
constexpr char kTwoSums[] = "def f(float16(M,L,K) A, float16(L,K,N) B) -> (C) { C(m,n) +=! A(m,l,k) * B(l,k,n) }";
constexpr char kPart[] =
    "def f(float16(M,L) A, float16(L,N) B) -> (C) { C(m,n) +=! A(m,k + 8) * B(k + 16,n) where k in 0:100 }";

constexpr char kFloat8[] = "def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kMixed8[] = R"(
def f(float8_e5m2(M,K) A, float8_e4m3(N,K) B, float16(N) b) -> (float16(M,N) C) {
  C(m,n) +=! half(A(m,k)) * half(B(n,k))
  C(m,n) = fmax(C(m,n) + b(n), 0)
})";
constexpr char kGated8[] = R"(
def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B, float8_e4m3(N,K) G) -> (O) {
  P(m,n) +=! A(m,k) * B(n,k)
  Q(m,n) +=! A(m,k) * G(n,k)
  O(m,n) = P(m,n) * fmax(Q(m,n), 0)
})";
constexpr char kSumOfProducts8[] = R"(
def f(float8_e4m3(M,K) x, float8_e4m3(N,K) W, float8_e4m3(M,L) h, float8_e4m3(N,L) U) -> (C) {
  C(m,n) +=! x(m,k) * W(n,k)
  C(m,n) += h(m,l) * U(n,l)
})";
constexpr char kPadded8[] = R"(
def f(float8_e4m3(N,H,W,C) I, float8_e4m3(O,3,3,C) F) -> (float(N,H,W,O) R) {
  R(n,h,w,o) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? float(I(n,h + kh - 1,w + kw - 1,c))
    : 0.0) * F(o,kh,kw,c) where h in 0:H, w in 0:W
})";
constexpr char kToFloat8[] = R"(
def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B, float s) -> (float8_e4m3(M,N) C) {
  T(m,n) +=! A(m,k) * B(n,k)
  C(m,n) = float8_e4m3(T(m,n) * s)
})";

constexpr char kInt8[] = "def f(int8(M,K) A, int8(N,K) B) -> (C) { int32 C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kMixedIntegers[] =
    "def f(uint8(M,K) A, int8(N,K) B, int32(N) b) -> (C) { int32 C(m,n) +=! int32(A(m,k)) * int32(B(n,k))  C(m,n) += "
    "b(n) }";
constexpr char kRequantised[] = R"(
def f(int8(M,K) A, int8(N,K) B, int32(N) b, float(N) s) -> (O) {
  int32 C(m,n) +=! A(m,k) * B(n,k)
  O(m,n) = int8(clamp(round(float(C(m,n) + b(n)) * s(n)), -128.0, 127.0))
})";
constexpr char kGatedIntegers[] = R"(
def f(int8(M,K) A, int8(N,K) B, int8(N,K) G) -> (O) {
  int32 P(m,n) +=! A(m,k) * B(n,k)
  int32 Q(m,n) +=! A(m,k) * G(n,k)
  O(m,n) = P(m,n) * max(Q(m,n), 0)
})";
constexpr char kPaddedIntegers[] = R"(
def f(int8(N,H,W,C) I, int8(O,3,3,C) F) -> (int32(N,H,W,O) R) {
  R(n,h,w,o) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c) : int8(0))
    * F(o,kh,kw,c) where h in 0:H, w in 0:W
})";

/// Rows are 128 values of 8 bits.
options::MappingOptions tile_of_float8(int64_t warpgroups, int64_t columns, int64_t stages,
                                       std::vector<int64_t> before = {}, std::vector<int64_t> behind = {}) {
  options::MappingOptions options = warpgroup_tile(warpgroups, columns, stages, std::move(before), std::move(behind));
  options.tile.back() = 128;
  return options;
}

options::MappingOptions in_clusters(options::MappingOptions options, std::vector<int64_t> cluster) {
  options.cluster = std::move(cluster);
  return options;
}

options::MappingOptions with_fast_accumulation(options::MappingOptions options) {
  options.fast_accumulation = true;
  return options;
}

/// The rows of an instruction lie along the columns of the result.
options::MappingOptions turned(int64_t columns, int64_t warpgroups, std::vector<int64_t> cluster = {}) {
  options::MappingOptions options = warpgroup_tile(warpgroups, columns, 3);
  std::swap(options.tile[0], options.tile[1]);
  std::swap(options.register_tile[0], options.register_tile[1]);
  std::swap(options.map_to_threads[0], options.map_to_threads[1]);
  options.cluster = std::move(cluster);
  return options;
}

const Case kCases[] = {
    {"nn", kNN, {{"M", 64}, {"N", 64}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"nn, two warpgroups", kNN, {{"M", 128}, {"N", 128}, {"K", 256}}, warpgroup_tile(2, 128, 3)},
    {"nn, partial", kNN, {{"M", 70}, {"N", 72}, {"K", 136}}, warpgroup_tile(1, 64, 2)},
    {"nn, odd rows", kNN, {{"M", 33}, {"N", 136}, {"K", 72}}, warpgroup_tile(1, 128, 2)},
    {"nn, one step", kNN, {{"M", 64}, {"N", 64}, {"K", 64}}, warpgroup_tile(1, 64, 2)},
    {"nn, less than a step", kNN, {{"M", 64}, {"N", 64}, {"K", 40}}, warpgroup_tile(1, 64, 2)},
    {"nt, one slice", kNT, {{"M", 70}, {"N", 41}, {"K", 16}}, warpgroup_tile(1, 48, 2)},
    {"tt, two columns, less than a step",
     kTT,
     {{"M", 64}, {"N", 128}, {"K", 24}},
     in_clusters(warpgroup_tile(1, 64, 2), {1, 2})},
    {"tn, any reduction below a step", kTN, {{"M", 64}, {"N", 64}, {"K", 19}}, warpgroup_tile(1, 64, 2)},
    {"sum of products, one less than a step",
     kSumOfProducts,
     {{"M", 64}, {"N", 64}, {"K", 128}, {"L", 24}},
     warpgroup_tile(1, 64, 2)},
    {"nn, narrow", kNN, {{"M", 64}, {"N", 32}, {"K", 200}}, warpgroup_tile(1, 32, 4)},
    {"nn, two buffers", kNN, {{"M", 64}, {"N", 64}, {"K", 320}}, warpgroup_tile(1, 64, 2)},
    {"nn, 96 columns", kNN, {{"M", 64}, {"N", 96}, {"K", 128}}, warpgroup_tile(1, 96, 2)},
    {"nn, 48 columns", kNN, {{"M", 64}, {"N", 48}, {"K", 136}}, warpgroup_tile(1, 48, 3)},
    {"nn, 8 columns", kNN, {{"M", 64}, {"N", 8}, {"K", 128}}, warpgroup_tile(1, 8, 2)},
    {"nn, several tiles of 104", kNN, {{"M", 100}, {"N", 232}, {"K", 64}}, warpgroup_tile(2, 104, 2)},
    {"nt, 8 columns", kNT, {{"M", 64}, {"N", 5}, {"K", 128}}, warpgroup_tile(1, 8, 2)},
    {"nt, several tiles of 24", kNT, {{"M", 64}, {"N", 61}, {"K", 64}}, warpgroup_tile(1, 24, 2)},
    {"epilogue, 40 columns", kEpilogue, {{"M", 72}, {"N", 40}, {"K", 128}}, warpgroup_tile(1, 40, 2)},
    {"nt", kNT, {{"M", 128}, {"N", 96}, {"K", 192}}, warpgroup_tile(2, 96, 3)},
    {"nt, partial", kNT, {{"M", 100}, {"N", 41}, {"K", 88}}, warpgroup_tile(1, 32, 2)},
    {"nt, wide", kNT, {{"M", 64}, {"N", 224}, {"K", 64}}, warpgroup_tile(1, 224, 2)},
    {"tn", kTN, {{"M", 128}, {"N", 64}, {"K", 128}}, warpgroup_tile(2, 64, 2)},
    {"tn, three warpgroups", kTN, {{"M", 200}, {"N", 64}, {"K", 100}}, warpgroup_tile(3, 64, 2)},
    {"tt", kTT, {{"M", 64}, {"N", 160}, {"K", 128}}, warpgroup_tile(1, 160, 2)},
    {"swapped", kSwapped, {{"M", 64}, {"N", 64}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"transposed result", kTransposedResult, {{"M", 64}, {"N", 64}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"float result", kToFloat, {{"M", 64}, {"N", 64}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"epilogue", kEpilogue, {{"M", 72}, {"N", 80}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"pooled", kPooled, {{"M", 64}, {"N", 64}, {"K", 128}, {"J", 32}}, warpgroup_tile(1, 64, 2)},
    {"in place", kInPlace, {{"M", 64}, {"N", 64}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"sum of products", kSumOfProducts, {{"M", 64}, {"N", 64}, {"K", 128}, {"L", 192}}, warpgroup_tile(1, 64, 2)},
    {"gated", kGated, {{"M", 128}, {"N", 64}, {"K", 128}}, warpgroup_tile(2, 64, 3)},
    {"padded, channels last",
     kPaddedLast,
     {{"N", 2}, {"C", 64}, {"H", 5}, {"W", 40}, {"O", 32}},
     warpgroup_tile(1, 32, 3, {1, 1}, {1, 1})},
    {"padded, a box of an image",
     kPaddedLast,
     {{"N", 2}, {"C", 64}, {"H", 9}, {"W", 7}, {"O", 40}},
     warpgroup_box(2, {1, 16, 8, 40}, {1, 2, 1, 10}, 3)},
    {"padded, a box of images",
     kPaddedLast,
     {{"N", 18}, {"C", 72}, {"H", 2}, {"W", 3}, {"O", 24}},
     warpgroup_box(1, {16, 2, 2, 24}, {2, 1, 1, 6}, 3)},
    {"a box of an image",
     kSlides,
     {{"N", 2}, {"C", 64}, {"H", 6}, {"W", 11}, {"O", 40}},
     warpgroup_box(3, {3, 4, 16, 40}, {1, 1, 2, 10}, 4)},
    {"steps along three axes",
     kWeightsGradient,
     {{"N", 4}, {"C", 64}, {"H", 8}, {"W", 12}, {"O", 72}},
     {.tile = {64, 1, 1, 64, 4, 4, 4}, .cluster = {1, 1}, .tensor_cores = true}},
    {"steps along images",
     kWeightsGradient,
     {{"N", 35}, {"C", 64}, {"H", 3}, {"W", 5}, {"O", 64}},
     {.tile = {64, 1, 1, 64, 1, 1, 64}, .cluster = {1, 1}, .tensor_cores = true}},
    {"every second row", kEverySecondRow, {{"M", 70}, {"L", 140}, {"N", 64}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"strided, padded",
     kStrided,
     {{"N", 5}, {"C", 64}, {"H", 8}, {"W", 12}, {"O", 32}},
     warpgroup_box(1, {4, 4, 4, 32}, {1, 2, 1, 8}, 3)},
    {"strided, dilated",
     kDilated,
     {{"N", 2}, {"C", 128}, {"H", 20}, {"W", 36}, {"O", 40}},
     warpgroup_box(2, {1, 16, 8, 40}, {1, 2, 1, 10}, 2)},
    {"of three remainders, apart",
     kEveryThird,
     {{"N", 3}, {"C", 72}, {"L", 63}, {"O", 24}},
     warpgroup_box(1, {2, 32, 24}, {1, 2, 6}, 2)},
    {"four axes",
     kFourAxes,
     {{"A", 3}, {"B", 2}, {"C", 32}, {"D", 64}, {"E", 3}, {"F", 128}},
     warpgroup_box(1, {4, 16, 128}, {1, 2, 32}, 2)},
    {"four axes, short ones",
     kFourAxes,
     {{"A", 18}, {"B", 2}, {"C", 5}, {"D", 72}, {"E", 2}, {"F", 64}},
     warpgroup_box(2, {16, 8, 64}, {2, 1, 16}, 3)},
    {"channels first",
     kFirstChannels,
     {{"N", 3}, {"F", 64}, {"C", 80}, {"P", 72}},
     warpgroup_box(1, {2, 64, 64}, {2, 2, 16}, 3)},
    {"turned rows",
     kTurnedRows,
     {{"P", 9}, {"Q", 10}, {"X", 5}, {"Y", 32}, {"K", 64}},
     warpgroup_box(2, {8, 4, 16, 32}, {1, 4, 2, 8}, 2)},
    {"gated images",
     kGatedImages,
     {{"N", 2}, {"C", 64}, {"H", 8}, {"W", 10}, {"O", 32}},
     warpgroup_box(1, {8, 8, 32}, {2, 1, 8}, 3)},
    {"batch", kBatch, {{"B", 3}, {"M", 64}, {"N", 64}, {"K", 72}}, warpgroup_tile(1, 64, 2, {1})},
    {"two sums", kTwoSums, {{"M", 64}, {"N", 64}, {"L", 3}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"two sums, partial", kTwoSums, {{"M", 64}, {"N", 64}, {"L", 3}, {"K", 72}}, warpgroup_tile(1, 64, 2)},
    {"parts of a reduction", kParts, {{"M", 70}, {"N", 64}, {"K", 512}}, warpgroup_tile(1, 64, 2, {1})},
    {"part of the operands", kPart, {{"M", 64}, {"N", 64}, {"L", 128}}, warpgroup_tile(1, 64, 2)},
    {"nn, two rows", kNN, {{"M", 128}, {"N", 72}, {"K", 200}}, in_clusters(warpgroup_tile(1, 64, 2), {2, 1})},
    {"nn, two rows, slabs", kNN, {{"M", 256}, {"N", 128}, {"K", 192}}, in_clusters(warpgroup_tile(2, 128, 2), {2, 1})},
    {"nn, two columns", kNN, {{"M", 64}, {"N", 128}, {"K", 192}}, in_clusters(warpgroup_tile(1, 64, 2), {1, 2})},
    {"nn, two and two", kNN, {{"M", 256}, {"N", 128}, {"K", 256}}, in_clusters(warpgroup_tile(1, 64, 3), {2, 2})},
    {"nn, blocks that have nothing",
     kNN,
     {{"M", 130}, {"N", 64}, {"K", 136}},
     in_clusters(warpgroup_tile(1, 64, 2), {2, 2})},
    {"nn, whole tiles, one block more",
     kNN,
     {{"M", 192}, {"N", 64}, {"K", 128}},
     in_clusters(warpgroup_tile(1, 64, 2), {2, 1})},
    {"nt, four rows", kNT, {{"M", 256}, {"N", 96}, {"K", 192}}, in_clusters(warpgroup_tile(1, 96, 3), {4, 1})},
    {"tn, two and two", kTN, {{"M", 128}, {"N", 128}, {"K", 128}}, in_clusters(warpgroup_tile(1, 64, 2), {2, 2})},
    {"tt, two columns", kTT, {{"M", 64}, {"N", 256}, {"K", 128}}, in_clusters(warpgroup_tile(1, 128, 2), {1, 2})},
    {"transposed result, two rows",
     kTransposedResult,
     {{"M", 64}, {"N", 128}, {"K", 128}},
     in_clusters(warpgroup_tile(1, 64, 2), {2, 1})},
    {"epilogue, two rows",
     kEpilogue,
     {{"M", 72}, {"N", 80}, {"K", 128}},
     in_clusters(warpgroup_tile(1, 64, 2), {2, 1})},
    {"sum of products, two and two",
     kSumOfProducts,
     {{"M", 128}, {"N", 128}, {"K", 128}, {"L", 192}},
     in_clusters(warpgroup_tile(1, 64, 2), {2, 2})},
    {"gated, two rows", kGated, {{"M", 128}, {"N", 64}, {"K", 128}}, in_clusters(warpgroup_tile(1, 64, 3), {2, 1})},
    {"padded, two columns",
     kPaddedLast,
     {{"N", 2}, {"C", 64}, {"H", 3}, {"W", 40}, {"O", 64}},
     in_clusters(warpgroup_tile(1, 32, 3, {1, 1}, {1, 1}), {1, 1, 1, 2})},
    {"batch, two rows",
     kBatch,
     {{"B", 3}, {"M", 128}, {"N", 64}, {"K", 72}},
     in_clusters(warpgroup_tile(1, 64, 2, {1}), {1, 2, 1})},
    {"nn, turned", kNN, {{"M", 16}, {"N", 128}, {"K", 192}}, turned(16, 1)},
    {"nt, turned, partial", kNT, {{"M", 21}, {"N", 150}, {"K", 200}}, turned(24, 2)},
    {"tn, turned", kTN, {{"M", 40}, {"N", 64}, {"K", 72}}, turned(40, 1)},
    {"turned, two blocks share columns", kNN, {{"M", 16}, {"N", 256}, {"K", 192}}, turned(16, 1, {1, 2})},
    {"turned, steps dealt out", kNN, {{"M", 13}, {"N", 128}, {"K", 320}}, turned(16, 1, {1, 1, 3})},
    {"turned, epilogue", kEpilogue, {{"M", 24}, {"N", 80}, {"K", 128}}, turned(24, 1)},
    {"turned, gated", kGated, {{"M", 24}, {"N", 64}, {"K", 128}}, turned(24, 1)},
};

const Case kFloat8Cases[] = {
    {"e4m3", kFloat8, {{"M", 128}, {"N", 64}, {"K", 384}}, tile_of_float8(2, 64, 3)},
    {"e4m3, partial", kFloat8, {{"M", 70}, {"N", 41}, {"K", 208}}, tile_of_float8(1, 32, 2)},
    {"e4m3, less than a step", kFloat8, {{"M", 64}, {"N", 40}, {"K", 80}}, tile_of_float8(1, 48, 2)},
    {"e4m3, one step", kFloat8, {{"M", 64}, {"N", 128}, {"K", 128}}, tile_of_float8(1, 128, 2)},
    {"mixed, epilogue", kMixed8, {{"M", 130}, {"N", 96}, {"K", 256}}, tile_of_float8(2, 96, 3)},
    {"gated", kGated8, {{"M", 64}, {"N", 64}, {"K", 256}}, tile_of_float8(1, 64, 3)},
    {"sum of products", kSumOfProducts8, {{"M", 64}, {"N", 64}, {"K", 256}, {"L", 128}}, tile_of_float8(1, 64, 2)},
    {"padded, channels last",
     kPadded8,
     {{"N", 2}, {"C", 128}, {"H", 5}, {"W", 40}, {"O", 32}},
     tile_of_float8(1, 32, 3, {1, 1}, {1, 1})},
    {"fast", kFloat8, {{"M", 128}, {"N", 64}, {"K", 384}}, with_fast_accumulation(tile_of_float8(2, 64, 3))},
    {"8-bit result", kToFloat8, {{"M", 64}, {"N", 64}, {"K", 256}}, tile_of_float8(1, 64, 2)},
};

const Case kIntegerCases[] = {
    {"int8", kInt8, {{"M", 128}, {"N", 64}, {"K", 384}}, tile_of_float8(2, 64, 3)},
    {"int8, partial", kInt8, {{"M", 70}, {"N", 41}, {"K", 208}}, tile_of_float8(1, 32, 2)},
    {"int8, less than a step", kInt8, {{"M", 64}, {"N", 40}, {"K", 80}}, tile_of_float8(1, 48, 2)},
    {"int8, many columns", kInt8, {{"M", 64}, {"N", 200}, {"K", 128}}, tile_of_float8(1, 208, 2)},
    {"mixed, epilogue", kMixedIntegers, {{"M", 130}, {"N", 96}, {"K", 256}}, tile_of_float8(2, 96, 3)},
    {"gated", kGatedIntegers, {{"M", 64}, {"N", 64}, {"K", 256}}, tile_of_float8(1, 64, 3)},
    {"requantised", kRequantised, {{"M", 64}, {"N", 64}, {"K", 256}}, tile_of_float8(1, 64, 2)},
    {"two blocks share columns",
     kInt8,
     {{"M", 128}, {"N", 64}, {"K", 384}},
     in_clusters(tile_of_float8(1, 64, 3), {2, 1})},
    {"steps dealt out", kInt8, {{"M", 64}, {"N", 64}, {"K", 512}}, in_clusters(tile_of_float8(1, 64, 2), {1, 1, 2})},
    {"padded, channels last",
     kPaddedIntegers,
     {{"N", 2}, {"C", 128}, {"H", 5}, {"W", 40}, {"O", 32}},
     tile_of_float8(1, 32, 3, {1, 1}, {1, 1})},
};

class Warpgroups : public ::testing::TestWithParam<Case> {};

TEST_P(Warpgroups, AgreeWithTheOracleAndAreProved) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  EXPECT_GE(count_products(mapping->program), 1);
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

TEST_P(Warpgroups, OptionsAskForTheSameKernel) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
}

INSTANTIATE_TEST_SUITE_P(Cases, Warpgroups, ::testing::ValuesIn(kCases));
INSTANTIATE_TEST_SUITE_P(Float8, Warpgroups, ::testing::ValuesIn(kFloat8Cases));
INSTANTIATE_TEST_SUITE_P(Integers, Warpgroups, ::testing::ValuesIn(kIntegerCases));

/// Of operands as they lie.
int products_by_default(const std::string& text, const Sizes& sizes, const gpu::Device& device = kDevice) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {.copy_operands = false}, device);
  return mapping ? count_products(mapping->program) : -1;
}

const Sizes kLarge = {{"M", 1024}, {"N", 1024}, {"K", 1024}};

TEST(Warpgroups, AreTakenWhereProductsAreLarge) { EXPECT_EQ(products_by_default(kNN, kLarge), 1); }

/// Tiles have few columns that there are not, where there are few, no blocks share boxes and threads store results.
TEST(Warpgroups, FitFewColumns) {
  for (const int64_t columns : {24, 40, 48, 96}) {
    for (const char* text : {kNN, kNT}) {
      const ir::Program program = specialised_from(text, {{"M", 8192}, {"N", columns}, {"K", 4096}});
      const Result<gpu::Mapping> mapping =
          mapped(program, {.cluster = {1, 1}, .store_boxes = false, .copy_operands = false}, kDevice);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      ASSERT_EQ(count_products(mapping->program), 1) << columns;
      const std::vector<int64_t>& tile = mapping->kernels[0].chosen.tile;
      const int64_t width = tile[tile.size() - 2];
      EXPECT_LT((columns + width - 1) / width * width - columns, 32) << width;
    }
  }
}

TEST(Warpgroups, AreTakenByImagesAndManyAxes) {
  for (const auto& [channels, edge] : {std::pair(64, 56), std::pair(128, 28), std::pair(256, 14), std::pair(512, 7)}) {
    const Sizes sizes = {{"N", 32}, {"C", channels}, {"H", edge}, {"W", edge}, {"O", channels}};
    EXPECT_EQ(products_by_default(kPaddedLast, sizes), 1) << edge;
    EXPECT_EQ(products_by_default(kWeightsGradient, sizes), 1) << edge;
  }
  for (const auto& [channels, edge] : {std::pair(64, 56), std::pair(128, 28), std::pair(256, 14)}) {
    const Sizes sizes = {{"N", 32}, {"C", channels}, {"H", edge}, {"W", edge}, {"O", 2 * channels}};
    EXPECT_EQ(products_by_default(kStrided, sizes), 1) << edge;
  }
  EXPECT_GE(products_by_default(kFourAxes, {{"A", 64}, {"B", 32}, {"C", 32}, {"D", 64}, {"E", 32}, {"F", 64}}), 1);
  EXPECT_EQ(products_by_default(kFirstChannels, {{"N", 32}, {"F", 64}, {"C", 256}, {"P", 56 * 56}}), 1);
}

/// Steps of products that share them have parts of the same axes, in the order of all operands.
TEST(Warpgroups, StepsAlongSeveralAxesFitAllOperands) {
  const Sizes sizes = {{"N", 8}, {"H", 6}, {"W", 10}, {"C", 64}, {"O", 64}};
  for (const auto& [second, at] :
       {std::pair("N,H,W,O", "n,h,w,o"), std::pair("W,N,H,O", "w,n,h,o"), std::pair("H,N,W,O", "h,n,w,o"),
        std::pair("N,2*H,W,O", "n,2*h,w,o"), std::pair("2*N,H,W,O", "2*n,h,w,o")}) {
    const ir::Program program = specialised_from(gated_gradient(second, at), sizes);
    const Result<gpu::Mapping> mapping = mapped(program, {}, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(difference_of_mapping(program, *mapping), "") << at;
  }
}

/// Few rows are columns of instructions, of which no rows are filled up.
TEST(Warpgroups, TurnFewRows) {
  for (const auto& [rows, columns, reduced] : {std::tuple(16, 1984, 5952), {24, 2816, 2560}, {72, 4352, 2560}}) {
    const ir::Program program = specialised_from(kNN, {{"M", rows}, {"N", columns}, {"K", reduced}});
    const Result<gpu::Mapping> mapping = mapped(program, {}, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(count_products(mapping->program), 1) << rows;
    EXPECT_EQ(mapping->kernels[0].chosen.tile[0], rows);
  }
}

/// Pairs of an odd number of rows end beyond them, where a residual has no values. Bounds are proved, and boxes store
/// what is combined with nothing.
TEST(Warpgroups, TurnAnOddNumberOfRows) {
  const auto box_stores = [](const char* text, int64_t rows) {
    const ir::Program program = specialised_from(text, {{"M", rows}, {"N", 64}, {"K", 48}});
    const Result<gpu::Mapping> mapping = mapped(program, {.tile = {32, 64, 64}, .tensor_cores = true}, kDevice);
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    if (!mapping) return -1;
    EXPECT_EQ(unproved(mapping->program), "") << text << rows;
    EXPECT_EQ(difference_of_mapping(program, *mapping), "") << text << rows;
    int result = 0;
    for (const tile::Kernel& kernel : mapping->program.kernels) {
      tile::for_each_node(kernel.body, [&](const tile::Node& node) { result += tile::box_store_of(node) ? 1 : 0; });
    }
    return result;
  };
  const char* const plain = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
  const char* const residual =
      "def f(float16(M,K) A, float16(K,N) B, float16(M,N) D) -> (C) {\n"
      "  C(m,n) +=! A(m,k) * B(k,n)\n  C(m,n) = C(m,n) + D(m,n)\n}";
  EXPECT_EQ(box_stores(plain, 31), 1);
  EXPECT_EQ(box_stores(residual, 32), 1);
  EXPECT_EQ(box_stores(residual, 31), 0);
}

/// Of a long reduction each part has blocks of its own: of a cluster, or those of a kernel before another one.
TEST(Warpgroups, AreTakenByPartsOfReductions) {
  struct Parts {
    Sizes sizes;
    size_t kernels = 1;
    int64_t of_cluster = 1;
  };
  const std::vector<Parts> cases = {
      {{{"M", 2048}, {"N", 96}, {"K", 4096}}, 1, 3}, {{{"M", 64}, {"N", 8192}, {"K", 8192}}, 1, 2},
      {{{"M", 256}, {"N", 96}, {"K", 8192}}, 2},     {{{"M", 64}, {"N", 64}, {"K", 32768}}, 2},
      {{{"M", 1024}, {"N", 1024}, {"K", 1024}}},     {{{"M", 2048}, {"N", 1024}, {"K", 4096}}}};
  for (const Parts& parts : cases) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(kNT, parts.sizes), {}, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    const std::string what = fmt::format("{} {}", parts.sizes.at("M"), parts.sizes.at("K"));
    EXPECT_EQ(mapping->program.kernels.size(), parts.kernels) << what;
    const std::vector<int64_t>& cluster = mapping->kernels[0].chosen.cluster;
    EXPECT_EQ(cluster.size() > 2 ? cluster.back() : 1, parts.of_cluster) << what;
    EXPECT_EQ(count_products(mapping->program), 1) << what;
  }
}

/// How many products start a sum by default.
int starts_by_default(const std::string& text, const options::MappingOptions& options) {
  int result = 0;
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, kLarge), options, kDevice);
  EXPECT_TRUE(mapping) << mapping.error().to_string();
  for (const tile::Kernel& kernel : mapping->program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      const tile::WarpgroupMatMul* product = tile::warpgroup_product_of(node);
      result += product && product->starts ? 1 : 0;
    });
  }
  return result;
}

TEST(Warpgroups, SumFloat8InPartsUnlessTheyMayBeFast) {
  EXPECT_EQ(starts_by_default(kFloat8, {}), 1);
  EXPECT_EQ(starts_by_default(kFloat8, with_fast_accumulation({})), 0);
  EXPECT_EQ(starts_by_default(kNT, {}), 0);
}

/// Products of 8-bit floats need k in rows of both operands.
TEST(Warpgroups, MultiplyFloat8WhereKLiesInRows) {
  EXPECT_EQ(products_by_default(kFloat8, kLarge), 1);
  EXPECT_EQ(products_by_default(kMixed8, kLarge), 1);
  const std::string across = "def f(float8_e4m3(M,K) A, float8_e4m3(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
  const ir::Program program = specialised_from(across, {{"M", 64}, {"N", 64}, {"K", 256}});
  options::MappingOptions as_they_lie = tile_of_float8(1, 64, 2);
  as_they_lie.copy_operands = false;
  const Result<gpu::Mapping> mapping = mapped(program, as_they_lie, kDevice);
  ASSERT_FALSE(mapping);
  const std::string why = "neighbours of 'B' in memory are not along 'k', as products of 8-bit floats need";
  EXPECT_NE(mapping.error().to_string().find(why), std::string::npos) << mapping.error().to_string();
}

TEST(Warpgroups, MultiplyIntegersExactly) {
  EXPECT_EQ(products_by_default(kInt8, kLarge), 1);
  EXPECT_EQ(products_by_default(kRequantised, kLarge), 1);
  EXPECT_EQ(starts_by_default(kInt8, {}), 0);  // no parts
  // A sum of the largest products, and one that is rounded to float32 nowhere.
  const ir::Program program = specialised_from(kInt8, {{"M", 64}, {"N", 64}, {"K", 1280}});
  const Result<gpu::Mapping> mapping = mapped(program, tile_of_float8(1, 64, 2), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(difference_of_mapping(program, *mapping, 3), "");
  // The instruction has no 40 columns; operands across k are copied.
  const Result<gpu::Mapping> refused =
      mapped(specialised_from(kInt8, {{"M", 64}, {"N", 40}, {"K", 256}}), tile_of_float8(1, 40, 2), kDevice);
  EXPECT_FALSE(refused);
  const std::string across = "def f(int8(M,K) A, int8(K,N) B) -> (C) { int32 C(m,n) +=! A(m,k) * B(k,n) }";
  const Result<gpu::Mapping> copied = mapped(specialised_from(across, kLarge), {}, kDevice);
  ASSERT_TRUE(copied) << copied.error().to_string();
  EXPECT_EQ(count_products(copied->program), 1);
}

/// Rows that begin between 16 bytes come by other copies.
TEST(Warpgroups, TakeOnlyWhatBoxesBring) {
  EXPECT_EQ(products_by_default(kNN, {{"M", 1024}, {"N", 1024}, {"K", 1023}}), 0);
  EXPECT_EQ(products_by_default(kNN, {{"M", 1024}, {"N", 1022}, {"K", 1024}}), 0);
  EXPECT_EQ(products_by_default("def f(float16(M,L) A, float16(L,N) B) -> (C) {"
                                "  C(m,n) +=! A(m,k + 1) * B(k + 1,n) where k in 0:1024 }",
                                {{"M", 1024}, {"N", 1024}, {"L", 1032}}),
            0);
  EXPECT_EQ(products_by_default("def f(float16(V,K) A, int32(M) I, float16(K,N) B) -> (C) {"
                                "  C(m,n) +=! A(I(m),k) * B(k,n) }",
                                {{"V", 1024}, {"M", 1024}, {"N", 1024}, {"K", 1024}}),
            0);
  // A diagonal's elements are no neighbours, nor are every second's of rows that are no multiple of a step.
  EXPECT_EQ(products_by_default("def f(float16(M,K) A, float16(N,N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,n,k) }",
                                {{"M", 1024}, {"N", 512}, {"K", 1024}}),
            0);
  EXPECT_EQ(products_by_default(kEverySecondRow, {{"M", 1024}, {"L", 2048}, {"N", 1024}, {"K", 1024}}), 1);
  EXPECT_EQ(products_by_default(kEverySecondRow, {{"M", 1024}, {"L", 2047}, {"N", 1024}, {"K", 1024}}), 0);
  // Behind the 100 values of a row that are read lie others, and then those of the row beside it.
  const char* part =
      "def f(float16(L,K) A, float16(P,K) B) -> (C) { C(m,n) +=! A(2 * m,k) * B(2 * n,k) where k in 0:100 }";
  EXPECT_EQ(products_by_default(part, {{"L", 2048}, {"P", 2048}, {"K", 128}}), 0);
  EXPECT_EQ(difference(specialised_from(part, {{"L", 256}, {"P", 256}, {"K", 128}}), {}, 1, kDevice), "");
}

TEST(Warpgroups, AreOfOneArchitecture) {
  gpu::Device plain = kDevice;
  plain.accelerated = false;
  EXPECT_EQ(products_by_default(kNN, kLarge, plain), 0);
  for (const int number : {80, 86, 89, 100, 120}) {
    EXPECT_EQ(products_by_default(kNN, kLarge, gpu::device_of_architecture(number)), 0) << number;
  }
  EXPECT_EQ(products_by_default(kNN, kLarge, gpu::device_of_architecture(90)), 1);
}

/// The first kernel's blocks of a cluster, where operands stay as they lie.
int64_t cluster_by_default(const std::string& text, const Sizes& sizes) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {.copy_operands = false}, kDevice);
  return mapping ? mapping->program.kernels[0].cluster_blocks() : -1;
}

/// Blocks share copies where these take longest: rows do not lie in lines, or the cache does not hold an operand. More
/// than two do where all run at once.
TEST(Warpgroups, AreInClustersWhereCopiesTakeLong) {
  EXPECT_EQ(cluster_by_default(kNN, {{"M", 4104}, {"N", 4104}, {"K", 4104}}), 2);
  EXPECT_EQ(cluster_by_default(kNN, {{"M", 128}, {"N", 8192}, {"K", 4096}}), 2);
  EXPECT_EQ(cluster_by_default(kNN, {{"M", 6656}, {"N", 120}, {"K", 1536}}), 4);
  EXPECT_EQ(cluster_by_default(kNN, {{"M", 448}, {"N", 2432}, {"K", 1984}}), 1);
  EXPECT_EQ(cluster_by_default(kNN, {{"M", 1024}, {"N", 1024}, {"K", 1024}}), 1);
  EXPECT_EQ(cluster_by_default(kNN, {{"M", 2048}, {"N", 2048}, {"K", 512}}), 1);
}

TEST(Warpgroups, ClustersAreFollowedOrRefused) {
  const ir::Program program = specialised_from(kNN, kLarge);
  for (const std::vector<int64_t>& cluster : {std::vector<int64_t>{2}, {1, 2}, {2, 2}, {4, 2}}) {
    const Result<gpu::Mapping> mapping = mapped(program, {.cluster = cluster}, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels[0].chosen.cluster,
              (std::vector<int64_t>{cluster[0], cluster.size() > 1 ? cluster[1] : 1}));
  }
  const Result<gpu::Mapping> narrow = mapped(program, {.cluster = {2}}, gpu::device_of_architecture(80));
  ASSERT_FALSE(narrow);
  EXPECT_NE(narrow.error().to_string().find("'cluster' asks for blocks that share copies, but no kernel has any"),
            std::string::npos);
  const Result<gpu::Mapping> batch =
      mapped(specialised_from(kBatch, {{"B", 4}, {"M", 512}, {"N", 512}, {"K", 512}}), {.cluster = {2, 1, 1}}, kDevice);
  EXPECT_FALSE(batch);
}

TEST(Warpgroups, TeamsGoOnThoughNothingElseIsAskedFor) {
  const options::MappingOptions options{.ping_pong = true};
  const Result<gpu::Mapping> mapping =
      mapped(specialised_from(kNN, {{"M", 512}, {"N", 512}, {"K", 256}}), options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels[0].chosen.ping_pong, true);
  EXPECT_EQ(mapping->kernels[0].chosen.persistent, true);
}

TEST(Warpgroups, RandomTilesAgree) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const WarpgroupProduct tile = random_warpgroup_product(seed);
    const std::string what = fmt::format("{}\n{}{}", seed, tile.text, options::to_text(tile.options));
    const ir::Program program = specialised_from(tile.text, tile.sizes);
    const Result<gpu::Mapping> mapping = mapped(program, tile.options, kDevice);
    ASSERT_TRUE(mapping) << what << mapping.error().to_string();
    EXPECT_GE(count_products(mapping->program), 1) << what;
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "") << what;
    if (seed % 4 == 0) EXPECT_EQ(unproved(mapping->program), "") << what;
  }
}

/// Tiles of 256 rows and more than 128 columns: a warpgroup has the rows of two instructions, and registers of the one
/// that copies.
TEST(Warpgroups, HaveTwoInstructionsBesideEachOther) {
  const ir::Program program = specialised_from(
      "def f(float16(M,K) A, float16(K,N) B, float16(N) b, float16(M,N) R) -> (C) {\n"
      "  C(m,n) +=! A(m,k) * B(k,n)\n  C(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)\n}",
      {{"M", 300}, {"N", 200}, {"K", 136}});
  const std::vector<const char*> more = {"",
                                         "cluster: [1, 2]",
                                         "cluster: [2, 1]",
                                         "cluster: [1, 1, 2]",
                                         "store_boxes: true",
                                         "store_boxes: true persistent: true"};
  for (const int64_t columns : {136, 160, 192}) {
    for (const char* text : more) {
      options::MappingOptions options = options::mapping_options_from_text(text).value();
      options.tile = {256, columns, 64};
      options.register_tile = {4, columns / 4};
      options.map_to_threads = {4, 64, 1};
      options.tensor_cores = true;
      options.copy_stages = 3;
      const std::string what = options::to_text(options);
      const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
      ASSERT_TRUE(mapping) << what << mapping.error().to_string();
      EXPECT_EQ(mapping->kernels[0].block, (std::array<int64_t, 3>{384, 1, 1})) << what;
      EXPECT_EQ(difference_of_mapping(program, *mapping), "") << what;
      EXPECT_EQ(unproved(mapping->program), "") << what;
    }
  }
}

TEST(Warpgroups, RandomBoxesAgree) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const WarpgroupProduct box = random_boxed_product(seed);
    const std::string what = fmt::format("{}\n{}\n{}", seed, box.text, options::to_text(box.options));
    const ir::Program program = specialised_from(box.text, box.sizes);
    const Result<gpu::Mapping> mapping = mapped(program, box.options, kDevice);
    ASSERT_TRUE(mapping) << what << mapping.error().to_string();
    EXPECT_EQ(count_products(mapping->program), 1) << what;
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "") << what;
    if (seed % 4 == 0) EXPECT_EQ(unproved(mapping->program), "") << what;
  }
}

/// Tensors that are aligned to their elements only come without boxes.
TEST(Warpgroups, NeedTensorsOnSixteenBytes) {
  const ir::Program program = specialised_from(kNN, {{"M", 128}, {"N", 128}, {"K", 128}});
  options::MappingOptions options = warpgroup_tile(1, 64, 2);
  options.copy_operands = false;
  const Result<gpu::Mapping> aligned = mapped(program, options, kDevice),
                             others = mapped(program, options, kDevice, true);
  ASSERT_TRUE(aligned) << aligned.error().to_string();
  ASSERT_TRUE(others) << others.error().to_string();
  EXPECT_EQ(count_products(aligned->program), 1);
  EXPECT_EQ(count_products(others->program), 0);
  EXPECT_TRUE(others->program.kernels[0].maps.empty());
}

/// Without boxes 8-bit floats become floats of 16 bits, if the text says so.
TEST(Warpgroups, Float8WithoutBoxesIsMultipliedAsFloat16) {
  const ir::Program program = specialised_from(kMixed8, kLarge);
  const Result<gpu::Mapping> mapping = mapped(program, {.copy_operands = false}, kDevice, true);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(count_products(mapping->program), 1);
  std::set<std::string> boxed;
  for (const tile::TensorMap& map : mapping->program.kernels.back().maps) boxed.insert(map.tensor);
  EXPECT_EQ(boxed, (std::set<std::string>{"C_sum_operand", "C_sum_operand_1"}));
}

/// What lies behind the reduction, and behind the rows, is read by nobody: it may be a NaN.
TEST(Warpgroups, NothingOutsideIsRead) {
  const ir::Program program = specialised_from(kPart, {{"M", 64}, {"N", 64}, {"L", 128}});
  interp::Environment data = data_for(program, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < data.at("A").floats.size(); ++i) {
    if (i % 128 < 8 || i % 128 >= 108) data.at("A").floats[i] = nan;
  }
  for (size_t i = 0; i < data.at("B").floats.size(); ++i) {
    if (i / 64 < 16 || i / 64 >= 116) data.at("B").floats[i] = nan;
  }
  const Result<gpu::Mapping> mapping = mapped(program, warpgroup_tile(1, 64, 2), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<interp::Environment> result = simulated(program, *mapping, data), oracle = interp::run(program, data);
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_TRUE(oracle) << oracle.error().to_string();
  EXPECT_EQ(result->at("C").floats, oracle->at("C").floats);
}

}  // namespace
}  // namespace tc::testing
