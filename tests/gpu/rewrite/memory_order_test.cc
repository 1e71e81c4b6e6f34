#include "tc/gpu/rewrite/memory_order.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"

namespace tc::testing {
namespace {

/// The text has the sizes K, M and N.
std::string order(const std::string& text) {
  const ir::Program program = gpu::reduce_along_memory(specialised_from(text, {{"K", 4}, {"M", 8}, {"N", 16}}));
  std::string names;
  for (const ir::Index& index : program.statements.at(0).indices) names += index.name;
  return names;
}

TEST(MemoryOrder, PutsTheIndexAlongMemoryLast) {
  EXPECT_EQ(order("def f(float(K,M,N) x, float(N) w) -> (s) { s +=! w(n) * x(k,m,n) }"), "kmn");
  EXPECT_EQ(order("def f(float(K,M,N) x, float(N) w) -> (s) { s(m) +=! w(n) * x(k,m,n) }"), "mkn");
  EXPECT_EQ(order("def f(float(K,M,N) x) -> (s) { s +=! float(n + m) * x(k,m,n) }"), "kmn");
}

TEST(MemoryOrder, LeavesReductionsWhoseResultsAreAlongMemory) {
  EXPECT_EQ(order("def f(float(K,M,N) x, float(M) w) -> (s) { s(n) +=! w(m) * x(k,m,n) }"), "nmk");
}

TEST(MemoryOrder, LeavesContractions) {
  EXPECT_EQ(order("def f(float(K,M,N) x, float(M,K,N) y) -> (s) { s(a,b) +=! y(j,a,i) * x(b,j,i) }"), "abji");
}

TEST(MemoryOrder, ChangesNoResult) {
  for (const char* text : {"def f(float(K,M,N) x, float(N) w) -> (s) { s(k) +=! w(n) * x(k,m,n) }",
                           "def f(float(K,M,N) x, float(N) w) -> (s) { s(m) max=! w(n) * x(k,m,n) }",
                           "def f(float(K,M,N) x, float(N) w) -> (s) { s +=! w(n) * x(k,m,n) where n in 3:N }"}) {
    EXPECT_EQ(faults_of(specialised_from(text, {{"K", 3}, {"M", 5}, {"N", 70}})), "") << text;
  }
}

}  // namespace
}  // namespace tc::testing
