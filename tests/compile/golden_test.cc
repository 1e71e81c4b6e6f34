#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include "tc/options/presets.h"
#include "tests/compile/programs.h"

/// What travels, stage by stage: tests/golden/PROGRAM/STAGE.txt. scripts/update_golden writes them anew.
namespace tc::compile {
namespace {

struct Golden {
  const char* name;  ///< of examples/NAME.tc
  std::map<std::string, int64_t> sizes;
  std::map<std::string, int64_t> scalars;
  bool gpu = false;  ///< its stages for a GPU too, under the mapping options "naive"
};

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> kGoldens = {
      {"mv", {{"M", 128}, {"K", 64}}, {}},
      {"transposed_matmul", {{"M", 128}, {"N", 96}, {"K", 64}}, {}},
      {"sgemm", {{"N", 100}, {"M", 50}, {"K", 70}}, {}, true},
      {"fcrelu", {{"B", 32}, {"I", 64}, {"O", 48}}, {}},
      {"conv2d", {{"B", 2}, {"IP", 8}, {"H", 16}, {"W", 18}, {"OP", 16}, {"KH", 3}, {"KW", 3}}, {}, true},
      {"sconv2d", {{"N", 2}, {"C", 4}, {"H", 17}, {"W", 17}, {"F", 8}, {"KH", 3}, {"KW", 3}}, {{"sh", 2}, {"sw", 2}}},
      {"maxpool2x2", {{"B", 2}, {"C", 3}, {"H", 16}, {"W", 32}}, {}, true},
      {"gather", {{"N", 100}, {"A", 20}, {"B", 30}}, {}, true},
      {"softmax", {{"N", 64}, {"D", 100}}, {}},
      {"layernorm", {{"N", 64}, {"D", 100}}, {}},
      {"mlp3", {{"B", 32}, {"N", 64}, {"O", 48}, {"P", 40}, {"Q", 10}}, {}},
      {"padded_conv_copy", {{"H", 100}, {"KH", 3}}, {}},
  };
  return kGoldens;
}

struct Stage {
  const char* file;
  const char* pass;
};
constexpr Stage kStages[] = {{"ast", "analyse"}, {"program", "program"}, {"schedule", "schedule"}, {"stmt", "stmt"}};
constexpr Stage kGpuStages[] = {{"tile", "tile"}, {"cuda", "cuda"}};

void expect_recorded(const Golden& golden, const Settings& settings, std::span<const Stage> stages) {
  const std::filesystem::path root = TC_SOURCE_DIR;
  const std::string file = std::string(golden.name) + ".tc";
  Compilation compilation = testing::compilation_of(testing::read_whole(root / "examples" / file), file);
  const Result<void> done = run_passes(settings, compilation, stages.back().pass);
  ASSERT_TRUE(done) << done.error().to_string();
  const std::filesystem::path folder = root / "tests" / "golden" / golden.name;
  const bool update = std::getenv("TC_UPDATE_GOLDEN") != nullptr;
  for (const Stage& stage : stages) {
    const Result<std::string> text = dump(settings, compilation, stage.pass);
    ASSERT_TRUE(text) << text.error().to_string();
    const std::filesystem::path path = folder / (std::string(stage.file) + ".txt");
    if (update) {
      std::filesystem::create_directories(folder);
      std::ofstream(path, std::ios::binary) << *text;
    }
    ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; scripts/update_golden writes it";
    EXPECT_EQ(testing::read_whole(path), *text) << path << " is not what the pass '" << stage.pass << "' makes";
  }
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, EveryStageIsAsRecorded) {
  Settings settings = testing::settings_for(GetParam().sizes, GetParam().scalars);
  expect_recorded(GetParam(), settings, kStages);
  if (!GetParam().gpu) return;
  settings.backend = Backend::kCuda;
  settings.mapping = options::naive();
  expect_recorded(GetParam(), settings, kGpuStages);
}

INSTANTIATE_TEST_SUITE_P(Programs, GoldenTest, ::testing::ValuesIn(goldens()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Golden, NoFolderIsWithoutItsProgram) {
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TC_SOURCE_DIR) / "tests/golden")) {
    const std::string name = entry.path().filename().string();
    const auto has_name = [&](const Golden& golden) { return golden.name == name; };
    EXPECT_TRUE(std::ranges::any_of(goldens(), has_name)) << name;
  }
}

}  // namespace
}  // namespace tc::compile
