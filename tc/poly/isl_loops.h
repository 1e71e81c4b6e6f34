#pragma once

#include "tc/poly/loops.h"

namespace tc::poly {

/// generate_loops() for the scop's schedule tree, or a part of it, by isl's code generation, which takes any tree and
/// milliseconds for each leaf.
loops::NodePtr isl_loops(const Scop& scop, const isl::schedule& schedule, const LoopOptions& options);

/// A value over parameters as an expression over variables with their names.
LoopExpr loop_expr(const isl::pw_aff& value);

}  // namespace tc::poly
