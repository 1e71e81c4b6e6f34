#pragma once

#include <set>
#include <tuple>

#include "tc/ir/deadline.h"
#include "tc/ir/program.h"
#include "tc/support/result.h"

namespace tc::ir {

/// What must hold for a range to be one; proved, made a precondition or refused by prove_bounds().
struct Requirement {
  Halide::Expr condition;  ///< bool over sizes and specialised scalars
  std::string complaint;   ///< what is wrong where it does not hold: "the range of 'i' is empty"
  SourceRange range;
};

/// A Program whose indices and extents are all defined.
struct Ranged {
  Program program;
  std::vector<Requirement> requirements;
  /// (statement, access, dimension): in bounds because a range was made so, for accesses with symbolic strides
  /// (`sh * h + kh`) that no affine proof covers.
  std::set<std::tuple<size_t, size_t, int>> in_bounds;
};

/// Finds the range of every index that no `where` gives, and the extents of every tensor that nobody declares.
///
/// In rounds (R2): an index that stands alone, or with indices that have a range, in a subscript takes the largest
/// interval, by Halide's interval solver, for which all its unguarded reads stay inside for all values of the others,
/// from 0 on (R1). When no round helps, an index of the left side takes the extent of its tensor (R3): declared, or
/// from the statements that have their ranges. What is left of an in-out tensor's extents becomes a size of its own,
/// "H.0", that the caller's tensor gives. An index that is still open is bounded by guarded reads only, and takes the
/// largest range in which each guard implies its read's bounds (R6), by isl.
///
/// A statement is examined again only where something that it depends on has changed.
///
/// Errors (R4): an index that nothing bounds; indices that appear only together, with the candidates; an extent that
/// nothing determines.
/// A range may be empty because a tensor is, but not because a window is larger than its tensor (R4), nor where a
/// `where` says so (C10): those are the requirements.
Result<Ranged> infer_ranges(Program program, const Deadline& deadline);

}  // namespace tc::ir
