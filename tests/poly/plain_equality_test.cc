#include "tc/poly/plain_equality.h"

#include <gtest/gtest.h>

#include <string>

#include "tc/poly/isl_ext.h"
#include "tc/poly/scop.h"

namespace tc::poly::test {
namespace {

class PlainEquality : public ::testing::Test {
 protected:
  isl::map map(const std::string& text) const { return isl::map(context_.get(), text); }

  /// Which of the relations a schedule is plainly equal in, as text.
  void expect_equal(const std::string& relations, const std::string& schedule, const std::string& equal) const {
    const isl::union_map all(context_.get(), relations);
    const SplitByEquality split = split_plainly_equal(all, isl::multi_union_pw_aff(context_.get(), schedule));
    EXPECT_TRUE(split.equal.is_equal(isl::union_map(context_.get(), equal))) << split.equal;
    EXPECT_TRUE(split.rest.is_equal(all.subtract(split.equal))) << split.rest;
  }

 private:
  Context context_;
};

TEST_F(PlainEquality, OfIndices) {
  const isl::map dependence = map("{ S[i, j] -> T[i, k, j] : 0 <= i, j, k < 8 }");
  EXPECT_TRUE(plainly_equal(dependence, 0, 0));
  EXPECT_TRUE(plainly_equal(dependence, 1, 2));
  EXPECT_FALSE(plainly_equal(dependence, 0, 1));
  EXPECT_FALSE(plainly_equal(dependence, 0, 2));
  EXPECT_FALSE(plainly_equal(map("{ S[i] -> T[i + 1] : 0 <= i < 8 }"), 0, 0));
  EXPECT_FALSE(plainly_equal(map("{ S[i] -> T[-i] : 0 <= i < 8 }"), 0, 0));
  EXPECT_FALSE(plainly_equal(map("{ S[i] -> T[2i] : 0 <= i < 8 }"), 0, 0));
  EXPECT_FALSE(plainly_equal(map("{ S[i] -> T[j] : 2j = i and 0 <= i < 8 }"), 0, 0));
  EXPECT_FALSE(plainly_equal(map("{ S[i] -> T[i] : 0 <= i < 4; S[i] -> T[i + 1] : 4 <= i < 8 }"), 0, 0));
}

TEST_F(PlainEquality, OfSchedules) {
  expect_equal("{ A[i] -> B[i, j] : 0 <= i, j < 8; A[i] -> C[i + 1] : 0 <= i < 8 }",
               "[{ A[i] -> [(i)]; B[i, j] -> [(i)]; C[i] -> [(i)] }]", "{ A[i] -> B[i, j] : 0 <= i, j < 8 }");
  expect_equal("{ A[i] -> B[i, j] : 0 <= i, j < 8; A[i] -> C[i + 1] : 0 <= i < 8 }",
               "[{ A[i] -> [(1 + i)]; B[i, j] -> [(i)]; C[i] -> [(i)] }]", "{ A[i] -> C[i + 1] : 0 <= i < 8 }");
}

TEST_F(PlainEquality, OfTiles) {
  expect_equal("{ A[i] -> B[i, j] : 0 <= i, j < 80 }", "[{ A[i] -> [(floor(i/32))]; B[i, j] -> [(floor(i/32))] }]",
               "{ A[i] -> B[i, j] : 0 <= i, j < 80 }");
  expect_equal("{ A[i] -> B[i, j] : 0 <= i, j < 80 }", "[{ A[i] -> [(floor(i/32))]; B[i, j] -> [(floor(i/16))] }]",
               "{ }");
  expect_equal("{ A[i] -> A[i + 1] : 0 <= i < 80 }", "[{ A[i] -> [(floor(i/32))] }]", "{ }");
}

TEST_F(PlainEquality, OfAllMembersOfABand) {
  expect_equal("{ A[i, j] -> B[i, j] : 0 <= i, j < 8; A[i, j] -> C[i, k] : 0 <= i, j, k < 8 }",
               "[{ A[i, j] -> [(i)]; B[i, j] -> [(i)]; C[i, j] -> [(i)] }, "
               "{ A[i, j] -> [(j)]; B[i, j] -> [(j)]; C[i, j] -> [(j)] }]",
               "{ A[i, j] -> B[i, j] : 0 <= i, j < 8 }");
}

TEST_F(PlainEquality, NotOfInstancesThatTheScheduleLeavesOut) {
  expect_equal("{ A[i] -> B[i] : 0 <= i < 8 }", "[{ A[i] -> [(i)]; B[i] -> [(i)] : i < 4 }]", "{ }");
  expect_equal("{ A[i] -> B[i] : 0 <= i < 8 }", "[{ A[i] -> [(i)] }]", "{ }");
}

}  // namespace
}  // namespace tc::poly::test
