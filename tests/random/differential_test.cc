#include "tests/random/differential.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace tc::testing {
namespace {

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

/// Runs the seeds on all cores; gives up after ten failures, for their reports are long.
void run_seeds(int64_t begin, int64_t count, Backend (*backend)(uint64_t seed)) {
  std::atomic<int64_t> next = begin;
  std::atomic<int> failures = 0;
  std::atomic<int64_t> elements = 0;
  std::atomic<int64_t> undecidable = 0;
  std::mutex reports;
  const auto work = [&] {
    for (int64_t seed = next++; seed < begin + count && failures < 10; seed = next++) {
      const Outcome outcome = run_one(seed, backend(seed));
      elements += outcome.elements;
      undecidable += outcome.undecidable;
      if (outcome.verdict == Outcome::Verdict::kAgrees) continue;
      ++failures;
      const std::lock_guard lock(reports);
      ADD_FAILURE() << outcome.report;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned n = 0; n < std::max(1U, std::thread::hardware_concurrency()); ++n) threads.emplace_back(work);
  threads.clear();
  // Otherwise the comparison would have nothing to say.
  EXPECT_LE(undecidable.load(), elements.load() / 10);
}

// scripts/random_differential sets TC_RANDOM_BEGIN and TC_RANDOM_COUNT for more than the seeds of every run.

TEST(Differential, RandomProgramsOnTheCpu) {
  run_seeds(from_environment("TC_RANDOM_BEGIN", 0), from_environment("TC_RANDOM_COUNT", 1000),
            [](uint64_t) { return cpu_backend(); });
}

TEST(Differential, RandomProgramsOnTheCpuUnderRandomOptions) {
  run_seeds(from_environment("TC_RANDOM_BEGIN", 1000), from_environment("TC_RANDOM_COUNT", 1000),
            [](uint64_t seed) { return cpu_backend(random_cpu_options(seed)); });
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
