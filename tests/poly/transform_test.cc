#include "tc/poly/transform.h"

#include <gtest/gtest.h>

#include "tc/poly/dependences.h"
#include "tc/poly/print.h"
#include "tests/poly/scops.h"

namespace tc::poly::test {
namespace {

using options::Fusion;
using Sizes = std::vector<int64_t>;

std::string tree(const Scop& scop) {
  const std::string text = schedule_text(scop);
  return text.substr(text.find("schedule\n") + 9);
}

const BandRef kOutermost = {{0}};

TEST(Transform, TileThenSinkIsThePapersFigure3d) {
  const Scop fused = scheduled(sgemm(64, 64, 64), Fusion::kMax);
  const Scop tiled = *tile(fused, kOutermost, Sizes{32, 32});
  const Result<Scop> sunk = sink(tiled, kOutermost.below());
  ASSERT_TRUE(sunk) << sunk.error().to_string();
  EXPECT_EQ(tree(*sunk), R"(  band permutable coincident(1, 1)
    S0: [i - (i) mod 32, j - (j) mod 32]
    S1: [i - (i) mod 32, j - (j) mod 32]
    sequence
      S0
        band permutable coincident(1, 1)
          S0: [(i) mod 32, (j) mod 32]
      S1
        band permutable coincident(0)
          S1: [k]
          band permutable coincident(1, 1)
            S1: [(i) mod 32, (j) mod 32]
)");
  EXPECT_TRUE(check_legal(*sunk, "sink"));
}

TEST(Transform, TileLeavesMembersWithoutSizeAmongThePoints) {
  const Scop scop = scheduled(sgemm(64, 64, 64), Fusion::kMin);
  const BandRef update = bands_of(scop, "S1").front();
  const Scop tiled = *tile(scop, update, Sizes{16, 0});
  const BandInfo tiles = band_info(tiled, update), points = band_info(tiled, update.below()),
                 rest = band_info(tiled, update.below(2));
  EXPECT_EQ(tiles.extents, (Sizes{4, 1}));
  EXPECT_EQ(points.extents, (Sizes{16, 64}));
  EXPECT_EQ(rest.extents, (Sizes{64}));
  EXPECT_EQ(rest.index_of(0, "S1"), "k");
}

TEST(Transform, StripMineSplitReorderAndMerge) {
  const Scop scop = scheduled(sgemm(8, 9, 10), Fusion::kMin);
  const BandRef update = bands_of(scop, "S1").front();
  const Scop strips = *strip_mine(scop, update, 1, 4);
  EXPECT_EQ(band_info(strips, update).extents, (Sizes{8}));
  EXPECT_EQ(band_info(strips, update.below(1)).extents, (Sizes{3}));
  EXPECT_EQ(band_info(strips, update.below(2)).extents, (Sizes{4}));
  EXPECT_EQ(band_info(strips, update.below(3)).extents, (Sizes{10}));
  const Scop back = fuse(split(scop, update, 2), update);
  EXPECT_EQ(tree(back), tree(scop));
  const Scop kij = *reorder(scop, update, std::vector<int>{2, 0, 1});
  EXPECT_EQ(band_info(kij, update).extents, (Sizes{10, 8, 9}));
  EXPECT_EQ(band_info(kij, update).coincident, (std::vector<bool>{false, true, true}));
}

TEST(Transform, DistributeAndMergeAreInverse) {
  const Scop fused = scheduled(sgemm(8, 9, 10), Fusion::kMax);
  const Result<Scop> apart = distribute(fused, kOutermost);
  ASSERT_TRUE(apart) << apart.error().to_string();
  EXPECT_FALSE(shared_band(*apart, {"S0", "S1"}));
  const Result<Scop> again = merge(*apart, kOutermost, 0);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tree(*again), tree(fused));
}

TEST(Transform, AnIllegalMergeIsRefusedWithAPair) {
  const Scop scop = scheduled(producer_conv1d(20, 3), Fusion::kMin);
  const Result<Scop> first = merge(scop, kOutermost, 0);  // T with the init of O: nothing in common
  ASSERT_TRUE(first) << first.error().to_string();
  const Result<Scop> second = merge(*first, kOutermost, 0);
  ASSERT_FALSE(second);
  EXPECT_EQ(
      second.error().diagnostics().front().message,
      "cannot merge two bands: S0[i = 1] must run before S1[i = 0, k = 1] (flow dependence), and the schedule does "
      "not see to it");
}

TEST(Transform, ParallelMarksAreRefusedOnReductions) {
  const Scop scop = scheduled(sgemm(8, 9, 10), Fusion::kMax);
  EXPECT_TRUE(mark_parallel(scop, kOutermost));
  const Result<Scop> reduction = mark_parallel(scop, bands_of(scop, "S1").back());
  ASSERT_FALSE(reduction);
  EXPECT_EQ(reduction.error().diagnostics().front().message,
            "cannot mark a band 'parallel': S1[i = 0, j = 0, k = 0] and S1[i = 0, j = 0, k = 1] must not run at once "
            "(reduction dependence), and a mark 'parallel' lets them");
}

TEST(Transform, AVectorMayCarryAReductionAndNothingElse) {
  const Scop scop = scheduled(sgemm(8, 9, 10), Fusion::kMax);
  const BandRef k = bands_of(scop, "S1").back();
  EXPECT_TRUE(carries_reduction(scop, band_at(scop, k), 0));
  const Result<Scop> vector = mark_vector(scop, k);
  ASSERT_TRUE(vector) << vector.error().to_string();
  EXPECT_TRUE(check_legal(*vector, "vector"));

  const Scop stencil = scheduled(producer_conv1d(20, 3), Fusion::kMin);
  EXPECT_TRUE(mark_vector(stencil, bands_of(stencil, "S0").front()));
}

TEST(Transform, ScattersAreNeitherParallelNorCoincident) {
  const Scop scop = scheduled(histogram(9, 4), Fusion::kMax);
  for (const BandRef& ref : bands(scop)) EXPECT_FALSE(mark_parallel(scop, ref));
}

TEST(Transform, SinkingALoopThatCarriesADependenceIsTestedExactly) {
  const Scop scop = scheduled(softmax(6, 11), Fusion::kMax);
  const BandRef j = *shared_band(scop, {"S1", "S2"});
  const Result<Scop> sunk = sink(scop, j);  // S1's loop over j, then S2's: what distribution gives
  ASSERT_TRUE(sunk) << sunk.error().to_string();
  EXPECT_TRUE(check_legal(*sunk, "sink"));
}

}  // namespace
}  // namespace tc::poly::test
