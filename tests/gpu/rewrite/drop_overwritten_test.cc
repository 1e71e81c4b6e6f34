#include "tc/gpu/rewrite/drop_overwritten.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Statements whose elements nobody reads before they are set anew.
namespace tc::testing {
namespace {

const std::map<std::string, int64_t> kSizes = {{"M", 12}, {"N", 40}};

size_t statements_left(const char* text) {
  const ir::Program program = specialised_from(text, kSizes);
  EXPECT_EQ(faults_of(program), "") << text;
  EXPECT_EQ(difference(gpu::drop_overwritten(program), {.strict = true}), "") << text;
  return gpu::drop_overwritten(program).statements.size();
}

TEST(DropOverwritten, DropsWhatIsSetAnew) {
  for (const char* text :
       {"def f(float(M,N) X) -> (Y) { Y(m,n) = X(m,n) + 1  Y(m,n) = X(m,n) }",
        "def f(float(M,N) X) -> (Y) { Y(m) = X(m,0)  Y(m) +=! X(m,n) }",
        "def f(float(M,N) X) -> (Y) { Y(m,n) = X(m,n) + 1  Y(m,n) max= 0  Y(m,n) = X(m,n) }",
        "def f(float(M,N) X) -> (float(M,N) Y) { Y(m,n) = X(m,n + 1) where n in 0:N - 1  Y(m,n) = X(m,n) }"}) {
    EXPECT_EQ(statements_left(text), 1U) << text;
  }
}

TEST(DropOverwritten, KeepsWhatIsReadOrStays) {
  for (const char* text : {"def f(float(M,N) X) -> (Y) { Y(m,n) = X(m,n) + 1  Y(m,n) = Y(m,n) * 2 }",
                           "def f(float(M,N) X) -> (Y) { Y(m) = X(m,0)  Y(m) += X(m,n) }",
                           "def f(float(M,N) X) -> (Y) { Y(m,n) = X(m,n) + 1  Y(m,n) = X(m,n) where n in 0:N - 1 }",
                           "def f(float(M,N) X) -> (Y) { Y(m,n) = X(m,n) + 1  Y(m,m) = X(m,m) }",
                           "def f(float(M,N) X) -> (Y) { Y(m,n) = X(m,n) + 1  Y(m,n) = X(m,n) where n in 1:N }"}) {
    EXPECT_EQ(statements_left(text), 2U) << text;
  }
  EXPECT_EQ(statements_left("def f(float(M,N) X) -> (Y, Z) { Y(m,n) = X(m,n) + 1  Z(m) +=! Y(m,n)  Y(m,n) = X(m,n) }"),
            3U);
}

}  // namespace
}  // namespace tc::testing
