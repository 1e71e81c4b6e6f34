#include "tc/tile/layout_isl.h"

#include <gtest/gtest.h>
#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/set.h>

#include "layouts.h"

/// The algebra of layouts against isl's, which knows nothing of it.
namespace tc::tile {
namespace {

constexpr int kTrials = 40;

class LayoutIsl : public ::testing::Test {
 protected:
  ~LayoutIsl() override { isl_ctx_free(ctx_); }
  isl::ctx ctx() const { return isl::ctx(ctx_); }
  isl::map one(const Layout& layout) const { return to_isl_1d(ctx(), layout); }
  /// By all leaves: affine without divisions.
  isl::map flat(const Layout& layout) const {
    const std::vector<int64_t> shape = flatten(layout.shape());
    const std::vector<int64_t> stride = flatten(layout.stride());
    return to_isl(ctx(), Layout(std::vector<IntTuple>(shape.begin(), shape.end()),
                                std::vector<IntTuple>(stride.begin(), stride.end())));
  }
  isl::map map(const std::string& text) const { return isl::manage(isl_map_read_from_str(ctx_, text.c_str())); }
  isl::set set(const std::string& text) const { return isl::manage(isl_set_read_from_str(ctx_, text.c_str())); }
  isl::set below(int64_t size) const { return set("{ [i] : 0 <= i < " + std::to_string(size) + " }"); }

 private:
  isl_ctx* ctx_ = isl_ctx_alloc();
};

TEST_F(LayoutIsl, Text) {
  const isl::map relation = to_isl(ctx(), Layout({{2, 2}, 4}, {{1, 8}, 2}));
  EXPECT_TRUE(
      relation.is_equal(map("{ [a, b] -> [o] : 0 <= a < 4 and 0 <= b < 4 and "
                            "o = (a mod 2) + 8 * floor(a / 2) + 2b }")));
}

TEST_F(LayoutIsl, IsTheSameFunction) {
  Layouts layouts(11);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout layout = layouts.any();
    isl::map points = map("{ [i] -> [o] : false }");
    for (int64_t i = 0; i < layout.size(); ++i) {
      points = points.unite(map("{ [" + std::to_string(i) + "] -> [" + std::to_string(layout(i)) + "] }"));
      if (i == 12) break;
    }
    const isl::set shown = points.domain();
    ASSERT_TRUE(one(layout).intersect_domain(shown).is_equal(points)) << to_string(layout);
    ASSERT_TRUE(one(coalesce(layout)).is_equal(one(layout))) << to_string(layout);
  }
}

TEST_F(LayoutIsl, CompositionIsApplication) {
  Layouts layouts(12);
  int made = 0;
  for (int trial = 0; trial < 4 * kTrials; ++trial) {
    const Layout a = layouts.any();
    const Layout b = layouts.any();
    if (b.cosize() > a.size()) continue;
    const std::optional<Layout> r = composition(a, b);
    if (!r) continue;
    ++made;
    ASSERT_TRUE(one(*r).is_equal(one(b).apply_range(one(a)))) << to_string(a) << " o " << to_string(b);
  }
  EXPECT_GT(made, 5);
}

TEST_F(LayoutIsl, ComplementIsDisjointAndCovers) {
  Layouts layouts(13);
  int made = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout layout = layouts.any();
    const int64_t size = layouts.pick(1, 60);
    const std::optional<Layout> rest = complement(layout, size);
    if (!rest) continue;
    ++made;
    const isl::map both = flat(concatenate({layout, *rest}));
    ASSERT_TRUE(both.is_injective()) << to_string(layout);
    ASSERT_TRUE(below(size).is_subset(both.range())) << to_string(layout);
  }
  EXPECT_GT(made, 5);
}

TEST_F(LayoutIsl, Inverses) {
  Layouts layouts(14);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout layout = trial % 2 ? layouts.compact() : layouts.any();
    const Layout right = right_inverse(layout);
    const isl::map identity = map("{ [i] -> [i] }");
    ASSERT_TRUE(one(right).apply_range(one(layout)).is_equal(identity.intersect_domain(below(right.size()))))
        << to_string(layout);
    if (const std::optional<Layout> left = left_inverse(layout)) {
      ASSERT_TRUE(one(layout).apply_range(one(*left)).is_subset(identity)) << to_string(layout);
    }
  }
}

TEST_F(LayoutIsl, DivideAndProductKeepTheImage) {
  Layouts layouts(15);
  int divided = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout a = layouts.compact();
    const Layout b = layouts.compact();
    const Layout tile(layouts.pick(1, 4), layouts.pick(1, 4));
    const std::optional<Layout> split = logical_divide(a, tile);
    if (split && split->size() == a.size()) {
      ++divided;
      ASSERT_TRUE(flat(*split).is_injective() && flat(*split).range().is_equal(flat(a).range())) << to_string(a);
    }
    const std::optional<Layout> repeated = logical_product(a, b);
    ASSERT_TRUE(repeated && flat(*repeated).is_injective()) << to_string(a) << " by " << to_string(b);
  }
  EXPECT_GT(divided, 5);
}

TEST_F(LayoutIsl, Swizzles) {
  const Layout layout = Layout::row_major({8, 16});
  for (const Swizzle swizzle : {Swizzle{3, 0, 4}, Swizzle{2, 1, 3}, Swizzle{1, 2, 2}}) {
    const isl::map relation = to_isl(ctx(), layout, swizzle);
    for (int64_t row = 0; row < 8; ++row) {
      for (int64_t column = 0; column < 16; column += 3) {
        const std::string point = "{ [" + std::to_string(row) + ", " + std::to_string(column) + "] }";
        const std::string value = "{ [" + std::to_string(swizzle(row * 16 + column)) + "] }";
        ASSERT_TRUE(set(point).apply(relation).is_equal(set(value))) << to_string(swizzle) << point;
      }
    }
  }
}

}  // namespace
}  // namespace tc::tile
