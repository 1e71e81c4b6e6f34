#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/ir/program.h"
#include "tc/ir/prover.h"

namespace tc::ir {

/// A subscript that must stay in 0:extent wherever `guard` holds. An undefined guard always holds.
struct GuardedSubscript {
  Halide::Expr value;
  Halide::Expr extent;
  Halide::Expr guard;
};

struct GuardedRange {
  Halide::Expr begin;
  Halide::Expr end;
  bool beside_guards = false;  ///< an end comes from the subscripts without their guards
  size_t begin_by = 0;         ///< the subscript that sets this end; the number of subscripts where none does
  size_t end_by = 0;
};

/// The largest interval of an index, from 0 on, in which every guard implies the bounds of its subscript (R6). The
/// other indices take all values of their ranges, or from 0 on where they have none. Of several largest, the first.
///
/// Where guards let an index grow without end, the interval ends where it would end without guards, but not before the
/// last read that a guard allows: `j <= i ? A(j) : 0.0` gives `j` the extent of `A`.
/// None where the question is not affine or too hard, or nothing bounds the index.
std::optional<GuardedRange> guarded_range(Prover& prover, const Statement& statement, const std::string& index,
                                          const std::vector<GuardedSubscript>& subscripts);

}  // namespace tc::ir
