#include "tc/tune/space.h"

#include <gtest/gtest.h>

#include "tc/options/mapping.h"
#include "tc/options/options.h"

namespace tc::tune {
namespace {

Space space() {
  return {.base = "strict: true\n",
          .parameters = {{"tile", {"", "8", "32"}},
                         {"tile", {"", "16"}},
                         {"vector_width", {"", "4", "8"}},
                         {"scheduler.fusion_strategy", {"", "MAX", "MIN"}}}};
}

TEST(Space, CountsItsPoints) { EXPECT_EQ(space().size(), 3 * 2 * 3 * 3); }

TEST(Space, WritesACandidateAsOptions) {
  EXPECT_EQ(*text_of(space(), {0, 0, 0, 0}), "strict: true\n");
  const std::string text = *text_of(space(), {2, 1, 1, 2});
  const options::CpuOptions options = *options::cpu_options_from_text(text);
  EXPECT_EQ(options,
            (options::CpuOptions{
                .scheduler = {.fusion = options::Fusion::kMin}, .tile = {32, 16}, .vector_width = 4, .strict = true}));
}

TEST(Space, WhatFollowsAnAbsentElementIsAbsent) {
  EXPECT_EQ(*text_of(space(), {0, 1, 0, 0}), *text_of(space(), {0, 0, 0, 0}));
}

TEST(Space, ReadsACandidateBack) {
  Space all = space();
  for (const Candidate& candidate : {Candidate{0, 0, 0, 0}, {1, 1, 2, 1}, {2, 0, 1, 2}}) {
    EXPECT_EQ(*candidate_of(all, *text_of(all, candidate)), candidate);
  }
  EXPECT_EQ(all.parameters, space().parameters);
}

TEST(Space, TakesInAValueThatItDoesNotList) {
  Space all = space();
  const Candidate candidate = *candidate_of(all, "strict: true tile: 24");
  EXPECT_EQ(candidate, (Candidate{3, 0, 0, 0}));
  EXPECT_EQ(*text_of(all, candidate), "tile: [24]\nstrict: true\n");
}

TEST(Space, RefusesWhatItCannotHold) {
  Space all = space();
  const Result<Candidate> other = candidate_of(all, "strict: true promote: true");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().to_string(), "error: options that the space does not hold:\npromote: true\nstrict: true\n\n");
  all.parameters.push_back({"tiles", {"1"}});
  const Result<std::string> unknown = text_of(all, {0, 0, 0, 0, 0});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().to_string(), "error: 'tiles' is no tunable field of CpuOptions\n");
}

TEST(Space, TakesWholeListsAsValues) {
  Space all{.backend = options::Backend::kCuda, .parameters = {{"tile", {"", "[64, 64, 16]", "[8]"}}}};
  EXPECT_EQ(options::mapping_options_from_text(*text_of(all, {1}))->tile, (std::vector<int64_t>{64, 64, 16}));
  EXPECT_EQ(*candidate_of(all, *text_of(all, {1})), Candidate{1});
  EXPECT_EQ(*candidate_of(all, *text_of(all, {0})), Candidate{0});
  EXPECT_EQ(*candidate_of(all, "tile: 8"), Candidate{2});
  EXPECT_EQ(*candidate_of(all, "tile: [8, 4]"), Candidate{3});
  EXPECT_EQ(*value_in(all.backend, "tile: [8, 4]", "tile"), "[8, 4]");
  EXPECT_EQ(*value_in(all.backend, "outer_schedule_options { fusion_strategy: MAX }",
                      "outer_schedule_options.fusion_strategy"),
            "MAX");
}

TEST(Space, HoldsMappingOptionsToo) {
  const Space gpu{.backend = options::Backend::kCuda,
                  .parameters = {{"map_to_threads", {"", "32"}}, {"map_to_threads", {"", "8"}}}};
  EXPECT_EQ(options::mapping_options_from_text(*text_of(gpu, {1, 1}))->map_to_threads, (std::vector<int64_t>{32, 8}));
}

Space space_of_two_kernels() {
  return {.backend = options::Backend::kCuda,
          .parameters = {
              {"tile", {""}}, {"kernel[H].tile", {"", "[16, 32, 8]"}}, {"kernel[C 2].copy_stages", {"", "2", "3"}}}};
}

TEST(Space, KernelsHaveFieldsOfTheirOwn) {
  Space space = space_of_two_kernels();
  EXPECT_EQ(text_of(space, {0, 0, 0}).value(), "");
  const std::string text = text_of(space, {0, 1, 2}).value();
  EXPECT_EQ(text,
            "kernel {\n  writes: \"C\"\n  occurrence: 2\n  copy_stages: 3\n}\n"
            "kernel {\n  writes: \"H\"\n  tile: [16, 32, 8]\n}\n");
  EXPECT_EQ(candidate_of(space, text).value(), (Candidate{0, 1, 2}));
  EXPECT_EQ(value_in(space.backend, text, "kernel[H].tile").value(), "[16, 32, 8]");
}

TEST(Space, TextsFromBeforeKernelsHadFieldsAreCandidates) {
  Space space = space_of_two_kernels();
  const Result<Candidate> candidate = candidate_of(space, "tile: [8, 4]\n");
  ASSERT_TRUE(candidate) << candidate.error().to_string();
  EXPECT_EQ(text_of(space, *candidate).value(), "tile: [8, 4]\n");
  EXPECT_FALSE(candidate_of(space, "kernel { writes: \"X\" tile: [8] }"));
}

}  // namespace
}  // namespace tc::tune
