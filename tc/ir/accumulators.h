#pragma once

#include "tc/ir/program.h"

namespace tc::ir {

/// T3: sums and products over narrow types get a temporary of the accumulator's type, which is converted once.
///     C(i, j) +=! v        ==>   C_sum(i, j) +=! v;   C(i, j) = float16(C_sum(i, j))
///     C(i, j) += v         ==>   C_sum(i, j) +=! v;   C(i, j) = float16(float32(C(i, j)) + C_sum(i, j))
///     C(n + 2) +=! v       ==>   C_sum(n) +=! v;         C(n + 2) = float16(C_sum(n))
///     H(I(i)) += v         ==>   H_sum(d0) = float32(H(d0));   H_sum(I(i)) += v;   H(d0) = float16(H_sum(d0))
/// Afterwards every statement's accumulator is its tensor's type. After snapshot_own_reads(), so that no value reads
/// its own left side; before fill_temporaries().
Program widen_accumulators(Program program);

/// The same for a specialised Program whose sums and products over float32 are to be accumulated in float64: of very
/// many elements one after the other, float32 keeps but few digits.
Program accumulated_in_float64(Program program);

}  // namespace tc::ir
