#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels.h"
#include "tc/cpu/lower_stmt.h"
#include "tc/cpu/machine.h"
#include "tc/cpu/target.h"

namespace tc::cpu {
namespace {

using namespace Halide;
using namespace Halide::Internal;

// --- the lists ----------------------------------------------------------------------------------------------------

/// The names and reasons of a table of the page: rows "| `name` | reason |" below a heading.
std::vector<std::string> rows_below(const std::string& heading) {
  std::ifstream file(std::filesystem::path(TC_SOURCE_DIR) / "docs/design/0010-checks-behind-the-proof.md");
  std::vector<std::string> rows;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) here = line == "## " + heading;
    if (here && line.rfind("| `", 0) == 0) rows.push_back(line);
  }
  return rows;
}

template <typename Step>
std::vector<std::string> rows_of(const std::vector<Step>& steps) {
  std::vector<std::string> rows;
  for (const Step& step : steps) rows.push_back(std::string("| `") + step.name + "` | " + step.reason + " |");
  return rows;
}

TEST(Lowering, ThePageListsTheStepsThatRun) {
  EXPECT_EQ(rows_below("The steps from loops to LLVM"), rows_of(lowering_steps()));
  EXPECT_EQ(rows_below("LLVM's passes"), rows_of(optimisation_passes()));
}

// --- what Halide derives from conditions on memory ----------------------------------------------------------------

/// Runs a kernel on one array of int32.
std::vector<int32_t> run(const Stmt& body, std::vector<int32_t> t) {
  const Kernel kernel{"f", {buffer_argument("t", Int(32), static_cast<int64_t>(t.size()))}, body};
  void* arguments[] = {t.data()};
  EXPECT_EQ(build(kernel)->call(arguments), 0);
  return t;
}
Expr t(Expr index) { return load(Int(32), "t", index); }

TEST(Lowering, AConditionIsNotTakenForTrueBehindAStoreThatChangesIt) {
  const Stmt body = IfThenElse::make(t(0) < 5, block({store("t", 10, 0), store("t", select(t(0) < 5, 1, 2), 1)}),
                                     block({store("t", 0, 0), store("t", select(t(0) < 5, 3, 4), 1)}));
  EXPECT_EQ(run(body, {1, 0}), (std::vector<int32_t>{10, 2}));
  EXPECT_EQ(run(body, {7, 0}), (std::vector<int32_t>{0, 3}));
}

TEST(Lowering, ALoopEndsWhereItsConditionChanges) {
  const Stmt body = loop("k", 10, IfThenElse::make(t(0) < variable("k") * 2, store("t", t(0) + 5, 0)));
  int32_t expected = 0;
  for (int k = 0; k < 10; ++k) expected = expected < 2 * k ? expected + 5 : expected;
  EXPECT_EQ(run(body, {0}), (std::vector<int32_t>{expected}));
}

TEST(Lowering, AnExtremumSeesWhatTheLoopStores) {
  const Stmt least = loop("k", 10, store("t", min(t(0), variable("k")), 0));
  EXPECT_EQ(run(least, {100}), (std::vector<int32_t>{0}));
  const Stmt greatest = loop("k", 10, store("t", max(t(0), 5 - variable("k")), 0));
  EXPECT_EQ(run(greatest, {-100}), (std::vector<int32_t>{5}));
}

TEST(Lowering, ASubscriptThatMemoryBoundsFollowsTheLoop) {
  // t[min(k, t[0])] = 9 while t[0] grows.
  const Stmt body = loop("k", 6, block({store("t", 9, 1 + min(variable("k"), t(0))), store("t", t(0) + 1, 0)}));
  std::vector<int32_t> expected(9, 0);
  for (int k = 0; k < 6; ++k) expected[1 + std::min(k, expected[0])] = 9, ++expected[0];
  EXPECT_EQ(run(body, std::vector<int32_t>(9, 0)), expected);
}

}  // namespace
}  // namespace tc::cpu
