#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Replaces an index that a left side divides by its quotient and its remainder, each an index of its own. Where the
/// left side does not have the remainder, it is a reduction index:
///     P(m, n / 2) max=! C(m, n)             ==>   P(m, n) max=! C(m, 2 * n + n_rest)        n_rest in 0:2
///     Q(n / 64, m, n % 64) = C(m, n)        ==>   Q(n, m, n_rest) = C(m, 64 * n + n_rest)   n_rest in 0:64
/// Then no two instances of different results write the same element, which strategies rely on. Where the first or the
/// last run of a reduction is not whole, what lies outside combines the operator's identity. Other statements whose
/// runs are not whole stay as they are, and so do left sides that read data. Of a specialised Program.
ir::Program split_quotients(ir::Program program);

}  // namespace tc::gpu
