#pragma once

#include "tc/ir/convert.h"
#include "tc/ir/deadline.h"
#include "tc/ir/program.h"
#include "tc/lang/typed_ast.h"
#include "tc/support/result.h"

namespace tc::ir {

/// A def as a Program, its ranges and shapes inferred (R1-R6), its accesses proved or turned into preconditions (R7),
/// its updates in place made explicit (C3).
///
/// Statements that the source does not have:
///   - a snapshot `T_old(d0, ...) = T(d0, ...)` before a statement that reads elements of its own left side;
///   - a fill `T(d0, ...) = identity` before one with op=! and data-dependent left subscripts, which then has op= ;
///   - `T_sum`, in which sums and products over narrow types accumulate (T3): see accumulators.h;
///   - a fill `T(d0, ...) = 0` of a temporary that is read where nothing may have written it (R5).
///
/// Integer scalars in subscripts, ranges and guards that bound reads are compiled in (C11): with `scalars` their
/// numbers take their places before anything is inferred, so that the Program is that of the text with the numbers.
/// Without a value for each of them the Program is one for all values, if there is one, and else `open`. Errors:
/// ambiguous, empty and unbounded ranges, accesses out of bounds for all sizes; the deadline is over.
Result<Program> from_lang(const lang::TypedDefinition& definition, const SourcePtr& source,
                          const Deadline& deadline = Deadline(), const ScalarValues& scalars = {});

/// The same for the def of that name; the only def, if `entry` is empty. Errors: no such def, or a choice to make.
Result<Program> from_lang(const lang::TypedProgram& file, const std::string& entry,
                          const Deadline& deadline = Deadline(), const ScalarValues& scalars = {});

}  // namespace tc::ir
