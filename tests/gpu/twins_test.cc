#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// A def in an unusual spelling, or with unusual subscripts, is estimated to take little more time than a plain def
/// that computes and moves as much.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// Texts behind "def f(".
struct Twins {
  const char* name;
  const char* text;
  const char* plain;
  Sizes large, small;
  double most = 1.5;  ///< times the plain def's time
};

void PrintTo(const Twins& t, std::ostream* out) { *out << t.name; }

const Sizes kProduct = {{"M", 1024}, {"N", 1024}, {"K", 1024}}, kSmallProduct = {{"M", 34}, {"N", 24}, {"K", 40}};
const Sizes kImages = {{"B", 16}, {"C", 128}, {"F", 128}, {"H", 28}, {"W", 28}};
const Sizes kSmallImages = {{"B", 2}, {"C", 8}, {"F", 8}, {"H", 5}, {"W", 6}};
const Sizes kRows = {{"N", 4096}, {"D", 4096}}, kSmallRows = {{"N", 5}, {"D", 70}};
const Sizes kTiles = {{"F", 512}, {"C", 512}}, kSmallTiles = {{"F", 7}, {"C", 11}};

const char* const kProductOfHalves = "half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const char* const kProductOfFloats = "float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const char* const kPadded =
    "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! (y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W ? "
    "I(b,c,y + r - 1,x + s - 1) : half(0)) * G(f,c,r,s) where y in 0:H, x in 0:W }";
const char* const kSoftmax =
    "float(N,D) X) -> (O) { M(n) max=! X(n,d)  E(n,d) = exp(X(n,d) - M(n))  S(n) +=! E(n,d)  O(n,d) = E(n,d) / S(n) }";
const char* const kRowSums = "float(N,D) X) -> (S) { S(n) +=! X(n,d) }";
const char* const kSmallTile = "float(F,C,3,3) G, float(3) b) -> (O) { O(f,c,r,s) = G(f,c,r,s) + b(s) }";

const Twins kTwins[] = {
    // Left sides of products.
    {"ReversedRowsOfHalves", "half(M,K) A, half(K,N) B) -> (half(M,N) C) { C(M-1-m,n) +=! A(m,k) * B(k,n) }",
     kProductOfHalves, kProduct, kSmallProduct},
    {"ReversedRowsOfFloats", "float(M,K) A, float(K,N) B) -> (float(M,N) C) { C(M-1-m,n) +=! A(m,k) * B(k,n) }",
     kProductOfFloats, kProduct, kSmallProduct},
    {"AddedToReversedColumns",
     "float(M,K) A, float(K,N) B, float(M,N) D) -> (C) { C(m,n) = D(m,n)  C(m,N-1-n) += A(m,k) * B(k,n) }",
     "float(M,K) A, float(K,N) B, float(M,N) D) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += D(m,n) }", kProduct,
     kSmallProduct},
    {"Diagonals", "half(M,K) A, half(K,N) B) -> (half(M+N,N) C) { C(m+n,n) +=! A(m,k) * B(k,n) }", kProductOfHalves,
     kProduct, kSmallProduct},
    {"TwoParts",
     "half(M,K) A, half(K,N) B) -> (half(M,2*N) C) { C(m,n) +=! A(m,k) * B(k,n) where n in 0:N  "
     "C(m,n+N) +=! A(m,k) * B(k,n) }",
     "half(M,K) A, half(K,N) B) -> (C, D) { C(m,n) +=! A(m,k) * B(k,n)  D(n,m) +=! A(m,k) * B(k,n) }", kProduct,
     kSmallProduct},
    {"PartOfTheResults",
     "half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = max(C(m,n), half(0)) where m in 0:M/2 }",
     kProductOfHalves, kProduct, kSmallProduct},
    {"FirstRowOfTheResults",
     "float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(0,n) = 1.0 where n in 0:N }", kProductOfFloats,
     kProduct, kSmallProduct},
    // Operands of products.
    {"ReversedReduction", "half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,K-1-k) * B(k,n) }", kProductOfHalves,
     kProduct, kSmallProduct},
    {"ReversedOperand", "half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(M-1-m,k) * B(k,n) }", kProductOfHalves,
     kProduct, kSmallProduct},
    {"FlippedWindow", "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! I(b,c,y+r,x+s) * G(f,c,2-r,2-s) }",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! I(b,c,y+r,x+s) * G(f,c,r,s) }", kImages, kSmallImages},
    // Borders.
    {"OutsideFirst",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! (y + r < 1 || y + r > H || x + s < 1 || x + s > W ? "
     "half(0) : I(b,c,y + r - 1,x + s - 1)) * G(f,c,r,s) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.01},
    {"NotOutside",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! (!(y + r < 1 || y + r > H || x + s < 1 || x + s > W) ? "
     "I(b,c,y + r - 1,x + s - 1) : half(0)) * G(f,c,r,s) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.01},
    {"OneAfterTheOther",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! (y + r >= 1 && y + r <= H ? (x + s >= 1 && x + s <= W "
     "? "
     "I(b,c,y + r - 1,x + s - 1) : half(0)) : half(0)) * G(f,c,r,s) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.01},
    {"ConvertedTwice",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! half(y + r >= 1 && y + r <= H && x + s >= 1 && x + s "
     "<= "
     "W ? float(I(b,c,y + r - 1,x + s - 1)) : 0.0) * G(f,c,r,s) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.01},
    {"Clamped",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! I(b,c,clamp(y+r-1,0,H-1),clamp(x+s-1,0,W-1)) * "
     "G(f,c,r,s) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.6},
    {"Circular",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! I(b,c,(y+r-1+H)%H,(x+s-1+W)%W) * G(f,c,r,s) where y in "
     "0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.6},
    {"Reflected",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! I(b,c,H-1-abs(H-1-abs(y+r-1)),"
     "W-1-abs(W-1-abs(x+s-1))) * G(f,c,r,s) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.6},
    {"ClampedFloats",
     "float(B,C,H,W) I, float(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! I(b,c,clamp(y+r-1,0,H-1),clamp(x+s-1,0,W-1)) * "
     "G(f,c,r,s) where y in 0:H, x in 0:W }",
     "float(B,C,H,W) I, float(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! (y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= "
     "W ? I(b,c,y + r - 1,x + s - 1) : 0) * G(f,c,r,s) where y in 0:H, x in 0:W }",
     kImages, kSmallImages},
    // Rows.
    {"SoftmaxReversed",
     "float(N,D) X) -> (O) { M(n) max=! X(n,d)  E(n,d) = exp(X(n,d) - M(n))  S(n) +=! E(n,d)  O(n,D-1-d) = E(n,d) / "
     "S(n) }",
     kSoftmax, kRows, kSmallRows},
    {"SoftmaxWithAColumnSet",
     "float(N,D) X) -> (O) { M(n) max=! X(n,d)  E(n,d) = exp(X(n,d) - M(n))  S(n) +=! E(n,d)  O(n,d) = E(n,d) / S(n)  "
     "O(n,0) = 0.0 where n in 0:N }",
     kSoftmax, kRows, kSmallRows},
    {"SoftmaxBehindAMargin",
     "float(N,D) X) -> (float(N,D+8) O) { M(n) max=! X(n,d)  E(n,d) = exp(X(n,d) - M(n))  S(n) +=! E(n,d)  O(n,d+8) = "
     "E(n,d) / S(n)  O(n,j) = 0.0 where j in 0:8, n in 0:N }",
     kSoftmax, kRows, kSmallRows},
    {"RowSumsReversed", "float(N,D) X) -> (float(N) S) { S(N-1-n) +=! X(n,d) }", kRowSums, kRows, kSmallRows},
    {"RowSumsBehindAZero", "float(N,D) X) -> (float(N+1) S) { S(0) = 0.0  S(n+1) +=! X(n,d) }", kRowSums, kRows,
     kSmallRows},
    {"RowsTransposed", "float(N,D) X) -> (O) { S(n) +=! X(n,d) * X(n,d)  O(d,n) = X(n,d) * rsqrt(S(n)) }",
     "float(N,D) X, float(N) S) -> (O, P) { O(d,n) = X(n,d) * rsqrt(S(n))  P(n) +=! X(n,d) }", kRows, kSmallRows},
    // Elements.
    {"SmallTiles", "float(F,C,3,3) G, float(F,C,3) B) -> (O) { O(f,c,r,s) = G(f,c,r,s) + B(f,c,s) }", kSmallTile,
     kTiles, kSmallTiles, 2},
    {"SmallTilesFlipped",
     "float(F,C,3,3) G, float(3) b) -> (O) { O(f,c,r,s) = G(f,c,2-r,2-s) + b(s) where r in 0:3, s in 0:3 }", kSmallTile,
     kTiles, kSmallTiles, 2},
    {"SmallTilesCutOut", "float(3*F,3*C) X) -> (float(F,C,3,3) O) { O(f,c,r,s) = X(3*f+r,3*c+s) }", kSmallTile, kTiles,
     kSmallTiles, 2},
};

class TwinsOf : public ::testing::TestWithParam<Twins> {};

std::string text_of(const char* text) { return std::string("def f(") + text; }

Sizes sizes_of(const std::string& text, const Sizes& all) {
  const ir::Program symbolic = program_from(text);
  Sizes result;
  for (const std::string& name : symbolic.sizes) result[name] = all.at(name);
  return result;
}

gpu::Device hopper() { return gpu::device_of_architecture(90); }

TEST_P(TwinsOf, TakeAboutAsLong) {
  std::vector<double> us;
  std::string reports;
  for (const char* text : {GetParam().text, GetParam().plain}) {
    const ir::Program program = specialised_from(text_of(text), sizes_of(text_of(text), GetParam().large));
    const Result<gpu::Mapping> mapping = mapped(program, {}, hopper());
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    us.push_back(gpu::estimated_us(*mapping));
    reports += gpu::report(*mapping) + "\n";
  }
  EXPECT_LT(us[0], GetParam().most * us[1]) << reports;
}

/// By default, and on a device where few elements are many, so that rewriting goes as far as for large sizes.
TEST_P(TwinsOf, AgreeWithTheOracle) {
  gpu::Device busy = hopper();
  busy.instances_of_launch = 16;
  const std::string text = text_of(GetParam().text);
  const ir::Program program = specialised_from(text, sizes_of(text, GetParam().small));
  EXPECT_EQ(faults_of(program, hopper()), "");
  EXPECT_EQ(faults_of(program, busy), "");
}

std::string name_of(const ::testing::TestParamInfo<Twins>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, TwinsOf, ::testing::ValuesIn(kTwins), name_of);

}  // namespace
}  // namespace tc::testing
