#include <gtest/gtest.h>

#include <random>

#include "tc/gpu/mapping/hitting_set.h"

namespace tc::gpu {
namespace {

/// The least weight, by trying all choices.
double least_weight(const std::vector<double>& weights, const std::vector<std::vector<int>>& wanted) {
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t choice = 0; choice < (1U << weights.size()); ++choice) {
    double weight = 0;
    for (size_t p = 0; p < weights.size(); ++p) weight += (choice >> p & 1) * weights[p];
    bool all = true;
    for (const auto& set : wanted) {
      bool hit = false;
      for (int p : set) hit = hit || (choice >> p & 1);
      all = all && hit;
    }
    if (all) least = std::min(least, weight);
  }
  return least;
}

TEST(HittingSet, IsAsLightAsBruteForceFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> weights(1 + random() % 10);
    for (double& w : weights) w = 1 + random() % 5;
    std::vector<std::vector<int>> wanted(random() % 8);
    for (auto& set : wanted) {
      for (size_t n = 1 + random() % 4; n > 0; --n) set.push_back(static_cast<int>(random() % weights.size()));
    }
    double weight = 0;
    const std::vector<int> chosen = min_hitting_set(weights, wanted);
    for (int p : chosen) weight += weights[static_cast<size_t>(p)];
    for (const auto& set : wanted) {
      EXPECT_TRUE(std::any_of(set.begin(), set.end(),
                              [&](int p) { return std::find(chosen.begin(), chosen.end(), p) != chosen.end(); }));
    }
    EXPECT_EQ(weight, least_weight(weights, wanted));
  }
}

TEST(HittingSet, WithoutABudgetStillHitsEverySet) {
  EXPECT_EQ(min_hitting_set({1, 1, 1}, {{0, 1}, {1, 2}}, 0), std::vector<int>{1});
  EXPECT_TRUE(min_hitting_set({1}, {}, 0).empty());
}

}  // namespace
}  // namespace tc::gpu
