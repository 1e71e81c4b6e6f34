#pragma once

#include <cstddef>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// A statement's reduction indices, as positions among its indices. The one whose next value is farthest away in memory
/// comes first. The largest reads decide; equal distances keep the source's order.
std::vector<size_t> memory_order(const ir::Program& program, const ir::Statement& statement);

/// Puts the reduction indices of sums that read along memory in that order, so that the innermost loop runs along it:
///     s() +=! w(n) * x(m, n)     over n, m   ==>   over m, n
/// The order of the additions changes: not for strict kernels. Contractions choose their own order and stay as they
/// are. Of a specialised Program, before its reductions are cut into parts, which may keep the innermost index whole.
ir::Program reduce_along_memory(ir::Program program);

}  // namespace tc::gpu
