#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/schedule.h"
#include "tc/support/check.h"
#include "tests/poly/scops.h"

namespace tc::poly::test {
namespace {

TEST(Budget, TooFewOperationsAreAnError) {
  options::Budget budget;
  budget.isl_operations = 100;
  const Result<Scop> scop = from_ir(mlp3(5, 4, 6, 3, 2), std::make_shared<Context>(budget));
  ASSERT_FALSE(scop);
  EXPECT_EQ(scop.error().kind(), ErrorKind::kBudget);
  EXPECT_EQ(scop.error().diagnostics().front().message,
            "this def needs more than the compile budget of 100 isl operations");
}

/// Calls isl until it throws: what a compilation that does not end looks like.
Result<void> work_for_ever(const Context& context) {
  return within_budget(context, [&] {
    for (;;) {
      const isl::set set(context.get(),
                         "{ [i,j] : exists a : i = 7a and 0 <= i < 100 and 3i + 5j <= 200 and j >= -i }");
      (void)set.lexmin().is_empty();
    }
  });
}

TEST(Budget, TooMuchTimeIsAnError) {
  options::Budget budget;
  budget.wall_clock_ms = 20;
  const Context context(budget);
  const auto begin = std::chrono::steady_clock::now();
  const Result<void> result = work_for_ever(context);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kBudget);
  EXPECT_EQ(result.error().diagnostics().front().message, "this def needs more than the compile budget of 20 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Budget, AnotherThreadMayCancel) {
  Context context;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    context.cancel();
  });
  const Result<void> result = work_for_ever(context);
  other.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
  EXPECT_EQ(result.error().diagnostics().front().message, "the compilation was cancelled");
}

TEST(Budget, OtherFailuresOfIslAreOurFault) {
  const Context context;
  EXPECT_THROW(within_budget(context, [&] { return isl::set(context.get(), "{ [i] : nonsense"); }), InternalError);
}

TEST(Budget, CompilesInParallelDoNotMeet) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (const auto& [name, program] : all_programs()) scheduled(program, options::Fusion::kMax);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tc::poly::test
