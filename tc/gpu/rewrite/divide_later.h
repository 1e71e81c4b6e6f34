#pragma once

#include "tc/ir/program.h"

namespace tc::gpu {

/// Divides the sums of a product by what its rows have in common, instead of an operand's elements, as the textbook's
/// softmax does:
///     top(n) max=! S(n,m)                                      top(n) max=! S(n,m)
///     L(n) +=! exp(S(n,m) - top(n))                            L(n) +=! exp(S(n,m) - top(n))
///     P(n,m) = float16(exp(S(n,m) - top(n)) / L(n))     ==>    P(n,m) = float16(exp(S(n,m) - top(n)))
///     O(n,d) +=! P(n,m) * V(m,d)                               O(n,d) +=! P(n,m) * V(m,d)
///                                                              O(n,d) = O(n,d) / L(n)
/// Then the product may follow its rows before all of them are known (strategy/contraction/online_reduction.h). The
/// operand is a temporary that the product alone reads, as a number of 16 bits. `E * R(n)` with R(n) = 1 / L(n) is such
/// a quotient, too; the sums are multiplied by 1 / L(n) then. What is left of it is the exponential of a number
/// less the maximum of all such numbers: at most 1, so that nothing overflows. L is their sum, and at least 1, so that
/// what is left has no fewer digits than the quotient. Other powers of a multiple of such a difference do as well:
/// exp((S(n,m) - top(n)) / 8), exp2(least(n) - S(n,m)). A difference of rounded products, S * c - top * c, may be far
/// from 0 where S is the maximum, and stays. What is left is computed once, for the operand and for L. Of a specialised
/// Program.
ir::Program divide_later(ir::Program program);

}  // namespace tc::gpu
