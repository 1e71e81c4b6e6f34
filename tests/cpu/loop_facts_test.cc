#include "tc/cpu/loop_facts.h"

#include <gtest/gtest.h>

#include "tc/poly/scop.h"

namespace tc::cpu {
namespace {

using Halide::Expr;
using Halide::max;
using Halide::min;

Expr variable(const std::string& name) { return Halide::Internal::Variable::make(Halide::Int(32), name); }

class LoopFactsTest : public ::testing::Test {
 protected:
  poly::Context context_;
  LoopFacts facts_{context_.get()};
  Expr tile_ = variable("tile");
  Expr point_ = variable("point");
  Expr other_ = variable("other");
};

TEST_F(LoopFactsTest, ImplyWhatIntervalsAloneDoNotShow) {
  // for tile in 0..1, point in 0..min(23, 31 - 24 * tile)
  facts_.assume(0 <= tile_ && tile_ <= 1);
  facts_.assume(0 <= point_ && point_ <= min(23, tile_ * -24 + 31));
  EXPECT_TRUE(facts_.imply(tile_ * 24 + point_ <= 31));
  EXPECT_FALSE(facts_.imply(tile_ * 24 + point_ <= 30));
  EXPECT_TRUE(facts_.imply(0 <= point_ && point_ < 24));
  EXPECT_FALSE(facts_.imply(0 <= point_ && point_ < 23));
}

TEST_F(LoopFactsTest, RoundsToIntegers) {
  facts_.assume(2 * tile_ <= 5);
  EXPECT_TRUE(facts_.imply(tile_ < 3)) << "tile < 3 misses no integer up to 2.5";
  EXPECT_FALSE(facts_.imply(tile_ < 2));
}

TEST_F(LoopFactsTest, SplitExtremaWhereThatIsAConjunction) {
  facts_.assume(0 <= tile_ && tile_ <= 7 && tile_ <= point_);
  EXPECT_TRUE(facts_.imply(tile_ <= min(point_, 7)));
  EXPECT_TRUE(facts_.imply(max(tile_, 5) <= 7));
  EXPECT_TRUE(facts_.imply(min(other_, tile_) <= 7)) << "one of the two is enough";
  EXPECT_FALSE(facts_.imply(max(other_, tile_) <= 7));
  facts_.assume(max(tile_, 3) <= other_);
  EXPECT_TRUE(facts_.imply(other_ >= 3 && other_ >= tile_));
  LoopFacts either = facts_;
  either.assume(variable("x") <= max(other_, 3));
  EXPECT_FALSE(either.imply(variable("x") <= 3));
}

TEST_F(LoopFactsTest, SayNothingOfWhatTheyDoNotKnow) {
  facts_.assume(tile_ * point_ <= 3);
  EXPECT_FALSE(facts_.imply(tile_ * point_ <= 3)) << "not linear";
  EXPECT_FALSE(facts_.imply(tile_ <= 3)) << "no bound";
  EXPECT_FALSE(facts_.imply(other_ == other_ * 2));
  EXPECT_TRUE(facts_.imply(tile_ - tile_ == 0));
  facts_.assume(tile_ <= 2 || point_ <= 2);
  EXPECT_FALSE(facts_.imply(tile_ <= 2));
}

TEST_F(LoopFactsTest, DoNotOverflow) {
  const Expr large = Halide::Internal::make_const(Halide::Int(64), INT64_MAX);
  facts_.assume(tile_ <= 0);
  EXPECT_FALSE(facts_.imply(Halide::cast<int64_t>(tile_) * large * 2 <= large));
  EXPECT_FALSE(facts_.imply(Halide::cast<int64_t>(other_) <= large));
}

}  // namespace
}  // namespace tc::cpu
