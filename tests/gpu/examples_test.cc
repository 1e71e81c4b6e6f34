#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/common/examples.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Oracle = simulator for every example, at several sizes, by default and under random options.
namespace tc::testing {
namespace {

enum class Scheme { kOnes, kZeros, kOdd, kWarps };

/// Windows (KH, KW) stay small, so that they fit what they slide over.
std::map<std::string, int64_t> sizes_for(const ir::Program& program, Scheme scheme, std::mt19937_64& random) {
  constexpr int64_t kOdd[] = {3, 5, 7, 9, 11, 13};
  constexpr int64_t kWarps[] = {4, 8, 16, 33, 40};
  std::map<std::string, int64_t> sizes;
  int large = 0;
  for (const std::string& name : program.sizes) {
    const bool is_window = name.starts_with("K") && name.size() == 2;
    switch (scheme) {
      case Scheme::kOnes:
        sizes[name] = 1;
        break;
      case Scheme::kZeros:
        sizes[name] = random() % 2 ? 0 : 3;
        break;
      case Scheme::kOdd:
        sizes[name] = is_window ? 3 : kOdd[random() % 6];
        break;
      case Scheme::kWarps:
        sizes[name] = is_window ? 2 : large++ < 3 ? kWarps[random() % 5] : 4;
        break;
    }
  }
  return sizes;
}

options::MappingOptions random_options(std::mt19937_64& random) {
  options::MappingOptions options;
  if (random() % 2) options.outer_schedule_options.fusion = static_cast<options::Fusion>(random() % 3);
  for (uint64_t n = random() % 4; n > 0; --n) options.tile.push_back(int64_t{1} << random() % 6);
  constexpr int64_t kThreads[] = {1, 2, 3, 5, 8, 10};
  for (uint64_t n = random() % 4; n > 0; --n) options.map_to_threads.push_back(kThreads[random() % 6]);
  constexpr int64_t kBlocks[] = {1, 2, 3, 7, 100};
  for (uint64_t n = random() % 4; n > 0; --n) options.map_to_blocks.push_back(kBlocks[random() % 5]);
  if (random() % 2) options.use_private_memory = random() % 2;
  if (random() % 2) options.use_shared_memory = random() % 3 > 0;
  if (random() % 4 == 0) options.shared_depth = static_cast<int64_t>(random() % 6);
  if (random() % 4 == 0) options.unroll_copy_shared = true;
  if (random() % 3 == 0) options.unroll = int64_t{1} << random() % 7;
  if (random() % 4 == 0) options.max_shared_memory = int64_t{512} << random() % 5;
  return options;
}

std::string describe(const std::map<std::string, int64_t>& sizes, const options::MappingOptions& options) {
  std::string text;
  for (const auto& [name, value] : sizes) text += fmt::format("{}={} ", name, value);
  const auto& fusion = options.outer_schedule_options.fusion;
  return text + fmt::format("fusion {}, tile {}, threads {}, blocks {}, registers {}, shared {} of {}",
                            fusion ? static_cast<int>(*fusion) : -1, fmt::join(options.tile, ","),
                            fmt::join(options.map_to_threads, ","), fmt::join(options.map_to_blocks, ","),
                            options.use_private_memory.value_or(true),
                            options.use_shared_memory ? static_cast<int>(*options.use_shared_memory) : -1,
                            options.max_shared_memory.value_or(-1));
}

class GpuExample : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(GpuExample, TheSimulatorAgreesWithTheOracle) {
  std::mt19937_64 random(std::hash<std::string>()(GetParam().filename().string()));
  const std::string text = text_of(GetParam());
  const ir::Program symbolic = program_from(text);
  int compared = 0;
  for (const Scheme scheme : {Scheme::kOdd, Scheme::kWarps, Scheme::kOnes, Scheme::kZeros, Scheme::kOdd}) {
    const std::map<std::string, int64_t> sizes = sizes_for(symbolic, scheme, random);
    std::map<std::string, int64_t> scalars;
    for (const ir::Scalar& scalar : symbolic.scalars) {
      if (scalar.specialised) scalars[scalar.name] = scheme == Scheme::kOnes ? 1 : 2;
    }
    // Sizes that break a precondition (a window larger than its tensor) are none of this test.
    const Result<ir::Program> program = try_specialised(text, sizes, scalars);
    if (!program) continue;
    for (int round = 0; round < 3; ++round) {
      const options::MappingOptions options = round == 0 ? options::MappingOptions() : random_options(random);
      SCOPED_TRACE(describe(sizes, options));
      const std::string wrong = difference(*program, options, static_cast<uint64_t>(round + 1));
      ASSERT_EQ(wrong, "");
      ++compared;
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Examples, GpuExample, ::testing::ValuesIn(examples()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace tc::testing
