#pragma once

#include <string>
#include <vector>

#include "tc/options/options.h"
#include "tc/poly/scop.h"

namespace tc::poly {

/// Finds a schedule: which statements share loops, and in which order the loops stand.
///
///     sequence                          band [i, j]  permutable, coincident
///       S0_init: band [i, j]      ==>     sequence
///       S0:      band [i, j, k]             S0_init
///                                           S0: band [k]  permutable
///
/// Statements are clustered outside isl's scheduler: each begins alone; two clusters merge when that stays convex (no
/// third cluster on a path of dependences between them) and the strategy accepts the band that they would share. That
/// band has one member for each pair of dimensions that all dependences between the two keep equal; so a merge
/// carries no dependence, and every member that was coincident stays so. What is left of the statements' dimensions
/// below a shared band is scheduled in the same way, from the outside to the inside.
///   kMin                 no merge
///   kPreserve3Coincident a merge keeps as many coincident members as either side has, or three
///   kMax                 every merge that has a member; and neighbours that then depend on each other and share none
///                        run one behind the other by a constant shift: T(i) at i, O(i) += T(i + k) at i + k's largest.
///                        With allow_skewing it is isl's own scheduler that merges those.
///   absent               kMax without shifts: they cost parallelism
/// Members of extent 1 do not count. Among several merges the one with most coincident members goes first.
///
/// Bands come out permutable where they are; a reduction's own loops are permutable but not coincident. Shifts that
/// fail the exact legality test are dropped. Before: any legal schedule; it is ignored.
/// Errors: the context's budget.
Result<Scop> schedule(const Scop& scop, const options::SchedulerOptions& options);

/// Statements that schedule() gives outermost loops of their own, beside others'.
struct Apart {
  std::vector<std::string> first, second;  ///< ids, in program order; the second come behind the first
  std::string reason;                      ///< "the second uses values of the first in other iterations than ..."
};

/// Why statements that follow or depend on each other share no loop in schedule()'s result for the same arguments.
/// Errors: the context's budget.
Result<std::vector<Apart>> why_apart(const Scop& scop, const options::SchedulerOptions& options);

}  // namespace tc::poly
