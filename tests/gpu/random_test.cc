#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/gpu/simulator_backend.h"
#include "tests/random/constants.h"
#include "tests/random/differential.h"

/// Random programs under random options and schedules: oracle = simulator, which finds no race, no divergence, no
/// access outside. benchmarks/gpu/simulator_differential runs more of them.
namespace tc::testing {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

TEST(GpuRandom, TheSimulatorAgreesWithTheOracle) {
  const uint64_t programs = from_environment("TC_RANDOM_PROGRAMS", 200), begin = from_environment("TC_RANDOM_SEED", 1);
  for (uint64_t seed = begin; seed < begin + programs; ++seed) {
    const Outcome outcome = run_one(seed, simulator_backend(seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

TEST(GpuRandom, TheSimulatorAgreesOnStridedTensors) {
  const uint64_t programs = from_environment("TC_RANDOM_PROGRAMS", 100), begin = from_environment("TC_RANDOM_SEED", 1);
  for (uint64_t seed = begin; seed < begin + programs; ++seed) {
    const Outcome outcome = run_one(seed, strided_backend(seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

TEST(GpuRandom, TheSimulatorAgreesUnderRandomSchedules) {
  const uint64_t programs = from_environment("TC_RANDOM_PROGRAMS", 60), begin = from_environment("TC_RANDOM_SEED", 1);
  for (uint64_t seed = begin; seed < begin + programs; ++seed) {
    const Outcome outcome = run_one(seed, schedule_backend(seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

TEST(GpuRandom, TheSimulatorWrapsConstantsAsTheOracleDoes) {
  for (const RandomProgram& program : constant_programs()) {
    const Outcome outcome = run_program(program, simulator_backend(program.seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

/// Steps of reductions that are distributed have fewer nodes; partial results that grow in memory are no single stores.
TEST(GpuRandom, WhatWasWrongOnceStaysRight) {
  for (const uint64_t seed : {50'016, 51'489, 51'271}) {
    const Outcome outcome = run_one(seed, simulator_backend(seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

}  // namespace
}  // namespace tc::testing
