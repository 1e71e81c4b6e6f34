#pragma once

#include <string>
#include <vector>

#include "tc/ir/program.h"
#include "tc/ir/ranges.h"
#include "tc/support/result.h"

namespace tc::ir {

/// Proves with isl that every affine access stays inside its tensor, and that `=` writes no element twice (C7), for all
/// sizes that meet the preconditions.
/// What holds for some sizes only becomes a precondition (R7); what holds for none is an error. So is a result with
/// declared extents of which inferred ranges write a part (R10).
/// Accesses through data-dependent subscripts are left to run_time_checks().
Result<Program> prove_bounds(Ranged ranged, const Deadline& deadline);

/// A subscript that only a run can check (C8, --check_bounds): 0 <= subscript < extent, wherever `guard` holds.
struct RunTimeCheck {
  std::string statement;  ///< its id
  std::string tensor;
  int dimension = 0;
  Halide::Expr subscript;
  Halide::Expr extent;
  Halide::Expr guard;  ///< undefined: always
  bool is_write = false;
  SourceRange range;
};

/// All data-dependent subscripts of a Program, in program order.
std::vector<RunTimeCheck> run_time_checks(const Program& program);

}  // namespace tc::ir
