#include "tc/ir/least_work.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"

namespace tc::ir {
namespace {
using testing::specialised_from;

TEST(LeastWork, AProductUpdatesOnceForEachTriple) {
  const LeastWork work = least_work(specialised_from(
      "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }", {{"M", 64}, {"N", 64}, {"K", 64}}));
  EXPECT_EQ(work.updates, 64 * 64 * 64);
  EXPECT_EQ(work.lane_bits, 32);
  EXPECT_EQ(work.result_bytes, 4 * 64 * 64);
}

TEST(LeastWork, LanesAreAsNarrowAsWhatIsRead) {
  const LeastWork work =
      least_work(specialised_from("def mm(int8(M,K) A, int8(K,N) B) -> (int32(M,N) C) { C(i,j) +=! A(i,k) * B(k,j) }",
                                  {{"M", 8}, {"N", 8}, {"K", 8}}));
  EXPECT_EQ(work.updates, 8 * 8 * 8);
  EXPECT_EQ(work.lane_bits, 8);
}

/// Each of these might be computed with fewer updates.
TEST(LeastWork, WhatCodeMightLeaveOutDoesNotCount) {
  const std::map<std::string, int64_t> sizes = {{"N", 100}};
  const auto updates = [&](const std::string& text) { return least_work(specialised_from(text, sizes)).updates; };
  EXPECT_EQ(updates("def f(float(N) A) -> (s) { s +=! A(i) where k in 0:7 }"), 0) << "7 times a sum";
  EXPECT_EQ(updates("def f(float(N) A) -> (O) { O(i) +=! A(k) where i in 0:9 }"), 0) << "one sum for all i";
  EXPECT_EQ(updates("def f(float(N) A, float(N) B) -> (s) { s +=! B(i) > 0.0 ? A(i) : 0.0 }"), 100);
  EXPECT_EQ(updates("def f(float(N) B) -> (s) { s +=! k > 3 ? B(k) : 0.0 where k in 0:N }"), 0) << "few that hold";
  EXPECT_EQ(updates("def f(float(N) A) -> (O) { t +=! A(i)  O(i) = A(i) }"), 0) << "t is in no result";
  EXPECT_EQ(updates("def f(float(N) A) -> (float(N) O) { O(i) +=! A(i) * A(k)  O(i) = A(i) }"), 0) << "written over";
  EXPECT_EQ(updates("def f(float(N) A) -> (O) { t +=! A(i)  O(i) = t * A(i) }"), 100);
}

TEST(LeastWork, ResultsAreStoredOnce) {
  const LeastWork work = least_work(specialised_from(
      "def f(float(N) A) -> (double(N) O, p) { t(i) = A(i)  O(i) = double(t(i))  O(i) = O(i) + 1  p(i) = A(i) }",
      {{"N", 10}}));
  EXPECT_EQ(work.result_bytes, 10 * (8 + 4));
  EXPECT_EQ(work.updates, 0);
}

}  // namespace
}  // namespace tc::ir
