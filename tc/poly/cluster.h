#pragma once

#include <string>
#include <vector>

#include "tc/options/options.h"
#include "tc/poly/alignment.h"

namespace tc::poly {

/// A set of statements under common loops, as numbers: what clustering decides before any tree is made.
struct Cluster {
  std::vector<size_t> statements;            ///< ascending
  std::vector<std::vector<int>> members;     ///< of the common band: per member, the dimension of each statement
  std::vector<std::vector<int64_t>> shifts;  ///< like members: what is added to the dimension; empty: nothing
  std::vector<std::vector<int>> remaining;   ///< per statement, the dimensions below the band, in tuple order
};

/// Clusters `statements`, of which the dimensions `open` are not yet scheduled, by the fusion strategy; in an order
/// that the dependences allow, nearest to the program's.
std::vector<Cluster> cluster(const Alignment& alignment, const std::vector<size_t>& statements,
                             const std::vector<std::vector<int>>& open, options::Fusion fusion);

/// Two neighbours of cluster()'s, and why they are not one: a sentence whose subjects are "the first" and "the second".
struct Refusal {
  size_t first = 0;   ///< its place in cluster()'s result
  size_t second = 0;  ///< likewise, behind it
  std::string reason;
};

/// Why clusters that follow or depend on each other are apart, of cluster()'s own result for these arguments.
std::vector<Refusal> why_apart(const Alignment& alignment, const std::vector<Cluster>& clusters,
                               options::Fusion fusion);

/// Whether no dependence is between iterations of the member: its statements' own, and none at all if it has shifts.
bool coincident(const Alignment& alignment, const Cluster& cluster, size_t member);

}  // namespace tc::poly
