#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/random/differential.h"
#include "tests/random/divisions.h"

namespace tc::testing {
namespace {

TEST(Division, OnTheCpuIsNearestAtTheEndsOfARange) {
  RandomProgram source = divisions();
  source.sizes["N"] = division_size();
  const ir::Program program = specialised_from(source.source(), source.sizes);
  const interp::Environment data = division_data(program);
  for (const int width : {1, 4, 8}) {
    options::CpuOptions options;
    options.vector_width = width;
    const Result<Runner> run = cpu_backend(options).compile(source, program);
    ASSERT_TRUE(run) << run.error().to_string();
    const Result<interp::Environment> results = (*run)(data);
    ASSERT_TRUE(results) << results.error().to_string();
    expect_quotients(program, data, *results);
  }
}

}  // namespace
}  // namespace tc::testing
