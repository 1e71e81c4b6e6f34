#pragma once

#include <string>

#include "tc/poly/scop.h"
#include "tc/support/result.h"

namespace tc::poly {

/// One loop over the iterations of two that are neighbours in a sequence, under the name of the first.
///     sequence                 loop:i
///       loop:i: S0       ==>     sequence S0, S1
///       loop:i_1: S1
/// Refused where a launch begins with one of them, and with a pair of instances in wrong order.
Result<Scop> merge_loops(const Scop& scop, const std::string& first, const std::string& second);

/// Moves a loop, or a statement, and all below it under a loop of what stands beside it in a sequence: each instance to
/// the first iteration that needs it if it stands in front, else to the last one that it needs.
///     sequence                 loop:i_outer
///       loop:i_outer             sequence
///         S0             ==>       S0
///       loop:i: S1                 loop:i: S1         of this tile
/// Errors: a launch begins with what is to move; an instance that nothing below the loop needs, or that needs nothing
/// of it; a pair of instances in wrong order.
Result<Scop> sink_below(const Scop& scop, const std::string& name, const std::string& loop);

}  // namespace tc::poly
