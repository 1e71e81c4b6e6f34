#pragma once

#include <string>

#include "tc/lang/single_assignment.h"
#include "tc/lang/typed_ast.h"
#include "tc/support/result.h"

namespace tc::lang {

/// The text of a def NAME_gradient that computes the gradients of a def's float inputs: its parameters are what it
/// reads of the first's (inputs, scalars, results), then d_R for the gradient of each float result R; its results are
/// d_A for each float input A. It is reverse-mode differentiation, statement by statement:
///
///     O(m,n) +=! A(m,k) * B(k,n)   ==>   d_A(m,k) +=! d_O(m,n) * B(k,n)
///                                        d_B(k,n) +=! d_O(m,n) * A(m,k)
///
/// A read whose subscripts are not all of the statement's indices becomes a sum, one with computed subscripts a sum
/// into computed places. Each state of a tensor is a tensor (single_assignment.h); temporaries that derivatives read
/// are computed again. docs/gradients.md has the conventions: ties, zeros, branches, narrow floats, names.
///
/// Errors, at their place: a function whose derivative the language cannot express; no float input, no float result.
Result<std::string> gradient(const TypedDefinition& definition, const SourcePtr& source, InferredRanges inferred);

}  // namespace tc::lang
