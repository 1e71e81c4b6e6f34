#include "tc/cpu/tunables.h"

#include <gtest/gtest.h>

#include <set>

#include "tc/poly/from_ir.h"
#include "tests/poly/programs.h"

namespace tc::cpu {
namespace {

using poly::test::index;
using poly::test::ProgramBuilder;
using poly::test::ProgramPtr;

poly::Scop scop_of(const ProgramPtr& program) {
  auto scop = poly::from_ir(program, std::make_shared<poly::Context>());
  if (!scop) throw std::runtime_error(scop.error().to_string());
  return *scop;
}

ProgramPtr matmul(int64_t m, int64_t n, int64_t k) {
  ProgramBuilder b("matmul");
  b.input("A", {m, k}).input("B", {k, n}).result("C", {m, n});
  return b
      .sum("C", {index("i"), index("j")}, {{"i", m}, {"j", n}}, {{"k", k}},
           b.at("A", {index("i"), index("k")}) * b.at("B", {index("k"), index("j")}))
      .build();
}

const StrategyOptions kWide{.cpu = {}, .layouts = {}, .vector_bits = 512, .threads = 2};

TEST(Tunables, OfAContractionAreItsRegisterTilesAndBlocks) {
  const poly::Scop scop = scop_of(matmul(512, 512, 512));
  const auto found = tunables(scop, kWide);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->extents, (std::vector<int64_t>{512, 512}));
  ASSERT_EQ(found->register_tiles.size(), 12u);
  for (const std::vector<int64_t>& tile : found->register_tiles) {
    ASSERT_EQ(tile.size(), 2u);
    EXPECT_LE(tile[0] * tile[1] / 16, 32) << "more vectors than registers";
    EXPECT_EQ(tile[1] % 16, 0);
  }
  const auto best = top(scop, kWide, 8);
  ASSERT_TRUE(best);
  ASSERT_EQ(best->size(), 8u);
  std::set<std::string> texts;
  for (size_t i = 0; i < best->size(); ++i) {
    texts.insert(to_text((*best)[i].options));
    EXPECT_LE((*best)[i > 0 ? i - 1 : 0].us, (*best)[i].us);
  }
  EXPECT_EQ(texts.size(), 8u);
  EXPECT_FALSE(texts.contains("")) << "what the compiler chooses is no candidate";
}

TEST(Tunables, WhatIsSetStays) {
  StrategyOptions set = kWide;
  set.cpu.tile = {64, 256, 4, 32};
  set.cpu.strict = true;
  const auto best = top(scop_of(matmul(256, 256, 256)), set, 100);
  ASSERT_TRUE(best);
  ASSERT_FALSE(best->empty());
  for (const Candidate& candidate : *best) {
    EXPECT_EQ(candidate.options.tile, set.cpu.tile);
    EXPECT_TRUE(candidate.options.strict);
  }
}

TEST(Tunables, NoCandidateStandsTwice) {
  const poly::Scop scop = scop_of(matmul(64, 64, 64));
  StrategyOptions serial = kWide, one_thread = kWide;
  serial.cpu.parallel = false;
  one_thread.threads = 1;
  for (const StrategyOptions& options : {kWide, serial, one_thread}) {
    const auto all = top(scop, options, 10000);
    ASSERT_TRUE(all);
    ASSERT_FALSE(all->empty());
    std::set<std::string> texts;
    for (const Candidate& candidate : *all) {
      EXPECT_TRUE(texts.insert(to_text(candidate.options)).second) << to_text(candidate.options);
      EXPECT_TRUE(options.threads > 1 || !candidate.options.parallel) << "one thread has nothing to spread";
    }
  }
}

TEST(Tunables, APointwiseDefHasNoRegisterTiles) {
  ProgramBuilder b("scale");
  b.input("X", {64, 100}).result("Y", {64, 100});
  b.set("Y", {index("i"), index("j")}, {{"i", 64}, {"j", 100}}, b.at("X", {index("i"), index("j")}) * 2.0F);
  const auto found = tunables(scop_of(b.build()), kWide);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->extents, (std::vector<int64_t>{64, 100}));
  EXPECT_TRUE(found->register_tiles.empty());
}

/// What the estimate is for: more work takes longer, and so does code that leaves lanes, registers or threads idle.
TEST(Tunables, EstimatesOrderWhatIsKnown) {
  const auto us_of = [](int64_t size, const options::CpuOptions& cpu) {
    StrategyOptions options = kWide;
    options.cpu = cpu;
    const auto found = top(scop_of(matmul(size, size, size)), options, 1000);
    for (const Candidate& candidate : *found) {
      options::CpuOptions expected = cpu;
      expected.parallel = false;
      if (candidate.options == expected) return candidate.us;
    }
    ADD_FAILURE() << "no candidate: " << to_text(cpu);
    return -1.0;
  };
  const options::CpuOptions good{.tile = {96, 512, 6, 64}};
  EXPECT_GT(us_of(512, good), 7 * us_of(256, good));
  EXPECT_GT(us_of(512, {.tile = {96, 512, 1, 16}}), 2 * us_of(512, good));
  EXPECT_GT(us_of(512, {.tile = {96, 512, 6, 64}, .vector_width = 4}), us_of(512, good));
}

}  // namespace
}  // namespace tc::cpu
