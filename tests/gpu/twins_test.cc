#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/placements.h"

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
  double most = 1.5;          ///< times the plain def's time
  bool reads_chosen = false;  ///< data say where the def reads, which nobody proves
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
const char* const kElements = "half(N,D) X) -> (O) { O(n,d) = max(X(n,d), half(0)) }";
const char* const kRowSums = "float(N,D) X) -> (S) { S(n) +=! X(n,d) }";
const Sizes kHeads = {{"B", 64}, {"N", 2048}, {"D", 64}}, kSmallHeads = {{"B", 2}, {"N", 40}, {"D", 16}};
const char* const kCausal =
    "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
    "T(b,n,m) = m <= n ? S(b,n,m) * 0.125 : -inf  mx(b,n) max=! T(b,n,m)  P(b,n,m) = exp(T(b,n,m) - mx(b,n))  "
    "L(b,n) +=! P(b,n,m)  float A(b,n,d) +=! half(P(b,n,m)) * V(b,m,d)  O(b,n,d) = half(A(b,n,d) / L(b,n)) }";
const char* const kCausalInPlace =
    "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
    "S(b,n,m) = m <= n ? S(b,n,m) * 0.125 : -inf  mx(b,n) max=! S(b,n,m)  P(b,n,m) = exp(S(b,n,m) - mx(b,n))  "
    "L(b,n) +=! P(b,n,m)  float A(b,n,d) +=! half(P(b,n,m)) * V(b,m,d)  O(b,n,d) = half(A(b,n,d) / L(b,n)) }";
const char* const kAttention =
    "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
    "mx(b,n) max=! S(b,n,m)  P(b,n,m) = exp(S(b,n,m) - mx(b,n))  L(b,n) +=! P(b,n,m)  "
    "float A(b,n,d) +=! half(P(b,n,m)) * V(b,m,d)  O(b,n,d) = half(A(b,n,d) / L(b,n)) }";
const char* const kTextbook =
    "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
    "mx(b,n) max=! S(b,n,m)  L(b,n) +=! exp(S(b,n,m) - mx(b,n))  P(b,n,m) = half(exp(S(b,n,m) - mx(b,n)) / L(b,n))  "
    "half O(b,n,d) +=! P(b,n,m) * V(b,m,d) }";
const char* const kProbabilities =
    "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
    "mx(b,n) max=! S(b,n,m)  E(b,n,m) = exp(S(b,n,m) - mx(b,n))  L(b,n) +=! E(b,n,m)  "
    "P(b,n,m) = half(E(b,n,m) / L(b,n))  half O(b,n,d) +=! P(b,n,m) * V(b,m,d) }";
const char* const kFourTimesAsMany =
    "half(B,C,H,W) I, half(F,4,C,2,2) G) -> (O) { O(b,y,x,f,p) +=! I(b,c,y+r,x+s) * G(f,p,c,r,s) }";
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
     kProduct, kSmallProduct, 2},
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
    {"GradientOfAConvolution",
     "half(B,F,H,W) D, half(F,C,3,3) G) -> (O) { half O(b,c,y,x) +=! (y+1-r >= 0 && y+1-r < H && x+1-s >= 0 && x+1-s < "
     "W "
     "? D(b,f,y+1-r,x+1-s) : half(0)) * G(f,c,r,s) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages},
    {"MaskedProduct", "half(M,K) A, half(N,K) B) -> (C) { float C(m,n) +=! n <= m ? A(m,k) * B(n,k) : 0.0 }",
     "half(M,K) A, half(N,K) B) -> (C) { float C(m,n) +=! A(m,k) * B(n,k) }", kProduct, kSmallProduct, 1.1},
    {"MaskedByData",
     "half(M,K) A, half(N,K) B, float(M,N) S) -> (C) { float C(m,n) +=! S(m,n) > 0.5 ? A(m,k) * B(n,k) : 0.0 }",
     "half(M,K) A, half(N,K) B, float(M,N) S) -> (C) { float C(m,n) +=! A(m,k) * B(n,k)  C(m,n) = C(m,n) * S(m,n) }",
     kProduct, kSmallProduct, 1.1},
    {"LinearAttention",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! m <= n ? Q(b,n,d) * K(b,m,d) : 0.0  "
     "O(b,n,e) +=! half(S(b,n,m)) * V(b,m,e) }",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
     "O(b,n,e) +=! half(S(b,n,m)) * V(b,m,e) }",
     kHeads, kSmallHeads, 1.1},
    {"GradientOfWeights",
     "half(B,H,W,C) I, half(B,H,W,F) D) -> (G) { G(f,r,s,c) +=! (y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W "
     "? "
     "I(b,y + r - 1,x + s - 1,c) : half(0)) * D(b,y,x,f) where r in 0:3, s in 0:3 }",
     "half(B,H,W,C) I, half(F,3,3,C) G) -> (O) { O(b,y,x,f) +=! (y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W "
     "? "
     "I(b,y + r - 1,x + s - 1,c) : half(0)) * G(f,r,s,c) where y in 0:H, x in 0:W }",
     kImages, kSmallImages, 1.6},
    {"PaddedPool",
     "half(B,C,H,W) I) -> (O) { O(b,c,y,x) max=! 2 * y + r >= 1 && 2 * y + r <= H && 2 * x + s >= 1 && 2 * x + s <= W "
     "? "
     "I(b,c,2 * y + r - 1,2 * x + s - 1) : half(-65504) where y in 0:H/2, x in 0:W/2, r in 0:3, s in 0:3 }",
     "half(B,C,H,W) I) -> (O) { O(b,c,y,x) max=! I(b,c,2 * y + r,2 * x + s) where r in 0:2, s in 0:2 }",
     {{"B", 64}, {"C", 64}, {"H", 112}, {"W", 112}},
     kSmallImages,
     1.2},
    {"CausalWindow",
     "half(B,D,T) X, half(D,4) W) -> (O) { O(b,d,t) +=! (t >= k ? X(b,d,t - k) : half(0)) * W(d,k) where t in 0:T }",
     "half(B,D,T) X, half(D,4) W) -> (O) { O(b,d,t) = X(b,d,t) * W(d,0) }",
     {{"B", 8}, {"D", 2048}, {"T", 4096}},
     {{"B", 2}, {"D", 5}, {"T", 40}},
     1.5},
    {"OneColumn",
     "half(M,K) X, half(K,1) W) -> (Y) { Y(m,n) +=! X(m,k) * W(k,n) }",
     "half(M,K) X, half(K) W) -> (Y) { Y(m) +=! X(m,k) * W(k) }",
     {{"M", 65536}, {"K", 1024}},
     {{"M", 9}, {"K", 40}}},
    {"OneTensorTwiceOnceReversed",
     "half(K,N) A) -> (T) { T(m,n) +=! A(k,m) * A(K-1-k,n) }",
     "half(K,N) A, half(K,N) B) -> (T) { T(m,n) +=! A(k,m) * B(k,n) }",
     kProduct,
     {{"K", 64}, {"N", 64}},
     1.5},
    // Sums over two axes that do not lie beside each other.
    {"SumsOverAxesApart",
     "float(A,E,B,F) X, float(F,D,E,C) Y) -> (Z) { Z(a,b,c,d) +=! X(a,e,b,f) * Y(f,d,e,c) }",
     "float(A,B,E,F) X, float(E,F,C,D) Y) -> (Z) { Z(a,b,c,d) +=! X(a,b,e,f) * Y(e,f,c,d) }",
     {{"A", 48}, {"B", 32}, {"C", 24}, {"D", 32}, {"E", 48}, {"F", 32}},
     {{"A", 3}, {"B", 9}, {"C", 5}, {"D", 8}, {"E", 6}, {"F", 20}},
     1.5},
    // Attention.
    {"CausalMaskInATensorOfItsOwn", kCausal, kCausalInPlace, kHeads, kSmallHeads, 1.01},
    {"ProbabilitiesOfTheTextbook", kTextbook, kAttention, kHeads, kSmallHeads, 1.01},
    {"ProbabilitiesOfExponentials", kProbabilities, kAttention, kHeads, kSmallHeads, 1.01},
    {"ProbabilitiesOfScaledDifferences",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
     "mx(b,n) max=! S(b,n,m)  E(b,n,m) = exp((S(b,n,m) - mx(b,n)) / sqrt(float(D)))  L(b,n) +=! E(b,n,m)  "
     "P(b,n,m) = half(E(b,n,m) / L(b,n))  half O(b,n,d) +=! P(b,n,m) * V(b,m,d) }",
     kAttention, kHeads, kSmallHeads, 1.05},
    {"ProbabilitiesOfDistancesFromAMinimum",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { half S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
     "mn(b,n) min=! S(b,n,m)  L(b,n) +=! exp2(0.25 * (float(mn(b,n)) - float(S(b,n,m))))  "
     "P(b,n,m) = half(exp2(0.25 * (float(mn(b,n)) - float(S(b,n,m)))) / L(b,n))  half O(b,n,d) +=! P(b,n,m) * V(b,m,d) "
     "}",
     kAttention, kHeads, kSmallHeads, 1.25},
    {"LogarithmsOfSums",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O, lse) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
     "mx(b,n) max=! S(b,n,m)  P(b,n,m) = exp(S(b,n,m) - mx(b,n))  L(b,n) +=! P(b,n,m)  lse(b,n) = mx(b,n) "
     "+ log(L(b,n))  float A(b,n,d) +=! half(P(b,n,m)) * V(b,m,d)  O(b,n,d) = half(A(b,n,d) / L(b,n)) }",
     kAttention, kHeads, kSmallHeads, 1.05},
    {"MultipliedByReciprocals",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
     "mx(b,n) max=! S(b,n,m)  P(b,n,m) = exp(S(b,n,m) - mx(b,n))  L(b,n) +=! P(b,n,m)  R(b,n) = 1.0 / "
     "L(b,n)  float A(b,n,d) +=! half(P(b,n,m)) * V(b,m,d)  O(b,n,d) = half(A(b,n,d) * R(b,n)) }",
     kAttention, kHeads, kSmallHeads, 1.05},
    {"ProbabilitiesByReciprocals",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
     "mx(b,n) max=! S(b,n,m)  P(b,n,m) = exp(S(b,n,m) - mx(b,n))  L(b,n) +=! P(b,n,m)  R(b,n) = 1.0 / "
     "L(b,n)  Z(b,n,m) = half(P(b,n,m) * R(b,n))  half O(b,n,d) +=! Z(b,n,m) * V(b,m,d) }",
     kAttention, kHeads, kSmallHeads, 1.05},
    {"ProbabilitiesOfFloats",
     "half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
     "mx(b,n) max=! S(b,n,m)  P(b,n,m) = exp(S(b,n,m) - mx(b,n))  L(b,n) +=! P(b,n,m)  Z(b,n,m) = "
     "P(b,n,m) / L(b,n)  half O(b,n,d) +=! half(Z(b,n,m)) * V(b,m,d) }",
     kAttention, kHeads, kSmallHeads, 1.05},
    // Sums over what reaches a result.
    {"HiddenByZeros",
     "half(B,C,H,W) I, half(F,C,3,3) G) -> (O) { O(b,f,y,x) +=! y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W ? "
     "I(b,c,y + r - 1,x + s - 1) * G(f,c,r,s) : half(0) where y in 0:H, x in 0:W }",
     kPadded, kImages, kSmallImages, 1.01},
    {"ScatteredGradientOfAConvolution",
     "half(B,F,H,W) D, half(F,C,3,3) G) -> (O) { half O(b,c,y+r,x+s) +=! D(b,f,y,x) * G(f,c,r,s) }", kPadded, kImages,
     kSmallImages, 1.6},
    {"TransposedConvolution",
     "half(B,C,H,W) I, half(C,F,4,4) G) -> (O) { half O(b,f,y,x) +=! ((y+1-r) % 2 == 0 && (x+1-s) % 2 == 0 && y+1-r >= "
     "0 "
     "&& (y+1-r)/2 < H && x+1-s >= 0 && (x+1-s)/2 < W ? I(b,c,(y+1-r)/2,(x+1-s)/2) : half(0)) * G(c,f,r,s) where y in "
     "0:2*H, x in 0:2*W }",
     kFourTimesAsMany, kImages, kSmallImages, 3},
    {"TransposedConvolutionOfPixels",
     "half(B,C,H,W) I, half(C,F,2,2) G) -> (O) { half O(b,f,y,x) +=! ((y-r) % 2 == 0 && (x-s) % 2 == 0 && y >= r && "
     "(y-r)/2 < H && x >= s && (x-s)/2 < W ? I(b,c,(y-r)/2,(x-s)/2) : half(0)) * G(c,f,r,s) where y in 0:2*H, x in "
     "0:2*W }",
     kFourTimesAsMany, kImages, kSmallImages, 3},
    {"ScatteredTransposedConvolution",
     "half(B,C,H,W) I, half(C,F,3,3) G) -> (O) { half O(b,f,2*y+r,2*x+s) +=! I(b,c,y,x) * G(c,f,r,s) }",
     kFourTimesAsMany, kImages, kSmallImages, 4},
    {"TransposedConvolutionOfFloats",
     "float(B,C,H) I, float(C,F,4) G) -> (O) { O(b,f,2*y+r) +=! I(b,c,y) * G(c,f,r) }",
     "float(B,C,H) I, float(2,F,C,2) G) -> (O) { O(b,f,y,p) +=! I(b,c,y+r) * G(p,f,c,r) }",
     {{"B", 32}, {"C", 128}, {"F", 128}, {"H", 512}},
     {{"B", 2}, {"C", 8}, {"F", 12}, {"H", 9}},
     1.6},
    {"OverlapAdd",
     "float(B,T,256) X) -> (O) { O(b,64*t+k) +=! X(b,t,k) }",
     "float(B,T,256) X) -> (O) { O(b,t,k) = X(b,t,k) }",
     {{"B", 64}, {"T", 1024}},
     {{"B", 2}, {"T", 5}}},
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
    {"SumOfRowSums",
     "float(N,D) X) -> (L) { S(n) +=! X(n,d) * X(n,d)  L +=! S(n) }",
     kRowSums,
     {{"N", 16384}, {"D", 1024}},
     kSmallRows},
    {"CrossEntropy",
     "half(N,D) X, int32(N) t) -> (L) { M(n) max=! float(X(n,d))  S(n) +=! exp(float(X(n,d)) - M(n))  "
     "L +=! M(n) + log(S(n)) - float(X(n,t(n))) }",
     "half(N,D) X) -> (M, S) { M(n) max=! float(X(n,d))  S(n) +=! exp(float(X(n,d)) - M(n)) }",
     {{"N", 16384}, {"D", 4096}},
     kSmallRows,
     1.5,
     true},
    // Elements.
    {"ChoiceOfTheElement", "half(N,D) X) -> (O) { O(n,d) = X(n,d) > half(0) ? X(n,d) : half(0.1) * X(n,d) }", kElements,
     kRows, kSmallRows, 1.01},
    {"GradientOfAChoice", "float(N,D) X, float(N,D) G) -> (O) { O(n,d) = X(n,d) > 0 ? G(n,d) : 0.0 }",
     "float(N,D) X, float(N,D) G) -> (O) { O(n,d) = X(n,d) * G(n,d) }", kRows, kSmallRows, 1.01},
    {"Enlarged", "half(B,C,H,W) X) -> (O) { O(b,c,2*h+i,2*w+j) = X(b,c,h,w) where i in 0:2, j in 0:2 }",
     "half(B,C,H,W) X) -> (O) { O(b,c,h,w) = X(b,c,h / 2,w / 2) where h in 0:2*H, w in 0:2*W }", kImages, kSmallImages},
    {"Heads",
     "half(B,H,T,64) X) -> (O) { O(b,t,64*h+d) = X(b,h,t,d) }",
     "half(B,H,T,64) X) -> (O) { O(b,h,t,d) = X(b,h,t,d) }",
     {{"B", 8}, {"H", 16}, {"T", 2048}},
     {{"B", 2}, {"H", 3}, {"T", 5}},
     1.6},
    {"Interleaved", "half(N,D) A, half(N,D) B) -> (half(N,2*D) O) { O(n,2*d) = A(n,d)  O(n,2*d+1) = B(n,d) }",
     "half(N,D) A, half(N,D) B) -> (O, P) { O(n,d) = A(n,d)  P(n,d) = B(n,d) }", kRows, kSmallRows, 1.6},
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
  for (const gpu::Device& device : {hopper(), busy}) {
    EXPECT_EQ(GetParam().reads_chosen ? difference(program, {}, 1, device) : faults_of(program, device), "");
  }
}

/// What the report says of each kernel asks for it again.
TEST_P(TwinsOf, FollowTheirOptions) {
  const std::string text = text_of(GetParam().text);
  const ir::Program program = specialised_from(text, sizes_of(text, GetParam().large));
  const Result<gpu::Mapping> mapping = mapped(program, {}, hopper());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  options::MappingOptions all = gpu::options_for(*mapping, 0);
  for (size_t k = 1; k < mapping->kernels.size(); ++k) {
    for (const options::KernelOptions& own : gpu::options_for(*mapping, k).kernel) all.kernel.push_back(own);
  }
  const Result<gpu::Mapping> again = mapped(program, all, hopper());
  ASSERT_TRUE(again) << options::to_text(all) << again.error().to_string();
  EXPECT_LE(gpu::estimated_us(*again), 1.1 * gpu::estimated_us(*mapping)) << options::to_text(all);
}

std::string name_of(const ::testing::TestParamInfo<Twins>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, TwinsOf, ::testing::ValuesIn(kTwins), name_of);

/// Such defs at random, by default and where few elements are many.
TEST(Placements, AgreeWithTheOracle) {
  gpu::Device busy = hopper();
  busy.instances_of_launch = 16;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const RandomProduct random = random_placement(seed);
    const Result<ir::Program> program = try_specialised(random.text, random.sizes);
    ASSERT_TRUE(program) << random.text << program.error().to_string();
    EXPECT_EQ(difference(*program, {}, seed, seed % 2 == 0 ? hopper() : busy), "") << seed << "\n" << random.text;
  }
}

}  // namespace
}  // namespace tc::testing
