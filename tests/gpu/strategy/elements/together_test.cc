#include "tc/gpu/strategy/elements/together.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Reductions of columns that a thread goes through once.
namespace tc::testing {
namespace {

constexpr int64_t kDown = 51, kAcross = 40'000;  ///< a thread has whole columns

ir::Program reduced_columns(const char* statements) {
  return specialised_from(std::string("def f(float(N,D) I, float(N,D) J) -> (a, b) { ") + statements + " }",
                          {{"N", kDown}, {"D", kAcross}});
}

int64_t bytes_of_columns(const ir::Program& program) {
  const Result<gpu::Mapping> mapping = mapped(program);
  tile::Report report;
  if (!mapping || !simulated(program, *mapping, data_for(program, 1), 1, &report)) return -1;
  int64_t bytes = 0;
  for (const tile::Counters& counters : report.counters) bytes += counters.global_bytes_read;
  return bytes;
}

TEST(ReductionsTogether, ReadWhatTheyShareOnce) {
  for (const char* text :
       {"a(d) +=! I(n,d)  b(d) +=! I(n,d) * I(n,d)", "a(d) max=! I(n,d)  b(e) min=! I(m,e)",
        "a(d) max=! I(n,d)  b(d) +=! exp(I(n,d) - a(d))", "a(d) min=! I(n,d)  b(d) +=! exp2(a(d) - I(n,d)) * I(n,d)"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(bytes_of_columns(reduced_columns(text)), kDown * kAcross * 4);
    EXPECT_EQ(faults_of(reduced_columns(text)), "");
  }
}

TEST(ReductionsTogether, WaitForResultsThatTheyNeed) {
  for (const char* text : {"a(d) +=! I(n,d)  b(d) +=! (I(n,d) - a(d)) * I(n,d)", "a(d) max=! I(n,d)  b(d) +=! a(d)",
                           "a(d) max=! I(n,d)  b(d) +=! exp(J(n,d) - a(d))",
                           "a(d) max=! I(n,d)  b(d) = 1 where d in 0:40000  b(d) += exp(I(n,d) - a(d))",
                           "a(d) max=! I(n,d)  b(d) max=! exp(I(n,d) - a(d))",
                           "a(d) +=! I(n,d)  a(d) += J(n,d)  b(d) "
                           "+=! J(n,d)",
                           "a(d) = I(0,d)  b(d) +=! I(n,d) * a(d)  a(d) +=! J(n,d)",
                           "a(d) = I(0,d)  b(d) max=! I(n,d) * a(d)  a(d) += J(n,d)"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(faults_of(reduced_columns(text)), "");
  }
}

TEST(ReductionsTogether, GoThroughSeveralLoops) {
  const std::string text = R"(
    def f(float(B,N,C,D) I) -> (top, s, t) {
      top(d) max=! I(b,n,c,d)
      s(d) +=! exp(I(b,n,c,d) - top(d))
      t(d) +=! exp(2 * (I(b,n,c,d) - top(d)))
    })";
  for (const auto& [b, n, c] : {std::array<int64_t, 3>{3, 5, 7}, {1, 20, 3}, {2, 1, 19}}) {
    EXPECT_EQ(faults_of(specialised_from(text, {{"B", b}, {"N", n}, {"C", c}, {"D", 140'000}})), "");
  }
}

/// A second launch begins with what the first has left in the cache: at the other end of each column.
TEST(ReductionsTogether, GoBackWhereALaunchBeforeHasEnded) {
  const ir::Program program = specialised_from(
      "def f(float(N,D) I) -> (a, b) { a(d) +=! I(n,d)  b(d) +=! (I(n,d) - a(d)) * I(n,d)  "
      "b(d) max= I(n,d) - a(d) }",
      {{"N", 131'075}, {"D", 32}});
  EXPECT_EQ(difference(program), "");
}

}  // namespace
}  // namespace tc::testing
