#include "tc/gpu/rewrite/split_quotients.h"

#include <gtest/gtest.h>

#include "tc/ir/index_expr.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Left sides that divide an index: as many launches as where the text has a reduction index, and the oracle's results.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const Sizes kEven = {{"M", 12}, {"N", 40}}, kOdd = {{"M", 11}, {"N", 39}}, kOne = {{"M", 1}, {"N", 1}};

ir::Program split(const char* text, const Sizes& sizes) { return gpu::split_quotients(specialised_from(text, sizes)); }

std::string ranges_of(const ir::Statement& s) {
  std::string text;
  for (const ir::Index& index : s.indices) {
    text += fmt::format("{}{} in {}:{}", text.empty() ? "" : ", ", index.name, ir::begin_of(index),
                        ir::begin_of(index) + ir::extent_of(index));
    if (index.is_reduction) text += " reduced";
  }
  return text;
}

TEST(SplitQuotients, RemaindersAreReducedOver) {
  const ir::Program program = split("def f(float(M,N) X) -> (P) { P(m,n/4) max=! X(m,n) }", kEven);
  EXPECT_EQ(ranges_of(program.statements[0]), "m in 0:12, n in 0:10, n_rest in 0:4 reduced");
  EXPECT_FALSE(program.statements[0].guard.defined());
}

TEST(SplitQuotients, RemaindersOnTheLeftAreNot) {
  const ir::Program program = split("def f(float(M,N) X) -> (P) { P(n/4,m,n%4) = X(m,n) }", kEven);
  EXPECT_EQ(ranges_of(program.statements[0]), "n in 0:10, m in 0:12, n_rest in 0:4");
}

TEST(SplitQuotients, LeavesWhatItCannotMakeABox) {
  for (const char* text : {"def f(float(M,N) X) -> (float(10,M,4) P) { P(n/4,m,n%4) = X(m,n) where n in 2:N }",
                           "def f(float(M,N) X, int32(M) I) -> (float(6,N) P) { P(I(m)/2,n) += X(m,n) }",
                           "def f(float(M,N) X) -> (P) { P((2*m+n)/3) +=! X(m,n) }"}) {
    const ir::Program program = specialised_from(text, kEven);
    EXPECT_EQ(ir::to_text(gpu::split_quotients(program)), ir::to_text(program)) << text;
  }
}

TEST(SplitQuotients, IsOneLaunchWhereAReductionIndexIs) {
  for (const char* text : {"def f(float(M,N) X) -> (P) { P(m,n/2) max=! X(m,n) }",
                           "def f(float(M,N) X) -> (P) { P(m/2,n/2) max=! X(m,n) }",
                           "def f(float(M,N) X) -> (P) { P((m+1)/2,(n+1)/2) max=! X(m,n) }",
                           "def f(half(M,N) X) -> (P) { P(m/4,n/2) +=! 0.125 * X(m,n) }",
                           "def f(float(M,N) X) -> (P) { P(m,n/512) +=! X(m,n) }"}) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(text, {{"M", 4096}, {"N", 4095}}));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), 1U) << text << "\n" << gpu::report(*mapping);
    EXPECT_NE(mapping->kernels[0].recipe, gpu::Recipe::kClassic) << text;
  }
}

TEST(SplitQuotients, AgreesWithTheOracle) {
  gpu::Device busy;
  busy.instances_of_launch = 64;  // few elements are many
  for (const char* text :
       {"def f(float(M,N) X) -> (P) { P(m,n/2) max=! X(m,n) }",
        "def f(float(M,N) X) -> (P) { P(m/2,n/2) max=! X(m,n) }",
        "def f(float(M,N) X) -> (P) { P((m+1)/2,(n+1)/2) max=! X(m,n) }",
        "def f(float(M,N) X) -> (P) { P((n+6)/4-1,m) min=! X(m,n) }",
        "def f(half(M,N) X) -> (P) { P(m/4,n/3) +=! X(m,n) }", "def f(int32(M,N) X) -> (P) { P(n/7) *=! X(m,n) }",
        "def f(float(M,N) X, float(N) P) -> (float(M,N) Q) { Q(m,n/2) += X(m,n) * P(n/2) }",
        "def f(float(M,N) X) -> (float(M,N) X2, P) { X2(m,n) = X(m,n)  P(m/5,n/100) +=! X2(m,n) }",
        "def f(float(M,N) X) -> (float(N,M,3) P) { P(n/3,m,n%3) += X(m,n) }",
        "def f(float(M,N) X) -> (float(N,M,3) P) { P(n/3,m,n%3) max=! X(m,n) }",
        "def f(float(M,N) X) -> (float(M,N,2) P) { P(m,n/8,n/4%2) +=! X(m,n) }",
        "def f(float(M,N) X) -> (float(N,N) P) { P(n/2,n) +=! X(m,n) }",
        "def f(float(M,N) X) -> (float(M,N) P) { P(m,N-1-n/2) max=! X(m,n) }"}) {
    for (const Sizes& sizes : {kEven, kOdd, kOne}) {
      const ir::Program program = specialised_from(text, sizes);
      EXPECT_EQ(faults_of(program), "") << text << ir::to_text(program);
      EXPECT_EQ(difference(program, {}, 1, busy), "") << text << ir::to_text(program);
      EXPECT_EQ(difference(gpu::split_quotients(program), {.strict = true}, 1, busy), "") << text;
    }
  }
}

/// Heads of a projection: whole runs, and quotients of quotients.
TEST(SplitQuotients, HeadsAgreeWithTheOracle) {
  for (const char* text :
       {"def f(float(M,N) X) -> (float(5,M,8) P) { P(n/8,m,n%8) = X(m,n) }",
        "def f(float(M,N) X) -> (float(2,3,M,8) P) { P(n/24,n/8%3,m,n%8) = X(m,n) where n in 0:N, m in 0:M }",
        "def f(float(M,N) X) -> (float(3,M,8) P) { P((n-16)/8,m,(n-16)%8) = X(m,n) where n in 16:40 }"}) {
    const Sizes sizes = {{"M", 12}, {"N", std::string(text).find("24") == std::string::npos ? 40 : 48}};
    const ir::Program program = specialised_from(text, sizes);
    EXPECT_NE(ir::to_text(gpu::split_quotients(program)), ir::to_text(program)) << text;
    EXPECT_EQ(faults_of(program), "") << text;
    EXPECT_EQ(difference(gpu::split_quotients(program), {.strict = true}), "") << text;
  }
}

}  // namespace
}  // namespace tc::testing
