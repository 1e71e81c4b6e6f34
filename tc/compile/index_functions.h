#pragma once

#include "tc/ir/program.h"
#include "tc/support/result.h"

namespace tc::compile {

/// Subscripts that intrinsics make of indices alone, such as X(bitwise_xor(i, 1)), are no data: they stay inside their
/// tensors, or are an error (C8). No prover knows the intrinsics, so the interpreter runs through all values.
/// Errors: the greatest subscript outside; more than kMaxIndexValues values.
Result<void> check_index_functions(const ir::Program& specialised);

inline constexpr int64_t kMaxIndexValues = int64_t{1} << 22;

}  // namespace tc::compile
