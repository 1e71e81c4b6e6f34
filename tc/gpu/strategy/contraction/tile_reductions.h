#pragma once

#include <optional>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// A statement behind a contraction that may reduce within its tiles.
struct ReductionBehind {
  size_t statement = 0;  ///< its number in the Scop
  TileReduction reduction;
};

/// The statements behind a contraction and its pooled statements that reduce what is made of its results alone. None
/// where other statements than products go through the results anyway: they reduce them on the way. Of those that are
/// returned, none reads what a statement between it and the contraction writes.
std::vector<ReductionBehind> reductions_behind(const poly::Scop& scop, const Contraction& contraction);

/// The reduction of a contraction's points, which may be behind it, that a statement is.
std::optional<TileReduction> reduction_of_points(const poly::Scop& scop, const Contraction& contraction,
                                                 size_t statement);

/// Whether blocks reduce their results in less time than a kernel of its own takes, which reads them all: nothing hides
/// what a block computes when its product is done.
bool gains_in_tiles(const poly::Scop& scop, const Contraction& contraction, const TileReduction& reduction,
                    const Device& device);

/// Whether a block of the plan reduces its tile to results, or parts of results, of its own.
bool reduces_in_tiles(const Contraction& contraction, const ContractionPlan& plan, const TileReduction& reduction);

/// Whether a tile has several parts of an axis, as those of a pool: P(m,n) max=! C(2 * m + i,n).
bool has_several_parts(const ContractionPlan& plan, const TileReduction& reduction, size_t axis);

/// How the threads of a block that have partial results of one element combine them.
struct ThreadReduction {
  std::vector<int> lane_masks;  ///< lanes of a warp whose numbers differ by these bits exchange theirs
  int64_t slots = 1;            ///< partial results of an element after that, which shared memory brings together
  int64_t elements = 1;         ///< that a block has
  std::vector<int64_t> lanes;   ///< per parallel axis: threads along it that exchange theirs
  /// Per parallel axis with several parts in a tile, of the values of a part: those that neighbouring registers have,
  /// and those that registers `group` apart have.
  std::vector<int64_t> low, high;
};
/// None where a part's values lie in several warps, or threads of a warpgroup have some axes of the rows in common, and
/// not others.
std::optional<ThreadReduction> thread_reduction(const ContractionPlan& plan, const TileReduction& reduction);

/// Bytes of shared memory that reductions in tiles need, as plan.shared_bytes() counts them: `end` is where they begin.
int64_t shared_end_of_reductions(const Contraction& contraction, const ContractionPlan& plan, int64_t end);

}  // namespace tc::gpu
