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
/// into computed places. Statements that read what others write are gone through from the last to the first; the
/// temporaries that their derivatives read are computed again. Of a maximum or a minimum the elements that are the
/// best share its gradient alike. A branch that is not chosen (by ?:, relu, or max and min of two) gets 0, whatever its
/// slope is there. Of float16 and bfloat16, sums and products of elements are summed as T3 has it; everything else is
/// computed, and summed, in float32 and rounded once to the type of the tensor that it belongs to.
///
/// Errors, at their place: a result that is updated from the caller's values, is overwritten in part, or is reduced by
/// another operator than +=! max=! min=! ; a maximum of something else than an input's elements; a function whose
/// derivative is not known; no float input.
Result<std::string> gradient(const TypedDefinition& definition, const SourcePtr& source, InferredRanges inferred);

}  // namespace tc::lang
