#include "tc/gpu/mapping/hitting_set.h"

#include <algorithm>
#include <limits>
#include <set>

#include "tc/support/check.h"

namespace tc::gpu {
namespace {

using Sets = std::vector<std::vector<int>>;

bool contains(const std::vector<int>& set, int position) {
  return std::find(set.begin(), set.end(), position) != set.end();
}

double weight_of(const std::vector<double>& weights, const std::vector<int>& chosen) {
  double sum = 0;
  for (int position : chosen) sum += weights[static_cast<size_t>(position)];
  return sum;
}

std::vector<int> greedy(const std::vector<double>& weights, Sets wanted) {
  std::vector<int> chosen;
  while (!wanted.empty()) {
    int best = -1;
    double best_worth = -1;
    for (int position = 0; position < static_cast<int>(weights.size()); ++position) {
      const auto served =
          std::count_if(wanted.begin(), wanted.end(), [&](const auto& set) { return contains(set, position); });
      const double worth = static_cast<double>(served) / weights[static_cast<size_t>(position)];
      if (served > 0 && worth > best_worth) best = position, best_worth = worth;
    }
    chosen.push_back(best);
    std::erase_if(wanted, [&](const auto& set) { return contains(set, best); });
  }
  return chosen;
}

/// Branches on the members of the first set that is not hit yet.
class Search {
 public:
  Search(const std::vector<double>& weights, const Sets& wanted, std::vector<int> start, int budget)
      : weights_(weights), wanted_(wanted), best_(std::move(start)), budget_(budget) {
    best_weight_ = weight_of(weights, best_);
  }
  std::vector<int> run() {
    branch(0);
    return best_;
  }

 private:
  void branch(double weight) {
    if (weight >= best_weight_ || --budget_ < 0) return;
    const std::vector<int>* open = nullptr;
    for (const auto& set : wanted_) {
      const bool hit = std::any_of(set.begin(), set.end(), [&](int p) { return contains(chosen_, p); });
      if (!hit && (!open || set.size() < open->size())) open = &set;
    }
    if (!open) {
      best_ = chosen_;
      best_weight_ = weight;
      return;
    }
    for (int position : *open) {
      chosen_.push_back(position);
      branch(weight + weights_[static_cast<size_t>(position)]);
      chosen_.pop_back();
    }
  }

  const std::vector<double>& weights_;
  const Sets& wanted_;
  std::vector<int> best_;
  std::vector<int> chosen_;
  double best_weight_ = 0;
  int budget_;
};

}  // namespace

std::vector<int> min_hitting_set(const std::vector<double>& weights, Sets wanted, int budget) {
  for (auto& set : wanted) {
    TC_CHECK(!set.empty(), "a set that nothing can hit");
    std::sort(set.begin(), set.end());
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<int> chosen = Search(weights, wanted, greedy(weights, wanted), budget).run();
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace tc::gpu
