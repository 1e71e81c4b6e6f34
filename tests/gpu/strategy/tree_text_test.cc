#include "tc/gpu/strategy/tree_text.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

namespace tc::testing {
namespace {

std::string tree_of(const std::string& text, const std::map<std::string, int64_t>& sizes,
                    const options::MappingOptions& options) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options);
  return mapping ? gpu::tree_text(*mapping) : mapping.error().to_string();
}

TEST(TreeText, SaysWhatRunsOnBlocksAndThreads) {
  const options::MappingOptions options{.tile = {32, 64}, .map_to_threads = {16, 4}, .map_to_blocks = {4, 2}};
  EXPECT_EQ(tree_of("def f(float(M,N) A) -> (B) { B(m,n) = A(m,n) + 1 }", {{"M", 100}, {"N", 200}}, options),
            R"(kernel f_0: grid (4, 2, 1), block (16, 4, 1)
domain
  S0[m, n] : 0 <= m <= 99 and 0 <= n <= 199
schedule
  bind:0
    band permutable coincident(1, 1)
      S0: [m - (m) mod 32, n - (n) mod 64]
      bind:1
        band permutable coincident(1, 1)
          S0: [(m) mod 32, (n) mod 64]
bindings
  bind:0: block_x in steps of 32 of 4, block_y in steps of 64 of 2
  bind:1: thread_y of 4, thread_x of 16
)");
}

TEST(TreeText, ShowsCopiesAndWhatTheyAreOf) {
  const options::MappingOptions options{
      .tile = {8}, .match_library_calls = false, .map_to_threads = {32}, .use_shared_memory = true};
  const std::string text =
      tree_of("def f(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }", {{"M", 40}, {"K", 50}}, options);
  for (const char* part : {"      promote:x\n        sequence\n          x_in\n            bind:2\n",
                           "\npromotions\n  x: x at [i0] -> x[(0)] extents [50] copy_in\n",
                           "\nbindings\n  bind:0: block_x in steps of 8 of 5\n  bind:1: thread_x of 32\n"
                           "  bind:2: all threads together\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "is not in\n" << text;
  }
}

TEST(TreeText, EachKernelHasTheStatementsThatItRuns) {
  EXPECT_EQ(tree_of("def f(float(M) A) -> (b, c) { b +=! A(m) c(m) = A(m) * b }", {{"M", 40000}}, {.strict = true}),
            R"(kernel f_0: grid (1, 1, 1), block (1, 1, 1)
domain
  S0_init[]
  S0[m] : 0 <= m <= 39999
schedule
  bind:0
    promote:b
      sequence
        S0_init
        S0
          band permutable coincident(0)
            S0: [m]
promotions
  b: b at [] -> b[] extents [] copy_out in_registers
bindings
  bind:0: the first thread

kernel f_1: grid (157, 1, 1), block (256, 1, 1)
domain
  S1[m] : 0 <= m <= 39999
schedule
  band permutable coincident(1)
    S1: [m]
)");
}

}  // namespace
}  // namespace tc::testing
