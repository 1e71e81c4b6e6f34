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

MappingOptions every_field() {
  return {.outer_schedule_options = {.fusion = Fusion::kMin, .allow_skewing = true, .positive_orthant = false},
          .intra_tile_schedule_options = {.fusion = Fusion::kMax},
          .fix_parameters_before_scheduling = true,
          .tile = {32, 4},
          .unroll = 16,
          .match_library_calls = false,
          .map_to_threads = {32, 8},
          .map_to_blocks = {100, 100, 1},
          .use_shared_memory = true,
          .use_private_memory = false,
          .unroll_copy_shared = true,
          .max_shared_memory = 0,
          .use_readonly_cache = false,
          .shared_depth = 0,
          .private_depth = 3,
          .register_tile = {8, 4},
          .copy_stages = 3,
          .cluster = {1, 2},
          .store_boxes = true,
          .persistent = false,
          .ping_pong = true,
          .split_reduction = 2,
          .split_results = {100, 7},
          .max_gathered_memory = 4096,
          .atomic_reduction = true,
          .copy_operands = true,
          .chain = false,
          .strict = true,
          .tf32 = true};
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
intra_tile_schedule_options {
  fusion_strategy: MAX
}
fix_parameters_before_scheduling: true
unroll: 16
match_library_calls: false
use_shared_memory: true
unroll_copy_shared: true
max_shared_memory: 0
use_readonly_cache: false
shared_depth: 0
register_tile: [8, 4]
copy_stages: 3
split_reduction: 2
private_depth: 3
max_gathered_memory: 4096
atomic_reduction: true
cluster: [1, 2]
copy_operands: true
tf32: true
store_boxes: true
persistent: false
chain: false
ping_pong: true
split_results: [100, 7]
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
    if (random() % 2) options.use_shared_memory = random() % 2;
    if (random() % 2) options.unroll = static_cast<int64_t>(1 + random() % kMaxMappingUnroll);
    if (random() % 2) options.max_shared_memory = static_cast<int64_t>(random() % (kMaxSharedMemory + 1));
    if (random() % 2) options.intra_tile_schedule_options.fusion = static_cast<Fusion>(random() % 3);
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
  EXPECT_EQ(error_of("outer_schedule_options { }\nintra_tile_schedule_options { fusion_strategy: 9 }"),
            "options:2:31: error: 'fusion_strategy' is 9; it must be MAX, PRESERVE_3_COINCIDENT or MIN\n"
            "    intra_tile_schedule_options { fusion_strategy: 9 }\n"
            "                                  ^~~~~~~~~~~~~~~\n");
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
  EXPECT_EQ(message({.unroll = 0}), "error: 'unroll' is 0; it must be from 1 to 4096\n");
  EXPECT_EQ(message({.max_shared_memory = -1, .shared_depth = 65, .private_depth = -1}),
            "error: 'max_shared_memory' is -1; it must be from 0 to 1048576\n"
            "error: 'shared_depth' is 65; it must be from 0 to 64\n"
            "error: 'private_depth' is -1; it must be from 0 to 64\n");
  EXPECT_EQ(message({.register_tile = {8, 65},
                     .copy_stages = 9,
                     .cluster = {2, 9},
                     .split_reduction = 0,
                     .split_results = {0},
                     .max_gathered_memory = -1}),
            "error: 'register_tile' is 65 at position 1; it must be from 1 to 64\n"
            "error: 'copy_stages' is 9; it must be from 1 to 8\n"
            "error: 'cluster' is 9 at position 1; it must be from 1 to 8\n"
            "error: 'split_reduction' is 0; it must be from 1 to 65535\n"
            "error: 'split_results' is 0 at position 0; it must be from 1 to 1099511627776\n"
            "error: 'max_gathered_memory' is -1; it must be from 0 to 1099511627776\n");
}

TEST(MappingOptions, PrintAsCppReadyToPaste) {
  EXPECT_EQ(to_cpp({}), "tc::options::MappingOptions{}");
  EXPECT_EQ(to_cpp(every_field()), R"(tc::options::MappingOptions{
    .outer_schedule_options = {.fusion = tc::options::Fusion::kMin, .allow_skewing = true, .positive_orthant = false},
    .intra_tile_schedule_options = {.fusion = tc::options::Fusion::kMax},
    .fix_parameters_before_scheduling = true,
    .tile = {32, 4},
    .unroll = 16,
    .match_library_calls = false,
    .map_to_threads = {32, 8},
    .map_to_blocks = {100, 100, 1},
    .use_shared_memory = true,
    .use_private_memory = false,
    .unroll_copy_shared = true,
    .max_shared_memory = 0,
    .use_readonly_cache = false,
    .shared_depth = 0,
    .private_depth = 3,
    .register_tile = {8, 4},
    .copy_stages = 3,
    .cluster = {1, 2},
    .store_boxes = true,
    .persistent = false,
    .ping_pong = true,
    .split_reduction = 2,
    .split_results = {100, 7},
    .max_gathered_memory = 4096,
    .atomic_reduction = true,
    .copy_operands = true,
    .chain = false,
    .strict = true,
    .tf32 = true,
})");
}

TEST(MappingPresets, EachIsValidAndFoundByName) {
  for (const auto& [name, options] : presets()) {
    EXPECT_TRUE(validate(options)) << name;
    EXPECT_EQ(find_preset(name), options) << name;
    EXPECT_EQ(mapping_options_from_text(to_text(options)).value(), options) << name;
  }
  EXPECT_EQ(find_preset("fast"), std::nullopt);
  EXPECT_EQ(to_cpp(mlp()), R"(tc::options::MappingOptions{
    .outer_schedule_options = {.fusion = tc::options::Fusion::kMax},
    .fix_parameters_before_scheduling = true,
    .tile = {1},
    .map_to_threads = {128},
    .map_to_blocks = {128},
})");
}

TEST(MappingBuilder, SetsEveryField) {
  const MappingOptions built = MappingBuilder()
                                   .outer_fusion(Fusion::kMin)
                                   .outer_skewing(true)
                                   .outer_positive_orthant(false)
                                   .intra_tile_fusion(Fusion::kMax)
                                   .fix_parameters_before_scheduling(true)
                                   .tile({32, 4})
                                   .unroll(16)
                                   .match_library_calls(false)
                                   .map_to_threads({32, 8})
                                   .map_to_blocks({100, 100, 1})
                                   .use_shared_memory(true)
                                   .use_private_memory(false)
                                   .unroll_copy_shared(true)
                                   .max_shared_memory(0)
                                   .use_readonly_cache(false)
                                   .shared_depth(0)
                                   .private_depth(3)
                                   .register_tile({8, 4})
                                   .copy_stages(3)
                                   .cluster({1, 2})
                                   .store_boxes(true)
                                   .persistent(false)
                                   .ping_pong(true)
                                   .split_reduction(2)
                                   .split_results({100, 7})
                                   .max_gathered_memory(4096)
                                   .atomic_reduction(true)
                                   .copy_operands(true)
                                   .chain(false)
                                   .strict(true)
                                   .tf32(true);
  EXPECT_EQ(built, every_field());
  EXPECT_EQ(MappingBuilder().intra_tile_skewing(true).intra_tile_positive_orthant(false).build(),
            (MappingOptions{.intra_tile_schedule_options = {.allow_skewing = true, .positive_orthant = false}}));
}

}  // namespace
}  // namespace tc::options
