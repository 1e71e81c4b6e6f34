#include <gtest/gtest.h>

#include <memory>

#include "tests/gpu/simulated.h"
#include "tests/random/constants.h"
#include "tests/random/differential.h"
#include "tests/random/random.h"

/// Random programs under random options: oracle = simulator, which finds no race, no divergence, no access outside.
namespace tc::testing {
namespace {

options::MappingOptions random_mapping(uint64_t seed) {
  Random random(seed);
  options::MappingOptions options;
  if (random.chance(40)) return options;
  if (random.chance(60)) options.outer_schedule_options.fusion = static_cast<options::Fusion>(random.below(3));
  options.outer_schedule_options.allow_skewing = random.chance(20);
  static constexpr int64_t kTiles[] = {1, 2, 3, 4, 7, 8, 16, 32};
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.tile.push_back(kTiles[random.below(8)]);
  }
  static constexpr int64_t kThreads[] = {1, 2, 3, 5, 8, 10};
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.map_to_threads.push_back(kThreads[random.below(6)]);
  }
  static constexpr int64_t kBlocks[] = {1, 2, 3, 7, 100};
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.map_to_blocks.push_back(kBlocks[random.below(5)]);
  }
  if (random.chance(30)) options.use_private_memory = random.chance(50);
  if (random.chance(60)) options.use_shared_memory = random.chance(80);
  if (random.chance(20)) options.shared_depth = static_cast<int64_t>(random.below(5));
  if (random.chance(20)) options.unroll = int64_t{1} << random.below(7);
  if (random.chance(20)) options.max_shared_memory = int64_t{256} << random.below(6);
  options.strict = random.chance(30);
  if (random.chance(40)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.register_tile.push_back(1 + random.below(3));
  }
  if (random.chance(30)) options.copy_stages = random.range(1, 4);
  if (random.chance(30)) options.split_reduction = random.range(1, 4);
  if (random.chance(30)) options.atomic_reduction = random.chance(70);
  if (random.chance(30)) options.unroll = random.range(1, 9);
  if (random.chance(10)) options.match_library_calls = random.chance(50);
  if (random.chance(10)) options.unroll_copy_shared = random.chance(50);
  if (random.chance(15)) options.private_depth = random.range(0, 7);
  if (random.chance(20)) options.intra_tile_schedule_options.fusion = static_cast<options::Fusion>(random.below(3));
  return options;
}

/// Without what is refused where no kernel can follow it.
options::MappingOptions without_sizes(options::MappingOptions options) {
  options.register_tile = {};
  options.split_reduction = options.unroll = options.private_depth = std::nullopt;
  options.atomic_reduction = std::nullopt;
  return options;
}

/// Half of them so small that little work is worth parts and launches of its own.
gpu::Device random_device(uint64_t seed) {
  gpu::Device device;
  if (seed % 2 == 0) return device;
  device.processors = 1 + static_cast<int64_t>(seed / 2 % 3);
  device.instances_of_launch = 1 + static_cast<int64_t>(seed % 64);
  return device;
}

Backend simulator(uint64_t seed) {
  return {[seed](const RandomProgram&, const ir::Program& program) -> Result<Runner> {
    const options::MappingOptions options = random_mapping(seed);
    Result<gpu::Mapping> mapping = mapped(program, options, random_device(seed));
    if (!mapping) mapping = mapped(program, without_sizes(options), random_device(seed));
    if (!mapping) return tl::unexpected(mapping.error());
    auto kept = std::make_shared<const gpu::Mapping>(*std::move(mapping));
    auto source = std::make_shared<const ir::Program>(program);
    return [kept, source, seed](const interp::Environment& data) { return simulated(*source, *kept, data, seed); };
  }};
}

TEST(GpuRandom, TheSimulatorAgreesWithTheOracle) {
  const char* count = std::getenv("TC_RANDOM_PROGRAMS");
  const uint64_t programs = count ? std::stoull(count) : 60;
  const char* first = std::getenv("TC_RANDOM_SEED");
  const uint64_t begin = first ? std::stoull(first) : 1;
  for (uint64_t seed = begin; seed < begin + programs; ++seed) {
    const Outcome outcome = run_one(seed, simulator(seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

TEST(GpuRandom, TheSimulatorWrapsConstantsAsTheOracleDoes) {
  for (const RandomProgram& program : constant_programs()) {
    const Outcome outcome = run_program(program, simulator(program.seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

/// Steps of reductions that are distributed have fewer nodes; partial results that grow in memory are no single stores.
TEST(GpuRandom, WhatWasWrongOnceStaysRight) {
  for (const uint64_t seed : {50'016, 51'489, 51'271}) {
    const Outcome outcome = run_one(seed, simulator(seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  }
}

}  // namespace
}  // namespace tc::testing
