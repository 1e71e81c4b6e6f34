#pragma once

#include "tc/lang/typed_ast.h"

namespace tc::lang {

/// Whether two expressions have the same nodes and types. Positions do not matter, nor lets, whether a cast is
/// implicit, and whether a number or an index becomes an int64 at once. Indices, tensors and scalars are compared by
/// place.
bool same_meaning(const TypedExpr& a, const TypedExpr& b);

/// The same of two defs: their signatures, tensors and statements, but for the defs' names.
bool same_meaning(const TypedDefinition& a, const TypedDefinition& b);

}  // namespace tc::lang
