#pragma once

#include <set>
#include <string>

#include "tc/lang/typed_ast.h"

namespace tc::lang {

/// float16 and bfloat16.
inline bool is_narrow_float(ScalarType type) { return is_float(type) && bits_of(type) == 16; }

/// Source text of a typed expression of a statement, parenthesised wherever that could matter. Lets are replaced by
/// what they stand for, implicit casts are left out: analysed again, the text has the same meaning and type. `widened`:
/// elements and scalars of float16 and bfloat16 are read as float32, in which the text then computes.
std::string typed_text(const TypedDefinition& definition, const TypedStatement& statement, const TypedExpr& expr,
                       bool widened = false);

/// The same of index arithmetic where the language computes it exactly: in a subscript, a range or a dimension.
std::string index_text(const TypedDefinition& definition, const TypedStatement& statement, const TypedExpr& expr);

/// A tensor without its subscripts, as the def of a gradient reads it: an input or a result without dimensions is a
/// parameter of one element there, `s(0)`, since a scalar is no tensor and has no gradient.
std::string reference_text(const Tensor& tensor);

/// The names of a def's tensors, scalars, sizes, indices and lets: what a name that is made up must not be.
std::set<std::string> names_in(const TypedDefinition& definition);

/// "(i, j + 1)"; nothing for no subscripts.
std::string subscripts_text(const TypedDefinition& definition, const TypedStatement& statement,
                            const std::vector<TypedExprPtr>& subscripts);

}  // namespace tc::lang
