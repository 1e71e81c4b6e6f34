#include "tc/ir/unproved_checks.h"

#include <gtest/gtest.h>

#include "tc/ir/check_subscripts.h"
#include "tc/ir/print.h"
#include "tests/common/program.h"

namespace tc::ir {
namespace {

using testing::program_from;
using testing::specialised_from;

/// Subscripts that have been tried for all values are proved: a kernel that checks subscripts leaves them as they are.
TEST(UnprovedChecks, C8_SubscriptsThatWereTriedAreNotChecked) {
  const Program p =
      specialised_from("def f(float(N) X) -> (O) { O(i) = X(bitwise_xor(i, 1)) where i in 0:N }", {{"N", 8}});
  EXPECT_EQ(run_time_checks(p).size(), 1u);
  EXPECT_TRUE(unproved_checks(p).empty());
  const auto checked = check_subscripts(p);
  ASSERT_TRUE(checked);
  EXPECT_TRUE(checked->checks.empty());
  EXPECT_EQ(to_text(checked->program), to_text(p));
}

TEST(UnprovedChecks, C8_SubscriptsThatDataChooseAreCheckedBesideThem) {
  const Program p = specialised_from(
      "def f(float(N) X, int32(N) at) -> (O) { O(i) = X(bitwise_xor(i, 1)) + X(at(i)) where i in 0:N }", {{"N", 8}});
  const auto checked = check_subscripts(p);
  ASSERT_TRUE(checked);
  ASSERT_EQ(checked->checks.size(), 1u);
  const std::string text = to_text(checked->program);
  EXPECT_NE(text.find("X(bitwise_xor("), std::string::npos) << text;
  EXPECT_EQ(text.find("max(min(bitwise_xor"), std::string::npos) << text;
}

TEST(UnprovedChecks, C8_MoreValuesThanAreTriedAreChecked) {
  const Program p =
      specialised_from("def f(float(N) X) -> (O) { O(i) = X(bitwise_and(i, 3)) where i in 0:5000000 }", {{"N", 8}});
  const auto checked = check_subscripts(p);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->checks.size(), 1u);
}

TEST(UnprovedChecks, C8_ReportsListWhatARunChecks) {
  const auto report_of = [](const std::string& subscript) {
    return report(program_from("def f(float(N) X, int32(N) at) -> (O) { O(i) = X(" + subscript + ") where i in 0:N }"));
  };
  EXPECT_EQ(report_of("bitwise_xor(i, 1)").find("--check_bounds"), std::string::npos);
  EXPECT_NE(report_of("at(i)").find("with --check_bounds: 0 <= at(i) < N in X(at(i))"), std::string::npos)
      << report_of("at(i)");
}

}  // namespace
}  // namespace tc::ir
