#pragma once

#include <optional>

#include "tc/ir/program.h"

namespace tc::ir {

/// A sum of products that is zero where a factor would be read outside of its tensor, with zeros in the place of that
/// factor:
///     O(f,y) +=! y + r >= 1 && y + r <= H ? I(y + r - 1) * W(f,r) : 0
///         ==>   O(f,y) +=! (y + r >= 1 && y + r <= H ? I(y + r - 1) : 0) * W(f,r)
/// Conditions on a reduction index alone become its range. Nothing where the value is no such choice, or where a part
/// of the condition is no edge of a factor: `k <= m ? A(m,k) * B(k,n) : 0` hides elements of B, which may be anything.
/// Nor where another factor would read beyond its tensor then. Where the other factor of a term that does not exist is
/// infinite or a NaN, the sum becomes a NaN (T5 allows it; not for strict kernels). Of a specialised Program, after
/// plain_choices().
std::optional<Statement> guard_factors(const Program& program, Statement statement);

}  // namespace tc::ir
