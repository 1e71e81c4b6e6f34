#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// Shapes of which a search may plan only a part: their plans, in cycles at least and in full.
struct BoundedShapes {
  size_t count = 0;
  /// No more than the cycles of a shape's plan; infinity: it has none.
  std::function<double(size_t shape)> least_cycles;
  std::function<std::optional<ContractionPlan>(size_t shape)> plan;
};

/// The `count` plans of fewest cycles, the best first, none twice: those that keep_best() keeps of all shapes in their
/// order. Shapes are planned in the order of their bounds, and only while a bound does not exceed `most_cycles`, nor
/// what the last plan that is kept takes.
std::vector<ContractionPlan> best_of_shapes(const BoundedShapes& shapes, size_t count, double most_cycles = kNoLimit);

/// Keeps the best of what was found, in order, at most `count` and none twice.
void keep_best(ContractionPlan plan, size_t count, std::vector<ContractionPlan>& found);

}  // namespace tc::gpu
