#include <gtest/gtest.h>

#include <random>

#include "tc/options/mapping.h"

namespace tc::options {
namespace {

std::string error_of(const std::string& text) {
  const Result<MappingOptions> options = mapping_options_from_text(text);
  EXPECT_FALSE(options) << text;
  return options ? std::string() : options.error().to_string();
}

MappingOptions every_field() {
  return {.outer_schedule_options = {.fusion = Fusion::kMin, .allow_skewing = true, .positive_orthant = false},
          .tile = {32, 4},
          .map_to_threads = {32, 8},
          .map_to_blocks = {100, 100, 1},
          .use_private_memory = false,
          .strict = true};
}

TEST(MappingOptionsText, EveryFieldIsWrittenAndRead) {
  EXPECT_EQ(to_text(every_field()), R"(outer_schedule_options {
  fusion_strategy: MIN
  allow_skewing: true
  positive_orthant: false
}
tile: [32, 4]
map_to_threads: [32, 8]
map_to_blocks: [100, 100, 1]
use_private_memory: false
strict: true
)");
  EXPECT_EQ(mapping_options_from_text(to_text(every_field())).value(), every_field());
  EXPECT_EQ(mapping_options_from_text("").value(), MappingOptions{});
}

TEST(MappingOptionsText, RandomOptionsComeBackEqual) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    MappingOptions options;
    if (random() % 2) options.outer_schedule_options.fusion = static_cast<Fusion>(random() % 3);
    options.outer_schedule_options.allow_skewing = random() % 2;
    options.outer_schedule_options.positive_orthant = random() % 2;
    for (uint64_t n = random() % 17; n > 0; --n) options.tile.push_back(static_cast<int64_t>(1 + random() % kMaxTile));
    for (uint64_t n = random() % 4; n > 0; --n)
      options.map_to_threads.push_back(static_cast<int64_t>(1 + random() % 10));
    for (uint64_t n = random() % 4; n > 0; --n) {
      options.map_to_blocks.push_back(static_cast<int64_t>(1 + random() % 65535));
    }
    if (random() % 2) options.use_private_memory = random() % 2;
    options.strict = random() % 2;
    EXPECT_EQ(mapping_options_from_text(to_text(options)).value(), options);
  }
}

TEST(MappingOptionsText, ErrorsNameTheField) {
  EXPECT_EQ(error_of("map_to_thread: 3"),
            "options:1:1: error: there is no option 'map_to_thread' of the mapping; did you mean 'map_to_threads'?\n"
            "    map_to_thread: 3\n"
            "    ^~~~~~~~~~~~~\n");
  EXPECT_EQ(error_of("tile: [4, 0]"),
            "options:1:1: error: 'tile' is 0 at position 1; it must be from 1 to 1073741824\n"
            "    tile: [4, 0]\n"
            "    ^\n");
}

TEST(MappingOptions, BoundsAreChecked) {
  const auto message = [](const MappingOptions& options) {
    const Result<void> valid = validate(options);
    return valid ? std::string() : valid.error().to_string();
  };
  EXPECT_EQ(message(every_field()), "");
  EXPECT_EQ(message({.map_to_threads = {1, 1, 65}}), "error: 'map_to_threads' is 65 in z; it must be from 1 to 64\n");
  EXPECT_EQ(message({.map_to_threads = {32, 64}}),
            "error: 'map_to_threads' asks for 2048 threads in a block; there may be 1024\n");
  EXPECT_EQ(message({.map_to_blocks = {1, 1, 1, 1}}),
            "error: 'map_to_blocks' has 4 values; there are three dimensions\n");
}

TEST(MappingOptions, PrintAsCppReadyToPaste) {
  EXPECT_EQ(to_cpp({}), "tc::options::MappingOptions{}");
  EXPECT_EQ(to_cpp(every_field()), R"(tc::options::MappingOptions{
    .outer_schedule_options = {.fusion = tc::options::Fusion::kMin, .allow_skewing = true, .positive_orthant = false},
    .tile = {32, 4},
    .map_to_threads = {32, 8},
    .map_to_blocks = {100, 100, 1},
    .use_private_memory = false,
    .strict = true,
})");
}

}  // namespace
}  // namespace tc::options
