#pragma once

#include <cstdint>
#include <functional>

#include "tc/ir/program.h"

namespace tc::gpu {

inline constexpr int64_t kGatheredBytes = int64_t{1} << 28;  ///< of a temporary that a search tries

using IsContraction = std::function<bool(const ir::Program&, const ir::Statement&)>;

/// Copies rows that an index tensor names, where a contraction uses each of them for many results, into a temporary of
/// which loops know where its elements are (paper 2018, section 5.3, on indirect arrays, which stages them by blocks):
///     Z(i, n) +=! E(I(i, j), k) * W(j, k, n)
///         ==>   E_rows(i, j, k) = E(I(i, j), k)
///               Z(i, n) +=! E_rows(i, j, k) * W(j, k, n)
/// Blocks hold boxes of the temporary in shared memory then, as of any operand. Where a temporary would take more than
/// `most_bytes`, the statement stays as it is, and blocks copy its rows from where they are
/// (strategy/contraction/contraction.h). `is_contraction` says whether a statement is a contraction by itself. On a
/// specialised Program.
ir::Program gather_rows(ir::Program program, int64_t most_bytes, const IsContraction& is_contraction);

}  // namespace tc::gpu
