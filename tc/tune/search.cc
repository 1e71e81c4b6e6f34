#include "tc/tune/search.h"

#include <algorithm>

#include "tc/support/check.h"

namespace tc::tune {
namespace {

/// How often a candidate is drawn before the space counts as exhausted.
constexpr int kTries = 200;

// The distributions of <random> differ from library to library; these do not.
size_t below(size_t end, std::mt19937_64& random) { return static_cast<size_t>(random() % end); }
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

class Breeder {
 public:
  Breeder(SearchKind kind, const Space& space, const std::vector<Scored>& scored, const GeneticOptions& options,
          std::mt19937_64& random)
      : space_(space), scored_(scored), options_(options), random_(random) {
    const bool has_parents = std::ranges::any_of(scored, [](const Scored& s) { return s.us.has_value(); });
    breeds_ = kind == SearchKind::kGenetic && has_parents;
  }

  /// The `attempt`-th draw of one child: the more have failed, the wilder.
  Candidate draw(int attempt) {
    if (!breeds_ || attempt > kTries / 2) return random_candidate(space_, random_);
    Candidate child =
        uniform(random_) < options_.crossover_rate ? cross(parent(), parent(), parent(), random_) : parent();
    const double rate = attempt == 0 ? options_.mutation_rate : std::min(0.5, options_.mutation_rate * (1 + attempt));
    return mutate(space_, std::move(child), rate, random_);
  }

 private:
  const Candidate& parent() { return draw_parent(scored_, random_); }

  const Space& space_;
  const std::vector<Scored>& scored_;
  const GeneticOptions& options_;
  std::mt19937_64& random_;
  bool breeds_ = false;
};

}  // namespace

const Candidate& draw_parent(const std::vector<Scored>& scored, std::mt19937_64& random) {
  double total = 0;
  const Scored* last = nullptr;
  for (const Scored& s : scored) {
    if (s.us) total += 1 / *s.us, last = &s;
  }
  TC_CHECK(last != nullptr, "all candidates have failed");
  double left = uniform(random) * total;
  for (const Scored& s : scored) {
    if (!s.us) continue;
    left -= 1 / *s.us;
    if (left < 0) return s.candidate;
  }
  return last->candidate;
}

Candidate cross(const Candidate& a, const Candidate& b, const Candidate& c, std::mt19937_64& random) {
  const Candidate* const parents[] = {&a, &b, &c};
  Candidate child;
  for (size_t p = 0; p < a.size(); ++p) child.push_back(parents[below(3, random)]->at(p));
  return child;
}

Candidate mutate(const Space& space, Candidate candidate, double rate, std::mt19937_64& random) {
  for (size_t p = 0; p < candidate.size(); ++p) {
    if (uniform(random) < rate) {
      candidate[p] = static_cast<uint16_t>(below(space.parameters[p].values.size(), random));
    }
  }
  return candidate;
}

Candidate random_candidate(const Space& space, std::mt19937_64& random) {
  Candidate candidate;
  for (const Parameter& p : space.parameters)
    candidate.push_back(static_cast<uint16_t>(below(p.values.size(), random)));
  return candidate;
}

std::vector<Candidate> next_candidates(SearchKind kind, const Space& space, const std::vector<Scored>& scored,
                                       const std::set<Candidate>& seen, const Feasible& feasible, size_t count,
                                       const GeneticOptions& options, std::mt19937_64& random) {
  Breeder breeder(kind, space, scored, options, random);
  std::set<Candidate> drawn;
  std::vector<Candidate> result;
  int attempt = 0;
  while (result.size() < count && attempt < kTries) {
    Candidate candidate = breeder.draw(attempt++);
    if (seen.contains(candidate) || !drawn.insert(candidate).second || !feasible(candidate)) continue;
    result.push_back(std::move(candidate));
    attempt = 0;
  }
  return result;
}

std::vector<Scored> select(std::vector<Scored> scored, size_t count) {
  std::erase_if(scored, [](const Scored& s) { return !s.us; });
  std::ranges::stable_sort(scored, {}, [](const Scored& s) { return *s.us; });
  if (scored.size() > count) scored.resize(count);
  return scored;
}

}  // namespace tc::tune
