#pragma once

#include <functional>
#include <string>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Replaces exp(v - R), where R is a maximum of v, or a minimum likewise, by a power of two, whose exponent is rounded
/// once more. On a GPU exp is a power of two behind a reduction of its range.
///     top(n) max=! x(n,d)                              top(n) max=! x(n,d)
///     total(n) +=! exp(x(n,d) - top(n))         ==>    total(n) +=! exp2((x(n,d) - top(n)) * 1.442695)
///     O(n,d) = half(exp(x(n,d) - top(n)) / ...)        O(n,d) = half(exp2((x(n,d) - top(n)) * 1.442695) / ...)
/// Only in sums of all of these powers, one of which is the greatest, and in 16-bit floats: there what the others lose,
/// |v - R| exp(v - R) units of roundoff, is less than a rounding. And in temporaries that nothing else reads. Rows keep
/// exp if something else has it too, since it may be computed once. `is_apart` says of a tensor that its statements
/// stay as they are. Of a specialised Program; not of strict ones.
ir::Program sums_of_powers(ir::Program program,
                           const std::function<bool(const ir::Program&, const std::string&)>& is_apart);

}  // namespace tc::gpu
