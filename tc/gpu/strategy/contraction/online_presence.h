#pragma once

#include "tc/gpu/strategy/contraction/contraction.h"

namespace tc::gpu {

/// Of a streamed chain with an OnlineReduction R, where points are not zero whatever R is, over the first product's
/// parallel axes; undefined: everywhere. A row without such points has sums that are zero, even if R is the identity,
/// or NaN.
///     P(m,n) = keep(n) ? exp(S(m,n) - top(m)) : 0
Halide::Expr presence(const poly::Scop& scop, const Contraction& first, const Contraction& second);

}  // namespace tc::gpu
