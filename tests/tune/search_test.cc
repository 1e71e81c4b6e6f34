#include "tc/tune/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/tune/landscape.h"

namespace tc::tune {
namespace {

const Feasible kAll = [](const Candidate&) { return true; };

Space three_by_three() { return {.parameters = {{"tile", {"1", "2", "3"}}, {"tile", {"1", "2", "3"}}}}; }

TEST(Selection, ParentsAreDrawnByInverseTime) {
  const std::vector<Scored> scored = {{{0, 0}, 1.0}, {{0, 1}, std::nullopt}, {{0, 2}, 3.0}};
  std::mt19937_64 random(7);
  std::array<int, 3> drawn{};
  for (int i = 0; i < 4000; ++i) ++drawn[draw_parent(scored, random)[1]];
  EXPECT_NEAR(drawn[0], 3000, 100);  // 1 / 1 to 1 / 3
  EXPECT_EQ(drawn[1], 0);
  EXPECT_NEAR(drawn[2], 1000, 100);
}

TEST(Selection, ElitesAreTheFastest) {
  const std::vector<Scored> elites = select({{{0}, 3.0}, {{1}, std::nullopt}, {{2}, 1.0}, {{3}, 2.0}}, 2);
  ASSERT_EQ(elites.size(), 2);
  EXPECT_EQ(elites[0].candidate, Candidate{2});
  EXPECT_EQ(elites[1].candidate, Candidate{3});
}

TEST(Crossover, TakesEachParameterFromOneOfThreeWithEqualChances) {
  std::mt19937_64 random(1);
  std::array<std::array<int, 3>, 4> taken{};
  for (int i = 0; i < 3000; ++i) {
    const Candidate child = cross({0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, random);
    for (size_t p = 0; p < 4; ++p) ++taken[p][child[p]];
  }
  for (const auto& parents : taken) {
    for (const int count : parents) EXPECT_NEAR(count, 1000, 100);
  }
}

TEST(Mutation, ChangesAsManyAsItsRateSays) {
  const Space space = testing::landscape_space();
  std::mt19937_64 random(1);
  const Candidate from(8, 1);
  EXPECT_EQ(mutate(space, from, 0, random), from);
  int changed = 0;
  for (int i = 0; i < 1000; ++i) {
    const Candidate to = mutate(space, from, 0.5, random);
    for (size_t p = 0; p < 8; ++p) {
      ASSERT_LT(to[p], space.parameters[p].values.size());
      changed += to[p] != from[p];
    }
  }
  EXPECT_NEAR(changed, 8000 * 0.5 * 7 / 8, 150);  // a value drawn anew is the old one once in eight times
}

TEST(Generation, HasNothingThatWasSeenOrIsInfeasible) {
  const Space space = three_by_three();
  const std::set<Candidate> seen = {{0, 0}, {1, 1}};
  const Feasible feasible = [](const Candidate& c) { return c[0] != 2; };
  for (const SearchKind kind : {SearchKind::kGenetic, SearchKind::kRandom}) {
    std::mt19937_64 random(3);
    std::vector<Candidate> all = next_candidates(kind, space, {{{0, 0}, 1.0}}, seen, feasible, 100, {}, random);
    std::ranges::sort(all);
    EXPECT_EQ(all, (std::vector<Candidate>{{0, 1}, {0, 2}, {1, 0}, {1, 2}}));
  }
}

TEST(Generation, IsTheSameForTheSameSeed) {
  const Space space = testing::landscape_space();
  const std::vector<Scored> scored = {{Candidate(8, 1), 2.0}, {Candidate(8, 2), 1.0}, {Candidate(8, 3), std::nullopt}};
  std::mt19937_64 a(5), b(5), c(6);
  const auto next = [&](std::mt19937_64& random) {
    return next_candidates(SearchKind::kGenetic, space, scored, {}, kAll, 20, {}, random);
  };
  const std::vector<Candidate> first = next(a);
  EXPECT_EQ(first.size(), 20);
  EXPECT_EQ(first, next(b));
  EXPECT_NE(first, next(c));
}

TEST(Generation, IsRandomWhereAllHaveFailed) {
  const Space space = testing::landscape_space();
  std::mt19937_64 random(5);
  EXPECT_EQ(
      next_candidates(SearchKind::kGenetic, space, {{Candidate(8, 1), std::nullopt}}, {}, kAll, 5, {}, random).size(),
      5);
}

/// The best of `generations` times `population` candidates.
double best_us(SearchKind kind, uint64_t seed, int generations, size_t population) {
  const Space space = testing::landscape_space();
  std::mt19937_64 random(seed);
  std::set<Candidate> seen;
  std::vector<Scored> all, last;
  for (int g = 0; g < generations; ++g) {
    std::vector<Scored> parents = last;
    for (Scored& elite : select(all, 4)) parents.push_back(std::move(elite));
    last.clear();
    for (Candidate& c : next_candidates(kind, space, parents, seen, kAll, population, {}, random)) {
      seen.insert(c);
      last.push_back({c, testing::landscape_us(c)});
    }
    all.insert(all.end(), last.begin(), last.end());
  }
  return *select(all, 1).at(0).us;
}

TEST(Genetic, BeatsRandomSearchByAFifthOverFiftySeeds) {
  double logarithms = 0;
  int wins = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const double genetic = best_us(SearchKind::kGenetic, seed, 20, 16);
    const double random = best_us(SearchKind::kRandom, seed, 20, 16);
    logarithms += std::log(random / genetic);
    wins += genetic < random;
  }
  EXPECT_GE(std::exp(logarithms / 50), 1.2);  // the geometric mean of random search's time over the genetic one's
  EXPECT_GE(wins, 45);
}

}  // namespace
}  // namespace tc::tune
