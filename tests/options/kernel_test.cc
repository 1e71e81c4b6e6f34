#include <gtest/gtest.h>

#include <random>

#include "tc/options/mapping.h"
#include "tc/options/presets.h"

namespace tc::options {
namespace {

std::string error_of(const std::string& text) {
  const Result<MappingOptions> options = mapping_options_from_text(text);
  EXPECT_FALSE(options) << text;
  return options ? std::string() : options.error().to_string();
}

TEST(KernelOptionsText, EveryFieldIsWrittenAndRead) {
  const MappingOptions options = {.copy_stages = 2,
                                  .kernel = {{.writes = "H",
                                              .occurrence = 2,
                                              .tile = {128, 64, 32},
                                              .register_tile = {8, 4, 1},
                                              .map_to_threads = {16, 16},
                                              .map_to_blocks = {4},
                                              .copy_stages = 3,
                                              .cluster = {2, 1},
                                              .store_boxes = true,
                                              .persistent = false,
                                              .tensor_cores = false,
                                              .chain = true,
                                              .split_reduction = 4,
                                              .split_results = {90, 7},
                                              .unroll = 8,
                                              .unroll_copy_shared = true,
                                              .use_shared_memory = true,
                                              .use_private_memory = false,
                                              .max_shared_memory = 0,
                                              .shared_depth = 1,
                                              .private_depth = 2,
                                              .match_library_calls = true},
                                             {.writes = "O"}}};
  EXPECT_EQ(to_text(options), R"(copy_stages: 2
kernel {
  writes: "H"
  occurrence: 2
  tile: [128, 64, 32]
  register_tile: [8, 4, 1]
  map_to_threads: [16, 16]
  map_to_blocks: [4]
  copy_stages: 3
  tensor_cores: false
  split_reduction: 4
  unroll: 8
  unroll_copy_shared: true
  use_shared_memory: true
  use_private_memory: false
  max_shared_memory: 0
  shared_depth: 1
  private_depth: 2
  match_library_calls: true
  cluster: [2, 1]
  store_boxes: true
  persistent: false
  chain: true
  split_results: [90, 7]
}
kernel {
  writes: "O"
}
)");
  EXPECT_EQ(mapping_options_from_text(to_text(options)).value(), options);
}

TEST(KernelOptionsText, MayStandOnOneLine) {
  const auto options = mapping_options_from_text(R"(kernel { writes: "H" tile: [128, 64, 32] copy_stages: 3 })");
  ASSERT_TRUE(options) << options.error().to_string();
  const MappingOptions expected = {.kernel = {{.writes = "H", .tile = {128, 64, 32}, .copy_stages = 3}}};
  EXPECT_EQ(*options, expected);
}

TEST(KernelOptionsText, RandomOptionsComeBackEqual) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    MappingOptions options;
    if (random() % 2) options.tile = {32};
    for (int k = static_cast<int>(random() % 4); k > 0; --k) {
      KernelOptions kernel{.writes = "T" + std::to_string(k)};
      if (random() % 2) kernel.occurrence = 1 + static_cast<int64_t>(random() % 5);
      if (random() % 2) kernel.tile = {1 + static_cast<int64_t>(random() % 64), 8};
      if (random() % 2) kernel.copy_stages = 1 + static_cast<int64_t>(random() % 8);
      if (random() % 2) kernel.tensor_cores = random() % 2;
      if (random() % 2) kernel.split_reduction = 1 + static_cast<int64_t>(random() % 9);
      options.kernel.push_back(std::move(kernel));
    }
    EXPECT_EQ(mapping_options_from_text(to_text(options)).value(), options);
  }
}

TEST(KernelOptionsText, OptionsOfADefAreWrittenAsBefore) {
  EXPECT_EQ(to_text(naive()).find("kernel"), std::string::npos);
  EXPECT_EQ(to_text(MappingOptions{}), "");
}

TEST(KernelOptionsText, FaultsAreNamedWithTheirPlace) {
  EXPECT_EQ(error_of("kernel { writes: \"H\" tile: [8, 0] }"),
            "options:1:22: error: 'tile' is 0 at position 1; it must be from 1 to 1073741824\n"
            "    kernel { writes: \"H\" tile: [8, 0] }\n"
            "                         ^~~~\n");
  EXPECT_NE(error_of("tile: [8]\nkernel { tile: [8] }").find("options:2:1: error: 'kernel' has no 'writes'"),
            std::string::npos);
  EXPECT_NE(error_of("kernel { writes: \"H\" }\nkernel { writes: \"H\" occurrence: 2 }")
                .find("options:2:1: error: two of 'kernel' are about 'H' occurrence 2"),
            std::string::npos);
  EXPECT_NE(error_of("kernel { writes: \"H\" occurrence: 0 }").find("'occurrence' is 0; it must be from 1 to 1000000"),
            std::string::npos);
  EXPECT_NE(error_of("kernel { writes: \"a b\" }").find("'writes' of 'kernel' is no name of a tensor"),
            std::string::npos);
  EXPECT_NE(error_of("kernel { writes: \"H\" tiles: 3 }")
                .find("there is no option 'tiles' of a kernel; did you mean 'tile'?"),
            std::string::npos);
  EXPECT_NE(error_of("kernel { writes: \"H\" strict: true }")
                .find("there is no option 'strict' of a kernel; there are writes"),
            std::string::npos);
}

TEST(KernelOptions, ComeBeforeThoseOfTheDef) {
  const MappingOptions def = {.tile = {32, 32}, .copy_stages = 2, .strict = true, .kernel = {{.writes = "O"}}};
  const MappingOptions merged = overlaid(def, {.writes = "H", .tile = {64}, .tensor_cores = false});
  const MappingOptions expected = {.tile = {64}, .copy_stages = 2, .tensor_cores = false, .strict = true};
  EXPECT_EQ(merged, expected);
}

TEST(KernelOptions, AndThoseOfTheDefMakeAWhole) {
  const MappingOptions options = {.tile = {64}, .use_readonly_cache = false, .copy_stages = 2, .strict = true};
  const MappingOptions of_def = {.use_readonly_cache = false, .strict = true};
  EXPECT_EQ(def_part_of(options), of_def);
  EXPECT_EQ(overlaid(def_part_of(options), kernel_part_of(options)), options);
}

TEST(KernelOptions, AreWrittenAsCpp) {
  EXPECT_EQ(to_cpp(MappingOptions{.tile = {8}, .kernel = {{.writes = "H", .tile = {64}}}}),
            "tc::options::MappingOptions{\n"
            "    .tile = {8},\n"
            "    .kernel = {\n"
            "        {\n"
            "            .writes = \"H\",\n"
            "            .tile = {64},\n"
            "        },\n"
            "    },\n"
            "}");
}

}  // namespace
}  // namespace tc::options
