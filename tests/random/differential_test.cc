#include "tests/random/differential.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/random/seeds.h"

namespace tc::testing {
namespace {

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

void expect_agreement(int64_t begin, int64_t count, const std::function<Backend(uint64_t seed)>& backend) {
  const Summary summary = run_seeds(
      begin, count, [&](uint64_t seed) { return run_one(seed, backend(seed)); },
      [&](uint64_t seed) { return generate_program(seed).describe() + backend(seed).description; });
  for (const std::string& report : summary.reports) ADD_FAILURE() << report;
  // Otherwise the comparison would have nothing to say.
  EXPECT_LE(summary.undecidable, summary.elements / 10);
}

// scripts/random_differential sets TC_RANDOM_BEGIN and TC_RANDOM_COUNT for more than the seeds of every run.

TEST(Differential, RandomProgramsOnTheCpu) {
  expect_agreement(from_environment("TC_RANDOM_BEGIN", 0), from_environment("TC_RANDOM_COUNT", 1000),
                   [](uint64_t) { return cpu_backend(); });
}

TEST(Differential, RandomProgramsOnTheCpuUnderRandomOptionsAndStrides) {
  expect_agreement(from_environment("TC_RANDOM_BEGIN", 1000), from_environment("TC_RANDOM_COUNT", 1000),
                   [](uint64_t seed) { return cpu_backend(random_cpu_options(seed), seed); });
}

/// A backend with a fault: the oracle, with the last element of every result changed.
Backend faulty_backend() {
  return {[](const RandomProgram&, const ir::Program& program) -> Result<Runner> {
    return [program](const interp::Environment& data) -> Result<interp::Environment> {
      TC_TRY(results, interp::run(program, data));
      for (auto& [name, value] : results) {
        if (!value.integers.empty()) value.integers.back() ^= 1;
        if (!value.floats.empty()) value.floats.back() = value.floats.back() == 0 ? 1 : value.floats.back() * 1.5 + 1e9;
      }
      return results;
    };
  }};
}

TEST(Differential, NoticesAFault) {
  int noticed = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = run_one(seed, faulty_backend());
    if (outcome.verdict != Outcome::Verdict::kDiffers) continue;
    ++noticed;
    EXPECT_NE(outcome.report.find(fmt::format("# seed {}", seed)), std::string::npos);
    EXPECT_NE(outcome.report.find("the oracle has"), std::string::npos);
  }
  EXPECT_GE(noticed, 18) << "results without elements have no last one";
}

TEST(Differential, TheOracleAgreesWithItself) {
  const Backend oracle = {[](const RandomProgram&, const ir::Program& program) -> Result<Runner> {
    return [program](const interp::Environment& data) { return interp::run(program, data); };
  }};
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Outcome outcome = run_one(seed, oracle);
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

TEST(Differential, ShrinkingKeepsTheVerdict) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RandomProgram source = generate_program(seed);
    const Backend backend = faulty_backend();
    if (run_program(source, backend).verdict != Outcome::Verdict::kDiffers) continue;
    const RandomProgram small = shrink(source, backend, Outcome::Verdict::kDiffers);
    EXPECT_LE(small.statements.size(), source.statements.size());
    EXPECT_EQ(run_program(small, backend).verdict, Outcome::Verdict::kDiffers) << small.describe();
  }
}

}  // namespace
}  // namespace tc::testing
