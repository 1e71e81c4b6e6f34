#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "tc/api/kernel.h"
#include "tc/api/oracle.h"
#include "tc/api/request.h"
#include "tc/cli/arguments.h"
#include "tc/interp/compare.h"
#include "tests/common/examples.h"
#include "tests/compile/programs.h"

/// Interpreter = CPU for every example, at several sizes and under random options.
namespace tc::compile {
namespace {

using testing::examples;

/// How sizes are chosen. Windows (KH, KW) stay small, so that they fit what they slide over.
enum class Scheme { kOnes, kZeros, kOdd, kVectors };

std::map<std::string, int64_t> sizes_for(const ir::Program& program, Scheme scheme, std::mt19937_64& random) {
  constexpr int64_t kOdd[] = {3, 5, 7, 9, 11, 13, 17};
  constexpr int64_t kVectors[] = {4, 8, 12, 16, 20, 33};
  std::map<std::string, int64_t> sizes;
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
        sizes[name] = is_window ? 3 : kOdd[random() % 7];
        break;
      case Scheme::kVectors:
        sizes[name] = is_window ? 2 : kVectors[random() % 6];
        break;
    }
  }
  // The oracle walks every instance, and there may be as many as the product of all sizes.
  constexpr double kMostInstances = 2e6;
  auto instances = [&sizes] {
    return std::accumulate(sizes.begin(), sizes.end(), 1.0,
                           [](double all, const auto& size) { return all * static_cast<double>(size.second); });
  };
  while (instances() > kMostInstances) {
    auto largest =
        std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    largest->second = (largest->second + 1) / 2;
  }
  return sizes;
}

options::CpuOptions random_options(std::mt19937_64& random) {
  options::CpuOptions options;
  if (random() % 2) options.scheduler.fusion = static_cast<options::Fusion>(random() % 3);
  options.scheduler.positive_orthant = random() % 4 != 0;
  for (uint64_t tiles = random() % 4; tiles > 0; --tiles) options.tile.push_back(int64_t{1} << random() % 6);
  if (random() % 2) options.vector_width = 1 << random() % 5;
  if (random() % 2) options.unroll = static_cast<int>(1 + random() % 4);
  if (random() % 2) options.parallel = random() % 2;
  if (random() % 2) options.promote = random() % 2;
  options.strict = random() % 4 == 0;
  options.check_bounds = random() % 4 == 0;
  return options;
}

/// One compilation run on random data and compared; what is wrong, or nothing.
std::string difference(const Settings& settings, const Compilation& compilation, uint64_t seed) {
  const ir::Program& specialised = *compilation.specialised;
  const api::CompiledKernel kernel = api::kernel_of(settings, compilation);
  api::Request request;
  for (const auto& [name, value] : settings.given.scalars) request.scalars.emplace(name, value);
  for (const ir::Scalar& scalar : specialised.scalars)
    request.scalars.emplace(scalar.name, 0.5 * scalar.type.is_float());
  Result<cli::Arguments> arguments =
      cli::make_arguments(specialised, kernel.signature(), {kernel.inputs(), kernel.outputs()}, {}, request, seed);
  if (!arguments) return arguments.error().to_string();
  interp::Environment data;
  for (size_t i = 0; i < arguments->inputs.size(); ++i)
    data[arguments->input_names[i]] = api::to_value(arguments->inputs[i]);
  for (size_t o = 0; o < arguments->outputs.size(); ++o) {
    data[arguments->output_names[o]] = api::to_value(arguments->outputs[o]);
  }
  for (size_t s = 0; s < arguments->scalars.size(); ++s) {
    const ir::Scalar* scalar = specialised.find_scalar(arguments->scalar_names[s]);
    if (!scalar || scalar->specialised) continue;
    const ScalarType type = ir::from_halide(scalar->type);
    data[scalar->name] = api::scalar_value(type, *api::scalar_bits(arguments->scalars[s], type));
  }
  if (const auto ran = kernel.run(arguments->inputs, arguments->outputs, arguments->scalars); !ran) {
    return ran.error().to_string();
  }
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(specialised, data);
  if (!oracle) return oracle.error().to_string();
  interp::Environment results;
  for (size_t o = 0; o < arguments->outputs.size(); ++o) {
    results[arguments->output_names[o]] = api::to_value(arguments->outputs[o]);
  }
  std::string wrong;
  for (const interp::Comparison& comparison : interp::compare(results, *oracle)) {
    if (!comparison.agrees) wrong += comparison.sentence + "\n";
  }
  return wrong;
}

class ExampleTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(ExampleTest, TheCpuAgreesWithTheInterpreter) {
  std::mt19937_64 random(std::hash<std::string>()(GetParam().filename().string()));
  const std::string text = testing::read_whole(GetParam());
  int compared = 0;
  for (const Scheme scheme : {Scheme::kOdd, Scheme::kVectors, Scheme::kOnes, Scheme::kZeros, Scheme::kOdd}) {
    Compilation compilation = testing::compilation_of(text, GetParam().filename().string());
    Settings settings;
    ASSERT_TRUE(run_passes(settings, compilation, "program"));
    settings.given.sizes = sizes_for(*compilation.program, scheme, random);
    for (const ir::Scalar& scalar : compilation.program->scalars) {
      if (scalar.specialised) settings.given.scalars[scalar.name] = scheme == Scheme::kOnes ? 1 : 2;
    }
    // Sizes that break a precondition (a window larger than its tensor) are none of this test.
    if (!run_passes(settings, compilation, "specialise")) continue;
    for (int round = 0; round < 3; ++round) {
      Compilation variant = compilation;
      settings.options = round == 0 ? options::CpuOptions() : random_options(random);
      settings.verify = true;
      std::string sizes;
      for (const auto& [name, value] : settings.given.sizes) sizes += fmt::format("{}={},", name, value);
      SCOPED_TRACE(fmt::format("--sizes={} with options\n{}", sizes, options::to_text(settings.options)));
      const Result<void> done = run_passes(settings, variant);
      ASSERT_TRUE(done) << done.error().to_string();
      EXPECT_EQ(difference(settings, variant, static_cast<uint64_t>(round)), "");
      ++compared;
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Examples, ExampleTest, ::testing::ValuesIn(examples()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace tc::compile
