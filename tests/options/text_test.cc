#include <gtest/gtest.h>

#include <random>

#include "tc/options/options.h"

namespace tc::options {
namespace {

std::string error_of(const std::string& text) {
  const Result<CpuOptions> options = cpu_options_from_text(text);
  EXPECT_FALSE(options) << text;
  return options ? std::string() : options.error().to_string();
}

TEST(OptionsText, EmptyTextIsTheDefault) {
  EXPECT_EQ(cpu_options_from_text("").value(), CpuOptions{});
  EXPECT_EQ(cpu_options_from_text("  # nothing but a comment\n").value(), CpuOptions{});
  EXPECT_EQ(to_text(CpuOptions{}), "");
}

TEST(OptionsText, EveryFieldIsWrittenAndRead) {
  CpuOptions options;
  options.scheduler = {.fusion = Fusion::kPreserve3Coincident, .allow_skewing = true, .positive_orthant = false};
  options.tile = {32, 1, 1 << 30};
  options.vector_width = 8;
  options.unroll = 4;
  options.parallel = false;
  options.promote = true;
  options.strict = true;
  options.check_bounds = true;
  EXPECT_EQ(to_text(options), R"(scheduler {
  fusion_strategy: PRESERVE_3_COINCIDENT
  allow_skewing: true
  positive_orthant: false
}
tile: [32, 1, 1073741824]
vector_width: 8
unroll: 4
parallel: false
promote: true
strict: true
check_bounds: true
)");
  EXPECT_EQ(cpu_options_from_text(to_text(options)).value(), options);
}

TEST(OptionsText, RandomOptionsComeBackEqual) {
  std::mt19937_64 random(1);
  const auto upto = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int i = 0; i < 2000; ++i) {
    CpuOptions options;
    if (upto(2)) options.scheduler.fusion = static_cast<Fusion>(upto(3));
    options.scheduler.allow_skewing = upto(2);
    options.scheduler.positive_orthant = upto(2);
    for (int64_t tiles = upto(kMaxTiles + 1); tiles > 0; --tiles) options.tile.push_back(1 + upto(kMaxTile));
    if (upto(2)) options.vector_width = 1 << upto(7);
    if (upto(2)) options.unroll = static_cast<int>(1 + upto(kMaxUnroll));
    if (upto(2)) options.parallel = upto(2);
    if (upto(2)) options.promote = upto(2);
    options.strict = upto(2);
    options.check_bounds = upto(2);
    const Result<CpuOptions> back = cpu_options_from_text(to_text(options));
    ASSERT_TRUE(back) << back.error().to_string() << to_text(options);
    ASSERT_EQ(*back, options) << to_text(options);
  }
}

TEST(OptionsText, AnUnknownFieldIsNamedWithTheNearest) {
  EXPECT_EQ(error_of("parallel: true\ntiles: 3\n"),
            "options:2:1: error: there is no option 'tiles' of the CPU; did you mean 'tile'?\n"
            "    tiles: 3\n"
            "    ^~~~~\n");
  EXPECT_EQ(error_of("scheduler { skew: 1 }"),
            "options:1:13: error: there is no option 'skew' of the scheduler; there are fusion_strategy, "
            "allow_skewing, positive_orthant\n"
            "    scheduler { skew: 1 }\n"
            "                ^~~~\n");
}

TEST(OptionsText, EveryValueOutOfBoundsIsReported) {
  EXPECT_EQ(error_of("unroll: 65\n\ttile: 0\nvector_width: 3"),
            "options:1:1: error: 'unroll' is 65; it must be from 1 to 64\n"
            "    unroll: 65\n"
            "    ^~~~~~\n"
            "options:2:2: error: 'tile' is 0 at position 0; it must be from 1 to 1073741824\n"
            "    \ttile: 0\n"
            "    \t^~~~\n"
            "options:3:1: error: 'vector_width' is 3; it must be a power of two from 1 to 64\n"
            "    vector_width: 3\n"
            "    ^~~~~~~~~~~~\n");
  EXPECT_EQ(error_of("tile: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"),
            "options:1:1: error: 'tile' has 17 values; at most 16 are allowed\n"
            "    tile: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]\n"
            "    ^\n");
}

TEST(OptionsText, AFusionStrategyThatDoesNotExist) {
  EXPECT_EQ(error_of("scheduler { fusion_strategy: MOST }"),
            "options:1:30: error: there is no fusion strategy 'MOST'; there are MAX, PRESERVE_3_COINCIDENT and MIN\n"
            "    scheduler { fusion_strategy: MOST }\n"
            "                                 ^~~~\n");
  EXPECT_EQ(error_of("scheduler { fusion_strategy: 9 }"),
            "options:1:13: error: 'fusion_strategy' is 9; it must be MAX, PRESERVE_3_COINCIDENT or MIN\n"
            "    scheduler { fusion_strategy: 9 }\n"
            "                ^~~~~~~~~~~~~~~\n");
}

TEST(OptionsText, MalformedText) {
  EXPECT_EQ(error_of("unroll: \"x\""),
            "options:1:9: error: expected integer, got: \"x\"\n"
            "    unroll: \"x\"\n"
            "            ^\n");
  EXPECT_EQ(error_of("unroll: 3 unroll: 4").substr(0, 82),
            "options:1:17: error: non-repeated field \"unroll\" is specified multiple times\n    u");
  EXPECT_EQ(error_of("scheduler {"),
            "options:1:12: error: expected identifier, found the end of the text\n"
            "    scheduler {\n"
            "               ^\n");
  EXPECT_EQ(error_of("unroll: 99999999999").substr(0, 60),
            "options:1:9: error: integer out of range (99999999999)\n    u");
  EXPECT_EQ(error_of(std::string("\x01\x02", 2)).substr(0, 71),
            "options:1:1: error: invalid control characters encountered in text\n    ");
  EXPECT_EQ(error_of(std::string((1 << 20) + 1, ' ')),
            "error: options has 1048577 bytes; options have at most 1048576\n");
}

TEST(OptionsText, TheNameStandsForTheTextInMessages) {
  EXPECT_EQ(cpu_options_from_text("unroll: 0", "fast.options").error().to_string(),
            "fast.options:1:1: error: 'unroll' is 0; it must be from 1 to 64\n"
            "    unroll: 0\n"
            "    ^~~~~~\n");
}

TEST(OptionsValidate, ValuesFromCodeHaveNoPlace) {
  EXPECT_TRUE(validate(CpuOptions{.tile = {1, kMaxTile}, .vector_width = 64, .unroll = 64}));
  EXPECT_EQ(validate(CpuOptions{.tile = {4, -1}, .vector_width = 128}).error().to_string(),
            "error: 'tile' is -1 at position 1; it must be from 1 to 1073741824\n"
            "error: 'vector_width' is 128; it must be a power of two from 1 to 64\n");
}

}  // namespace
}  // namespace tc::options
