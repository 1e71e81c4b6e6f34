#include "tc/cpu/lanes.h"

#include <gtest/gtest.h>

#include "tc/cpu/object.h"

namespace tc::cpu {
namespace {

using Halide::Expr;
namespace hi = Halide::Internal;

Expr lane() { return hi::Variable::make(Halide::Int(32), "l"); }

Expr load(const std::string& buffer, const Expr& index) {
  return hi::Load::make(Halide::Float(32), buffer, index, {}, {}, hi::const_true(), {});
}

hi::Stmt store(const std::string& buffer, const Expr& index, const Expr& value) {
  return hi::Store::make(buffer, value, index, {}, hi::const_true(), {});
}

TEST(BlendLanes, StoresWholeVectorsAndMasksWhatLiesElsewhere) {
  const hi::Stmt body = store("s", lane() + 16, load("s", lane() + 16) + load("x", lane() + 96) * load("w", 3));
  const hi::Stmt blend = blend_lanes(body, lane() < 4, "l", {"s"}, OtherLanes::kElements);
  ASSERT_TRUE(blend.defined());
  EXPECT_EQ(to_text(blend),
            "s[l + 16] = select(l < 4, (float32)s[l + 16] + (((float32)x[l + 96] if (l < 4))*(float32)w[3]), "
            "(float32)s[l + 16])\n");
}

/// What is in memory there may be a denormal number, with which what follows takes its time.
TEST(BlendLanes, GivesLanesThatAreNobodysZeros) {
  const hi::Stmt body = store("s", lane() + 16, load("x", lane() + 96));
  const hi::Stmt blend = blend_lanes(body, lane() < 4, "l", {"s"}, OtherLanes::kNobodys);
  ASSERT_TRUE(blend.defined());
  EXPECT_EQ(to_text(blend), "s[l + 16] = select(l < 4, (float32)x[l + 96] if (l < 4), 0.000000f)\n");
}

TEST(BlendLanes, LeavesWhatHasNoRoomOrCannotBeSwitchedOff) {
  const auto refuses = [](const hi::Stmt& body) {
    return !blend_lanes(body, lane() < 4, "l", {"s"}, OtherLanes::kElements).defined();
  };
  EXPECT_TRUE(refuses(store("y", lane(), load("x", lane()))));        // not padded
  EXPECT_TRUE(refuses(store("s", lane() * 2, load("x", lane()))));    // written with gaps
  EXPECT_TRUE(refuses(store("s", 5, load("x", lane()))));             // one element for all lanes
  EXPECT_TRUE(refuses(store("s", lane(), load("x", lane() * 100))));  // strided
  EXPECT_TRUE(refuses(hi::Block::make(store("s", lane(), 0.0f), store("s", lane() + 16, 0.0f))));
  EXPECT_FALSE(refuses(store("s", lane(), load("x", lane()))));
}

}  // namespace
}  // namespace tc::cpu
