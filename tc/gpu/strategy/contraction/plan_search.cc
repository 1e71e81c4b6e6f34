#include "tc/gpu/strategy/contraction/plan_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tc::gpu {
namespace {

struct Bound {
  double least_cycles = 0;
  size_t shape = 0;
};

struct Found {
  ContractionPlan plan;
  size_t shape = 0;
};

/// Of plans that take as long, that of an earlier shape comes first.
bool comes_before(const Found& a, const Found& b) {
  return a.plan.cycles != b.plan.cycles ? a.plan.cycles < b.plan.cycles : a.shape < b.shape;
}

void keep_best(Found candidate, size_t count, std::vector<Found>& found) {
  if (found.size() == count && !comes_before(candidate, found.back())) return;
  const auto same = std::find_if(found.begin(), found.end(), [&](const Found& other) {
    return other.plan.cycles == candidate.plan.cycles && options_of(other.plan) == options_of(candidate.plan);
  });
  if (same != found.end()) {
    if (!comes_before(candidate, *same)) return;
    found.erase(same);
  }
  found.insert(std::upper_bound(found.begin(), found.end(), candidate, comes_before), std::move(candidate));
  if (found.size() > count) found.pop_back();
}

}  // namespace

std::vector<ContractionPlan> best_of_shapes(const BoundedShapes& shapes, size_t count, double most_cycles) {
  std::vector<Bound> bounds;
  for (size_t shape = 0; shape < shapes.count; ++shape) {
    const double least = shapes.least_cycles(shape);
    if (std::isfinite(least) && least <= most_cycles) bounds.push_back({least, shape});
  }
  // Only as many are sorted as are planned.
  const auto is_behind = [](const Bound& a, const Bound& b) {
    return a.least_cycles != b.least_cycles ? a.least_cycles > b.least_cycles : a.shape > b.shape;
  };
  std::make_heap(bounds.begin(), bounds.end(), is_behind);
  std::vector<Found> found;
  while (!bounds.empty()) {
    std::pop_heap(bounds.begin(), bounds.end(), is_behind);
    const Bound next = bounds.back();
    bounds.pop_back();
    if (found.size() == count && next.least_cycles > found.back().plan.cycles) break;
    if (std::optional<ContractionPlan> plan = shapes.plan(next.shape)) {
      if (plan->cycles <= most_cycles) keep_best({*std::move(plan), next.shape}, count, found);
    }
  }
  std::vector<ContractionPlan> result;
  for (Found& one : found) result.push_back(std::move(one.plan));
  return result;
}

void keep_best(ContractionPlan plan, size_t count, std::vector<ContractionPlan>& found) {
  if (found.size() == count && found.back().cycles <= plan.cycles) return;
  const auto same = [&](const ContractionPlan& other) {
    return other.cycles == plan.cycles && options_of(other) == options_of(plan);
  };
  if (std::any_of(found.begin(), found.end(), same)) return;
  const auto at = std::upper_bound(found.begin(), found.end(), plan,
                                   [](const auto& a, const auto& b) { return a.cycles < b.cycles; });
  found.insert(at, std::move(plan));
  if (found.size() > count) found.pop_back();
}

}  // namespace tc::gpu
