#pragma once

#include <vector>

namespace tc::gpu {

/// Chooses positions of least total weight such that each of `wanted` contains one of them. Exact, unless the search
/// takes more than `budget` steps: then the best found, never worse than taking, again and again, what serves most for
/// its weight. Weights are positive and every set has a member. The result is sorted.
std::vector<int> min_hitting_set(const std::vector<double>& weights, std::vector<std::vector<int>> wanted,
                                 int budget = 100000);

}  // namespace tc::gpu
