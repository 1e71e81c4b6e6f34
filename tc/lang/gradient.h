#pragma once

#include <string>
#include <vector>

#include "tc/lang/typed_ast.h"
#include "tc/support/result.h"

namespace tc::lang {

/// The text of a def NAME_gradient that computes the gradients of a def's float inputs: its parameters are what it
/// reads of the first's (inputs, scalars), then d_R for the gradient of each float result R; its results are d_A for
/// each float input A. It is reverse-mode differentiation of each statement by itself:
///
///     O(m,n) +=! A(m,k) * B(k,n)   ==>   d_A(m,k) +=! d_O(m,n) * B(k,n)
///                                        d_B(k,n) +=! d_O(m,n) * A(m,k)
///
/// A read whose subscripts are not all of the statement's indices becomes a sum, one with computed subscripts a sum
/// into computed places. `extents` are those of each result, as text over size names.
///
/// Errors, at their place: a result that is written by several statements, is read, is updated from the caller's
/// values, or is reduced by another operator than +=! ; a function whose derivative is not known; no float input.
Result<std::string> gradient(const TypedDefinition& definition, const SourcePtr& source,
                             const std::vector<std::vector<std::string>>& extents);

}  // namespace tc::lang
