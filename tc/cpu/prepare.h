#pragma once

#include "tc/ir/layouts.h"
#include "tc/ir/program.h"

namespace tc::cpu {

struct PrepareOptions {
  ir::Layouts layouts;
  int vector_bits = 256;
  int threads = 1;
  bool strict = false;   ///< keep the order of reductions
  int vector_width = 0;  ///< lanes of a reduction's partial results; 0: chosen
};

/// Makes explicit, as statements of their own, what a CPU needs to do a Program's reductions well. To the polyhedral
/// passes the results are tensors and statements like any other. First of the CPU's passes, on a specialised Program.
ir::Program prepare(const ir::Program& program, const PrepareOptions& options);

/// An operand of a contraction that is costly to read as it is, and is used often, is made once, ahead of it. What
/// moves by more than one element along the dimension of the vectors is brought into their order:
///     C(m, n) +=! A(m, k) * B(n, k)       ==>   B_t(k, n) = B(n, k);  C(m, n) +=! A(m, k) * B_t(k, n)
/// and what has to be computed is:
///     C(m, n) += a * A(m, k) * B(k, n)    ==>   C_operand(m, k) = a * A(m, k);  C(m, n) += C_operand(m, k) * B(k, n)
/// and what is read under a guard gets borders:
///     C(i) +=! (i + k >= 1 && i + k <= N ? A(i + k - 1) : 0) * B(k)
///                                     ==>   A_padded(j) = j >= 1 && j <= N ? A(j - 1) : 0;  C(i) +=! A_padded(i + k) *
///                                     B(k)
/// Every value stays the same, and the order of reductions too. What reads nothing but what the caller gives stands at
/// the front, out of the way of fusion.
ir::Program prepare_operands(ir::Program program, const PrepareOptions& options);

/// A reduction that has no dimension for vectors but the one it reduces gets one for its partial results:
///     s(m) +=! x(m, k)   ==>   s_lanes(m, l) +=! x(m, 64 * k_vector + l);  s(m) +=! s_lanes(m, l)
/// and one that has too few results to share among threads is cut into parts:
///     s +=! x(i, j)      ==>   s_lanes(p, l) +=! x(steps * p + i_step, 64 * j_vector + l);  s +=! s_lanes(p, l)
/// Changes the order of the reduction.
ir::Program split_reductions(ir::Program program, const PrepareOptions& options);

}  // namespace tc::cpu
