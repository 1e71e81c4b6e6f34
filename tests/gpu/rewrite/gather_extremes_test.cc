#include "tc/gpu/rewrite/gather_extremes.h"

#include <gtest/gtest.h>

#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Neighbours that a text lists, as a reduction.
namespace tc::testing {
namespace {

ir::Program gathered(const ir::Program& program) {
  return gpu::gather_extremes(program, [](const ir::Program&, const std::string& tensor) { return tensor == "C"; });
}

ir::Program program_of(const std::string& pool) {
  return specialised_from("def f(float(M,K) A, float(K,N) B) -> (P) { C(m,n) +=! A(m,k) * B(k,n)  " + pool + " }",
                          {{"M", 24}, {"N", 32}, {"K", 16}});
}

TEST(GatherExtremes, MakesAReduction) {
  struct Pair {
    const char *listed, *reduced;
  };
  for (const auto& [listed, reduced] : {
           Pair{"P(m,n) = max(C(2*m,n), C(2*m+1,n))", "P(m,n) max=! C(2*m+part,n) where part in 0:2"},
           Pair{"P(m,n) = min(C(2*m+1,n), C(2*m,n))", "P(m,n) min=! C(2*m+part,n) where part in 0:2"},
           Pair{"P(m,n) = max(max(C(3*m,n), C(3*m+1,n)), C(3*m+2,n))", "P(m,n) max=! C(3*m+part,n) where part in 0:3"},
       }) {
    const ir::Program program = gathered(program_of(listed)), other = program_of(reduced);
    const ir::Statement &own = program.statements.back(), &wanted = other.statements.back();
    EXPECT_EQ(own.assign, wanted.assign) << listed;
    EXPECT_TRUE(own.initialises) << listed;
    EXPECT_EQ(own.indices.size(), wanted.indices.size()) << ir::to_text(program);
    EXPECT_TRUE(
        Halide::Internal::equal(Halide::Internal::simplify(own.value), Halide::Internal::simplify(wanted.value)))
        << ir::to_text(program);
  }
}

TEST(GatherExtremes, LeavesOthers) {
  for (const char* pool : {"P(m,n) = max(C(m,2*n), C(m,2*n+1))",                   // a thread has them
                           "P(m,n) = max(C(2*m,n), C(2*m+1,n) + 1)",               // not alike
                           "P(m,n) = max(C(2*m,n), min(C(2*m+1,n), C(2*m,n)))",    // of both kinds
                           "P(m,n) = max(max(C(4*m,n), C(4*m+1,n)), C(4*m+3,n))",  // with a gap
                           "P(m,n) = max(C(2*m,n), C(2*m,n))",                     // one element
                           "P(m,n) = max(C(2*m,n), A(m,n)) where n in 0:K"}) {
    const ir::Program program = program_of(pool);
    EXPECT_EQ(ir::to_text(gathered(program)), ir::to_text(program)) << pool;
  }
}

TEST(GatherExtremes, AgreesWithTheOracle) {
  for (const char* pool : {"P(m,n) = max(C(2*m,n), C(2*m+1,n))",
                           "P(m,n) = max(max(C(2*m,2*n), C(2*m+1,2*n)), max(C(2*m,2*n+1), C(2*m+1,2*n+1)))"}) {
    const ir::Program program = program_of(pool);
    const Result<gpu::Mapping> mapping = mapped(gathered(program));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(difference_of_mapping(program, *mapping), "") << pool;
  }
}

}  // namespace
}  // namespace tc::testing
