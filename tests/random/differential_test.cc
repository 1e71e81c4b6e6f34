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

/// LLVM 14 ended the process over this one; see Emit::copysign().
TEST(Differential, SignsMayBeNarrowed) {
  RandomProgram program;
  program.parameters = {"float64(N) A", "float32(N) B", "float64(M) C"};
  program.results = {{"T", "T"}};
  program.targets = {"T"};
  program.statements = {"T(i) = float32(copysign(B(i), C(0) * A(i)))"};
  program.sizes = {{"N", 33}, {"M", 1}};
  const Outcome outcome = run_program(program, cpu_backend());
  EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
}

/// Nine lanes, of which the last is one behind the vectors of eight; see leaves_one_lane().
TEST(Differential, ASingleLaneMayBeLeftUnderACondition) {
  RandomProgram program;
  program.parameters = {"int64(N) A", "float32(N) B"};
  program.results = {{"T", "T"}, {"U", "U"}};
  program.targets = {"T", "U"};
  program.statements = {"T(i) = B(i) * 2 where i in 0:9", "U(i) = float32(A(i) + A(i + 2)) + T(i) where i in 0:5"};
  program.sizes = {{"N", 12}};
  const Outcome outcome = run_program(program, cpu_backend());
  EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
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
