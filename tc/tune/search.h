#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tc/tune/result.h"
#include "tc/tune/space.h"

namespace tc::tune {

/// A candidate and how fast it is. Fitness is 1 / us; a candidate that fails has none and is no parent.
struct Scored {
  Candidate candidate;
  std::optional<double> us;
};

/// Of Tensor Comprehensions' genetic search (paper 2018, section 6).
struct GeneticOptions {
  double crossover_rate = 0.8;  ///< of children that have three parents; the others have one
  double mutation_rate = 0.1;   ///< chance of each parameter of a child to be drawn anew
};

/// Holds for a candidate that may be tried; cheap.
using Feasible = std::function<bool(const Candidate&)>;

/// Draws a parent: with a probability in proportion to its fitness. `scored` has at least one that did not fail.
const Candidate& draw_parent(const std::vector<Scored>& scored, std::mt19937_64& random);

/// Three-parent uniform crossover: each parameter is that of one of the three, with equal chances.
Candidate cross(const Candidate& a, const Candidate& b, const Candidate& c, std::mt19937_64& random);

/// Draws each parameter anew with the given chance.
Candidate mutate(const Space& space, Candidate candidate, double rate, std::mt19937_64& random);

/// A point of the space, all with equal chances.
Candidate random_candidate(const Space& space, std::mt19937_64& random);

/// Up to `count` candidates to try next: none is in `seen`, none twice, all feasible. Fewer where the space has no
/// more, or where they are too rare to be found.
///
/// Genetic: `scored` is the generation before; its best (the elites that the caller keeps in it) are parents again.
/// A child that is known already is mutated until it is new. Without a parent that did not fail, and in random search,
/// every candidate is drawn from the whole space. The same arguments, with the same state of `random`, give the same
/// candidates.
std::vector<Candidate> next_candidates(SearchKind kind, const Space& space, const std::vector<Scored>& scored,
                                       const std::set<Candidate>& seen, const Feasible& feasible, size_t count,
                                       const GeneticOptions& options, std::mt19937_64& random);

/// The parents of the next generation: the `count` fastest of all, fastest first.
std::vector<Scored> select(std::vector<Scored> scored, size_t count);

}  // namespace tc::tune
