#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Drops dimensions of one element behind all others, with their subscripts and the indices that run over nothing else:
///     Y(m,n) +=! X(m,k) * W(k,n)     W: 1024 x 1     ==>   Y(m) +=! X(m,k) * W(k)
/// What runs along memory is then the last dimension, on which strategies rely. A tensor keeps one dimension, those
/// that a left side finds by data or by a longer index, and a strided one its last, which says that neighbours along
/// the others lie apart. Of a specialised Program, after order_dims().
ir::Program drop_trailing_units(ir::Program program);

}  // namespace tc::gpu
