#pragma once

#include <optional>

#include "tc/ir/program.h"

namespace tc::ir {

/// A sum of products that a condition on indices may make zero, with the condition on the factors whose subscripts it
/// is about:
///     O(f,y) +=! y + r >= 1 && y + r <= H ? I(y + r - 1) * W(f,r) : 0
///         ==>   O(f,y) +=! (y + r >= 1 && y + r <= H ? I(y + r - 1) : 0) * W(f,r)
/// Nothing where the value is no such choice, or a part of the condition is about no single factor. Where a hidden term
/// has an infinity or a NaN in the other factor, the sum becomes a NaN (T5 allows it; not for strict kernels). Of a
/// specialised Program, after plain_choices().
std::optional<Statement> guard_factors(const Program& program, Statement statement);

}  // namespace tc::ir
