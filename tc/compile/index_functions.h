#pragma once

#include "tc/ir/deadline.h"
#include "tc/ir/program.h"
#include "tc/support/result.h"

namespace tc::compile {

/// Subscripts that intrinsics make of indices alone, such as X(bitwise_xor(i, 1)), are no data: they stay inside their
/// tensors, or are an error (C8). No prover knows the intrinsics, so the interpreter runs through all values.
/// Subscripts of more than ir::kMaxIndexValues values are left to the kernel where it checks subscripts at run time.
/// Errors: the greatest subscript outside; more than kMaxIndexValues values otherwise; the deadline.
Result<void> check_index_functions(const ir::Program& specialised, bool checks_at_run_time,
                                   const ir::Deadline& deadline);

}  // namespace tc::compile
