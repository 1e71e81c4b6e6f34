#pragma once

#include <functional>
#include <string>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Whether a reduction's neighbours in memory are of other results.
bool reduces_across_memory(const ir::Program& program, const ir::Statement& statement);

/// Replaces temporaries of cheap values and at least `large` elements by those values, where each reader looks at an
/// element no more than once:
///     centered(n,c) = I(n,c) - mean(c)
///     var(c) +=! centered(n,c) * centered(n,c)   ==>   var(c) +=! (I(n,c) - mean(c)) * (I(n,c) - mean(c))
/// The memory that they took would be written and read again. Values with functions and quotients too, where a reader
/// is a reduction whose elements `leave_chip` until it is done: those across memory. A temporary stays where its
/// readers would read and compute more than it saves: a blur of three columns and three rows would be a sum of nine. A
/// float that a reader compares stays: all of its readers are to see the same number. Of a specialised Program.
ir::Program recompute_temporaries(
    ir::Program program, int64_t large = 1 << 16,
    const std::function<bool(const ir::Program&, const ir::Statement&)>& leave_chip = reduces_across_memory);

/// Replaces temporaries of any size beside contractions. `is_contraction` says whether a statement is one by itself.
/// Operands that are moved are read where they come from. Zeros that a guard puts around them go along:
///     T(k,m) = k >= 2 ? A(m,k - 2) : 0
///     C(m,n) +=! T(k,m) * B(k,n)         ==>   C(m,n) +=! (k >= 2 ? A(m,k - 2) : 0) * B(k,n)
/// What inputs make for rows or columns of results is computed for each result, if that takes `most_operations` at
/// most, which should take less time than a launch:
///     v(n) = b(n) * rsqrt(s(n))
///     C(m,n) = C(m,n) * v(n)             ==>   C(m,n) = C(m,n) * (b(n) * rsqrt(s(n)))
/// After recompute_temporaries(), which leaves operands that are read often. Of a specialised Program.
ir::Program recompute_beside_products(
    ir::Program program, int64_t most_operations,
    const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction);

/// Replaces what reductions of one product's results make for rows of another's, which goes on with these results:
///     total(m) +=! P(m,n)
///     r(m) = 1 / total(m)
///     O(m,e) = A(m,e) * r(m)             ==>   O(m,e) = A(m,e) * (1 / total(m))
/// Then no statement keeps the two apart. Of a specialised Program.
ir::Program recompute_rows_of_chains(
    ir::Program program, const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction);

/// Replaces temporaries that nobody reads but copies of them, of at most `small` elements:
///     W_flipped(r) = W(2 - r)
///     W_copy(r) = W_flipped(r)           ==>   W_copy(r) = W(2 - r)
/// A launch takes longer than their elements do. Of a specialised Program.
ir::Program recompute_in_copies(ir::Program program, int64_t small);

/// Whether an expression compares floats, and reads the tensor for that. Two computations of one value may be rounded
/// differently, which arithmetic bears and a comparison does not: of a maximum, no element might be left that equals
/// it.
bool compares_floats(const Halide::Expr& expr, const std::string& tensor);

}  // namespace tc::gpu
