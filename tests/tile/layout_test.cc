#include "tc/tile/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "layouts.h"

namespace tc::tile {
namespace {

constexpr int kTrials = 1500;

TEST(IntTuple, PrintsAndFlattens) {
  const IntTuple tuple{{4, 8}, 2};
  EXPECT_EQ(to_string(tuple), "((4,8),2)");
  EXPECT_EQ(product(tuple), 64);
  EXPECT_EQ(flatten(tuple), (std::vector<int64_t>{4, 8, 2}));
  EXPECT_TRUE(congruent(tuple, IntTuple{{1, 2}, 3}));
  EXPECT_FALSE(congruent(tuple, IntTuple{1, {2, 3}}));
}

TEST(Layout, CountsColexicographically) {
  const Layout layout({{2, 2}, 4}, {{1, 8}, 2});
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < 6; ++i) offsets.push_back(layout(i));
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 1, 8, 9, 2, 3}));
  EXPECT_EQ(layout(IntTuple{{1, 1}, 2}), 13);
  EXPECT_EQ(layout(IntTuple{3, 2}), 13) << "an integer stands for a whole mode";
  EXPECT_EQ(layout.cosize(), 16);
  EXPECT_EQ(to_string(layout), "((2,2),4):((1,8),2)");
}

TEST(Layout, MajorOrders) {
  EXPECT_EQ(Layout::column_major({3, 5}), Layout({3, 5}, {1, 3}));
  EXPECT_EQ(Layout::row_major({3, 5}), Layout({3, 5}, {5, 1}));
}

TEST(Layout, CoalesceKeepsTheFunction) {
  Layouts layouts(1);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout layout = layouts.any();
    const Layout coalesced = coalesce(layout);
    ASSERT_EQ(coalesced.size(), layout.size()) << to_string(layout);
    for (int64_t i = 0; i < layout.size(); ++i) ASSERT_EQ(coalesced(i), layout(i)) << to_string(layout);
  }
  EXPECT_EQ(coalesce(Layout({2, {1, 6}}, {1, {6, 2}})), Layout(12, 1));
}

TEST(Layout, CompositionIsFunctionComposition) {
  Layouts layouts(2);
  int made = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout a = layouts.any();
    const Layout b = layouts.any();
    if (b.cosize() > a.size()) continue;
    const std::optional<Layout> r = composition(a, b);
    if (!r) continue;
    ++made;
    ASSERT_EQ(r->size(), b.size());
    for (int64_t i = 0; i < b.size(); ++i) {
      ASSERT_EQ((*r)(i), a(b(i))) << to_string(a) << " o " << to_string(b) << " = " << to_string(*r) << " at " << i;
    }
  }
  EXPECT_GT(made, 100);
}

TEST(Layout, CompositionRefusesWhatIsNoLayout) {
  EXPECT_EQ(composition(Layout({4, 6}, {1, 10}), Layout(6, 3)), std::nullopt);
  EXPECT_EQ(composition(Layout({6, 5}, {5, 10}), Layout({4, 5}, {1, 1})), std::nullopt) << "3 + 4 carries";
  EXPECT_EQ(composition(Layout({6, 2}, {8, 2}), Layout({4, 3}, {3, 1})), Layout({{2, 2}, 3}, {{24, 2}, 8}));
}

TEST(Layout, ComplementFillsTheGapsOnce) {
  Layouts layouts(3);
  int made = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout layout = layouts.any();
    const int64_t size = layouts.pick(1, 60);
    const std::optional<Layout> rest = complement(layout, size);
    if (!rest) continue;
    ++made;
    const Layout both = concatenate({layout, *rest});
    std::set<int64_t> reached;
    for (int64_t i = 0; i < both.size(); ++i) {
      ASSERT_TRUE(reached.insert(both(i)).second) << to_string(layout) << " and " << to_string(*rest);
    }
    for (int64_t offset = 0; offset < size; ++offset) ASSERT_TRUE(reached.count(offset)) << to_string(layout);
  }
  EXPECT_GT(made, 300);
  EXPECT_EQ(complement(Layout(4, 2), 24), Layout({2, 3}, {1, 8}));
  EXPECT_EQ(complement(Layout(4, 0), 24), std::nullopt) << "not injective";
}

TEST(Layout, DivideSplitsIntoTiles) {
  const std::optional<Layout> divided = logical_divide(Layout({4, 2, 3}, {2, 1, 8}), Layout(4, 2));
  ASSERT_TRUE(divided);
  EXPECT_EQ(*divided, Layout({{2, 2}, {2, 3}}, {{4, 1}, {2, 8}}));
  Layouts layouts(4);
  int made = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout a = layouts.compact();
    const Layout tile = Layout(layouts.pick(1, 6), layouts.pick(1, 6));
    if (a.size() % tile.size() != 0) continue;
    const std::optional<Layout> split = logical_divide(a, tile);
    if (!split || split->size() != a.size()) continue;
    ++made;
    std::multiset<int64_t> before;
    std::multiset<int64_t> after;
    for (int64_t i = 0; i < a.size(); ++i) {
      before.insert(a(i));
      after.insert((*split)(i));
    }
    ASSERT_EQ(before, after) << to_string(a) << " by " << to_string(tile);
  }
  EXPECT_GT(made, 100);
}

TEST(Layout, ProductRepeatsATile) {
  EXPECT_EQ(logical_product(Layout({2, 2}, {4, 1}), Layout(6, 1)), Layout({{2, 2}, {2, 3}}, {{4, 1}, {2, 8}}));
  Layouts layouts(5);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout a = layouts.compact();
    const Layout b = layouts.compact();
    const std::optional<Layout> repeated = logical_product(a, b);
    ASSERT_TRUE(repeated) << to_string(a) << " by " << to_string(b);
    std::set<int64_t> reached;
    for (int64_t i = 0; i < repeated->size(); ++i) reached.insert((*repeated)(i));
    ASSERT_EQ(static_cast<int64_t>(reached.size()), a.size() * b.size());
    ASSERT_EQ((*repeated)[0], a);
  }
}

TEST(Layout, RightInverse) {
  Layouts layouts(6);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout layout = trial % 2 ? layouts.compact() : layouts.any();
    const Layout inverse = right_inverse(layout);
    for (int64_t i = 0; i < inverse.size(); ++i) ASSERT_EQ(layout(inverse(i)), i) << to_string(layout);
    if (trial % 2) {
      ASSERT_EQ(inverse.size(), layout.size()) << to_string(layout);
    }
  }
}

TEST(Layout, LeftInverse) {
  Layouts layouts(7);
  int made = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Layout layout = trial % 2 ? layouts.compact() : layouts.any();
    const std::optional<Layout> inverse = left_inverse(layout);
    if (!inverse) continue;
    ++made;
    for (int64_t i = 0; i < layout.size(); ++i) ASSERT_EQ((*inverse)(layout(i)), i) << to_string(layout);
  }
  EXPECT_GT(made, kTrials / 2);
}

TEST(Layout, CastsBetweenElementWidths) {
  EXPECT_EQ(upcast(Layout({8, 4}, {1, 16}), 4), Layout({2, 4}, {1, 4}));
  EXPECT_EQ(downcast(Layout({2, 4}, {1, 4}), 4), Layout({8, 4}, {1, 16}));
  EXPECT_EQ(upcast(Layout({3, 4}, {1, 16}), 4), std::nullopt) << "three elements do not fill a vector of four";
  EXPECT_EQ(upcast(Layout({4, 4}, {4, 6}), 4), std::nullopt);
}

TEST(Swizzle, PermutesAndUndoesItself) {
  for (const Swizzle swizzle : {Swizzle{3, 4, 3}, Swizzle{2, 4, 3}, Swizzle{1, 4, 3}, Swizzle{2, 0, 3}}) {
    std::set<int64_t> reached;
    for (int64_t offset = 0; offset < 4096; ++offset) {
      ASSERT_EQ(swizzle(swizzle(offset)), offset);
      reached.insert(swizzle(offset));
    }
    EXPECT_EQ(reached.size(), 4096u) << to_string(swizzle);
    EXPECT_EQ(*reached.rbegin(), 4095);
  }
  EXPECT_EQ(to_string(Swizzle{3, 4, 3}), "Sw<3,4,3>");
}

/// Eight rows of 128 bytes read in columns of 16 bytes hit each bank group once after Sw<3,4,3>.
TEST(Swizzle, SpreadsColumnsOverBanks) {
  const Swizzle swizzle{3, 4, 3};
  for (int64_t column = 0; column < 8; ++column) {
    std::set<int64_t> bank_groups;
    for (int64_t row = 0; row < 8; ++row) bank_groups.insert(swizzle(row * 128 + column * 16) / 16 % 8);
    EXPECT_EQ(bank_groups.size(), 8u);
  }
}

}  // namespace
}  // namespace tc::tile
