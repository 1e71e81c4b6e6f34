#include "tc/poly/promote.h"

#include <gtest/gtest.h>

#include "tc/poly/dependences.h"
#include "tc/poly/print.h"
#include "tc/poly/transform.h"
#include "tests/poly/scops.h"

namespace tc::poly::test {
namespace {

using options::Fusion;
using Sizes = std::vector<int64_t>;

const BandRef kOutermost = {{0}};

/// matmul: fused, tiled by 16x16, and the update's k tiled by 8 under the tiles of i and j.
Scop tiled_matmul(int64_t m, int64_t n, int64_t k) {
  Scop scop = scheduled(matmul(m, n, k), Fusion::kMax);
  scop = *tile(scop, kOutermost, Sizes{16, 16});
  scop = *sink(scop, kOutermost.below());
  return *tile(scop, bands_of(scop, "S0")[1], Sizes{8});
}

TEST(Footprint, IsABoxThatMovesWithTheTile) {
  const Scop scop = tiled_matmul(64, 64, 64);
  const std::optional<Footprint> c = footprint(scop, kOutermost.below(), "C");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->extents, (Sizes{16, 16}));
  const std::optional<Footprint> a = footprint(scop, bands_of(scop, "S0")[2], "A");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->extents, (Sizes{16, 8}));
  EXPECT_FALSE(footprint(scop, bands_of(scop, "S0_init").back(), "A"));
}

TEST(Promote, AResultWrittenWholeIsCopiedOutOnly) {
  const Scop scop = tiled_matmul(64, 64, 64);
  const Result<Scop> promoted = promote(scop, kOutermost.below(), "C");
  ASSERT_TRUE(promoted) << promoted.error().to_string();
  const Promotion& p = promoted->promotions.at(0);
  EXPECT_FALSE(p.copy_in);
  EXPECT_TRUE(p.copy_out);
  EXPECT_EQ(p.extents, (Sizes{16, 16}));
  EXPECT_EQ(p.layout, (std::vector<int>{0, 1}));
  EXPECT_TRUE(check_legal(*promoted, "promote"));
}

TEST(Promote, AnAccumulatorBelowTheLoopOverTilesOfKIsCopiedBothWays) {
  const Scop scop = tiled_matmul(64, 64, 64);
  const Result<Scop> promoted = promote(scop, bands_of(scop, "S0")[2], "C");
  ASSERT_TRUE(promoted) << promoted.error().to_string();
  EXPECT_TRUE(promoted->promotions.at(0).copy_in);
  EXPECT_TRUE(promoted->promotions.at(0).copy_out);
}

TEST(Promote, AnInputIsCopiedInOnly) {
  const Scop scop = tiled_matmul(64, 64, 64);
  PromoteOptions options;
  options.name = "packed";
  options.layout = {1, 0};
  const Result<Scop> promoted = promote(scop, bands_of(scop, "S0")[2], "B", options);
  ASSERT_TRUE(promoted) << promoted.error().to_string();
  const Promotion& p = promoted->promotions.at(0);
  EXPECT_TRUE(p.copy_in);
  EXPECT_FALSE(p.copy_out);
  EXPECT_EQ(p.extents, (Sizes{8, 16}));
  EXPECT_TRUE(find_mark(*promoted, "promote:packed"));
}

TEST(Promote, AnInOutResultIsCopiedBothWays) {
  Scop scop = scheduled(sgemm(64, 64, 64), Fusion::kMax);
  scop = *tile(scop, kOutermost, Sizes{16, 16});
  const Result<Scop> promoted = promote(scop, kOutermost.below(), "C");
  ASSERT_TRUE(promoted) << promoted.error().to_string();
  EXPECT_TRUE(promoted->promotions.at(0).copy_in);
  EXPECT_TRUE(promoted->promotions.at(0).copy_out);
}

TEST(Promote, PartialTilesNeedNoCopyIn) {
  const Result<Scop> promoted = promote(tiled_matmul(50, 37, 20), kOutermost.below(), "C");
  ASSERT_TRUE(promoted) << promoted.error().to_string();
  EXPECT_FALSE(promoted->promotions.at(0).copy_in);
}

TEST(Promote, AStrideThatLeavesElementsUnwrittenForcesACopyIn) {
  const Expr i = index("i");
  ProgramBuilder p("strided");
  p.input("A", {32}).result("B", {64});
  p.statement("B", {i * 2}, ir::Assign::kAdd, true, {{"i", 32}}, {}, p.at("A", {i}));
  Scop scop = scheduled(p.build(), Fusion::kMax);
  scop = *tile(scop, kOutermost, Sizes{8});
  const Result<Scop> promoted = promote(scop, kOutermost.below(), "B");
  ASSERT_TRUE(promoted) << promoted.error().to_string();
  EXPECT_TRUE(promoted->promotions.at(0).copy_in);
  EXPECT_TRUE(promoted->promotions.at(0).copy_out);
}

TEST(Promote, OverlappingBoxesOfParallelTilesAreRefused) {
  const Expr i = index("i"), j = index("j");
  ProgramBuilder p("rows_as_one");
  p.input("A", {32, 4}).result("B", {128});
  p.set("B", {j * 32 + i}, {{"i", 32}, {"j", 4}}, p.at("A", {i, j}));
  const Scop tiled = *tile(scheduled(p.build(), Fusion::kMax), kOutermost, Sizes{8, 0});
  EXPECT_TRUE(promote(tiled, kOutermost.below(), "B"));
  const Result<Scop> parallel = mark_parallel(tiled, kOutermost);
  ASSERT_TRUE(parallel) << parallel.error().to_string();
  const Result<Scop> promoted = promote(*parallel, kOutermost.below(2), "B");
  ASSERT_FALSE(promoted);
  EXPECT_EQ(promoted.error().diagnostics().front().message,
            "cannot promote 'B': iterations of a parallel loop would write back overlapping parts");
  const Result<Scop> marked = mark_parallel(*promote(tiled, kOutermost.below(), "B"), kOutermost);
  ASSERT_FALSE(marked);
  EXPECT_EQ(marked.error().diagnostics().front().message,
            "cannot mark a band 'parallel': iterations of a parallel loop write back overlapping parts of 'B' from the "
            "buffer 'B'");
}

TEST(Promote, TooLargeABufferIsRefused) {
  PromoteOptions options;
  options.max_elements = 100;
  const Result<Scop> promoted = promote(tiled_matmul(64, 64, 64), kOutermost.below(), "C", options);
  ASSERT_FALSE(promoted);
  EXPECT_EQ(promoted.error().diagnostics().front().message,
            "cannot promote 'C': its buffer would have 256 elements, more than 100");
}

TEST(Promote, AFaultyPromotionIsCaught) {
  Scop scop = *promote(tiled_matmul(64, 64, 64), bands_of(tiled_matmul(64, 64, 64), "S0")[2], "C");
  Scop mutant = scop;
  mutant.promotions[0].copy_out = false;
  EXPECT_EQ(promotion_fault(mutant), "the buffer 'C' of 'C' is written and not copied out");
  mutant = scop;
  mutant.promotions[0].copy_in = false;
  EXPECT_EQ(promotion_fault(mutant), "the buffer 'C' of 'C' is read or written back without being filled");
  mutant = scop;
  mutant.promotions[0].extents[1] = 15;
  EXPECT_EQ(promotion_fault(mutant), "an access to 'C' leaves its buffer 'C'");
  mutant = scop;
  mutant.promotions.clear();
  EXPECT_EQ(promotion_fault(mutant), "the mark 'promote:C' has no promotion");
}

TEST(Contract, SoftmaxKeepsItsRowValuesInRegisters) {
  const Scop scop = contract_temporaries(scheduled(softmax(6, 11), Fusion::kMax));
  ASSERT_EQ(scop.promotions.size(), 2u);
  for (const Promotion& p : scop.promotions) {
    EXPECT_EQ(p.extents, (Sizes{1}));
    EXPECT_FALSE(p.copy_in || p.copy_out);
    EXPECT_TRUE(p.in_registers);
    EXPECT_TRUE(contracted(scop, p.tensor));
  }
  EXPECT_TRUE(check_legal(scop, "contract"));
}

TEST(Contract, MlpKeepsOneRowOfEachHiddenLayer) {
  const Scop scop = contract_temporaries(scheduled(mlp3(5, 4, 6, 3, 2), Fusion::kMax));
  ASSERT_EQ(scop.promotions.size(), 2u);
  EXPECT_EQ(scop.promotions[0].extents, (Sizes{1, 6}));
  EXPECT_EQ(scop.promotions[1].extents, (Sizes{1, 3}));
}

TEST(Contract, NothingIsContractedAcrossLoopNests) {
  for (const auto& [name, program] : all_programs()) {
    EXPECT_TRUE(contract_temporaries(scheduled(program, Fusion::kMin)).promotions.empty()) << name;
  }
}

}  // namespace
}  // namespace tc::poly::test
