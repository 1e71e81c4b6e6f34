#include "tests/random/constants.h"

#include <gtest/gtest.h>

#include "tests/random/differential.h"

namespace tc::testing {
namespace {

TEST(Constants, TheCpuWrapsThemAsTheOracleDoes) {
  for (const RandomProgram& program : constant_programs()) {
    const Outcome outcome = run_program(program, cpu_backend());
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

}  // namespace
}  // namespace tc::testing
