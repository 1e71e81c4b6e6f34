#include "tc/gpu/rewrite/split_digits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/ir/print.h"
#include "tc/ir/reads.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Products that are contractions over quotients and remainders of their indices.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// A def, its sizes for the simulator, and larger ones.
struct Case {
  const char* name;
  const char* text;
  Sizes small, large;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kAttention[] = R"(
def f(half(B,H,I,D) Q, half(B,G,J,D) K, half(B,G,J,D) V) -> (half(B,H,I,D) O) {
  S(b,h,i,j) +=! float(Q(b,h,i,d)) * float(K(b,h / 4,j,d))
  M(b,h,i) max=! S(b,h,i,j)
  P(b,h,i,j) = exp(S(b,h,i,j) - M(b,h,i))
  Z(b,h,i) +=! P(b,h,i,j)
  A(b,h,i,d) +=! float(half(P(b,h,i,j))) * float(V(b,h / 4,j,d))
  O(b,h,i,d) = half(A(b,h,i,d) / Z(b,h,i))
})";

const Case kCases[] = {
    {"HeadsThatShareKeys",
     "def f(half(B,H,I,D) Q, half(B,G,J,D) K) -> (S) { S(b,h,i,j) +=! Q(b,h,i,d) * K(b,h / 4,j,d) }",
     {{"B", 2}, {"H", 8}, {"G", 2}, {"I", 20}, {"J", 17}, {"D", 16}},
     {{"B", 4}, {"H", 16}, {"G", 4}, {"I", 1024}, {"J", 1024}, {"D", 128}}},
    {"HeadsInTurn",
     "def f(float(H,I,D) Q, float(G,J,D) K, float(H) s) -> (T) { S(i,h,j) +=! K(h % 3,j,d) * Q(h,i,d)  "
     "T(h,i,j) = S(i,h,j) * s(h) }",
     {{"H", 6}, {"G", 3}, {"I", 20}, {"J", 17}, {"D", 16}},
     {{"H", 24}, {"G", 3}, {"I", 1024}, {"J", 1024}, {"D", 128}}},
    {"GroupsOfChannels",
     "def f(half(N,C,H,W) X, half(F,D,KH,KW) K) -> (Y) { "
     "Y(n,f,h,w) +=! X(n,16 * (f / 8) + d,h + i,w + j) * K(f,d,i,j) where d in 0:16 }",
     {{"N", 1}, {"C", 32}, {"H", 6}, {"W", 7}, {"F", 16}, {"D", 16}, {"KH", 3}, {"KW", 3}},
     {{"N", 32}, {"C", 64}, {"H", 58}, {"W", 58}, {"F", 32}, {"D", 16}, {"KH", 3}, {"KW", 3}}},
    {"TransposedConvolution",
     "def f(half(N,C,H,W) X, half(C,F,2,2) K, half(F) b) -> (Y) { Y(n,f,2 * h + i,2 * w + j) +=! X(n,c,h,w) * "
     "K(c,f,i,j)  Y(n,f,h,w) = Y(n,f,h,w) + b(f) }",
     {{"N", 2}, {"C", 16}, {"H", 5}, {"W", 6}, {"F", 8}},
     {{"N", 16}, {"C", 256}, {"H", 56}, {"W", 56}, {"F", 128}}},
    {"HeadsBesideEachOther",
     "def f(float(M,H,K) A, float(H,K,D) B, float(M,E) R) -> (C) { C(m,16 * h + d) +=! A(m,h,k) * B(h,k,d) where "
     "d in 0:16  C(m,e) = C(m,e) + R(m,e) }",
     {{"M", 20}, {"H", 3}, {"K", 18}, {"D", 16}, {"E", 48}},
     {{"M", 4096}, {"H", 8}, {"K", 512}, {"D", 16}, {"E", 128}}},
    {"Attention",
     kAttention,
     {{"B", 1}, {"H", 8}, {"G", 2}, {"I", 16}, {"J", 24}, {"D", 16}},
     {{"B", 4}, {"H", 16}, {"G", 4}, {"I", 1024}, {"J", 1024}, {"D", 64}}},
};

bool is_contraction(const gpu::Kernel& kernel) { return kernel.recipe == gpu::Recipe::kContraction; }

class SplitDigits : public ::testing::TestWithParam<Case> {};

TEST_P(SplitDigits, MakesContractions) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().large);
  const ir::Program split = gpu::split_digits(program, gpu::is_contraction);
  for (size_t s = 0; s < program.statements.size(); ++s) {
    const ir::Statement& statement = split.statements[s];
    const bool is_product = statement.reduces() && ir::reads_in(split, statement.value).size() > 1;
    if (!is_product) continue;
    EXPECT_TRUE(gpu::is_contraction(split, statement)) << ir::to_text(split);
    EXPECT_FALSE(gpu::is_contraction(program, program.statements[s])) << ir::to_text(program);
  }
  const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_TRUE(std::any_of(mapping->kernels.begin(), mapping->kernels.end(), is_contraction)) << gpu::report(*mapping);
}

TEST_P(SplitDigits, AgreesWithTheOracle) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().small);
  for (const int architecture : {80, 90}) {
    EXPECT_EQ(difference(program, {}, 1, gpu::device_of_architecture(architecture)), "");
  }
  EXPECT_EQ(faults_of(program, gpu::device_of_architecture(90)), "");
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, SplitDigits, ::testing::ValuesIn(kCases), name_of);

/// Nothing to cut, no whole runs, a sum that some other access does not have, or a contraction as it is.
TEST(SplitDigits, LeavesOtherPrograms) {
  const Sizes all = {{"B", 2}, {"H", 8}, {"G", 2}, {"I", 20}, {"J", 17}, {"D", 16}, {"C", 3}, {"K", 5}};
  for (const char* text : {
           "def f(float(I,D) A, float(D,J) B) -> (C) { C(i,j) +=! A(i,d) * B(d,j) }",
           "def f(float(H,I,D) Q, float(G,J,D) K) -> (S) { S(h,i,j) +=! Q(h,i,d) * K(h / 5,j,d) where h in 0:8 }",
           "def f(float(C,H) X, float(C,4) W) -> (Y) { Y(2 * h + i) +=! X(c,h) * W(c,i) }",
           "def f(float(I,D) A, float(D,J) B, float(G,J) s) -> (C) { C(i,j) +=! A(i,d) * B(d,j) * s(d / 8,j) }",
       }) {
    Sizes sizes;
    for (const std::string& name : program_from(text).sizes) sizes[name] = all.at(name);
    const ir::Program program = specialised_from(text, sizes);
    EXPECT_EQ(ir::to_text(gpu::split_digits(program, gpu::is_contraction)), ir::to_text(program)) << text;
  }
}

/// A dimension as long as its divisor is not cut again, and again.
TEST(SplitDigits, EndWhereDimensionsAreShort) {
  for (const char* text : {
           "def f(float64(2) B) -> (R) { float64 R(i) +=! B(i % 2) where i in 0:8 "
           "R(j / 3) +=! R(i) * B(k) where i in 0:8, j in 0:8, k in 0:2 }",
           "def f(float(6,4) A, float(4,3) B) -> (C) { t(i,j) = A(i,j)  C(i,j) +=! t(i / 3 * 3 + j,k) * B(k,j) where "
           "i in 0:6 }",
       }) {
    const ir::Program program = specialised_from(text, {});
    EXPECT_EQ(difference(program), "") << text;
  }
}

}  // namespace
}  // namespace tc::testing
