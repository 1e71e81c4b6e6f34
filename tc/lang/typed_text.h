#pragma once

#include <string>

#include "tc/lang/typed_ast.h"

namespace tc::lang {

/// Source text of a typed expression of a statement, parenthesised wherever that could matter. Lets are replaced by
/// what they stand for, implicit casts are left out: analysed again, the text has the same meaning and type.
std::string typed_text(const TypedDefinition& definition, const TypedStatement& statement, const TypedExpr& expr);

/// "(i, j + 1)"; nothing for no subscripts.
std::string subscripts_text(const TypedDefinition& definition, const TypedStatement& statement,
                            const std::vector<TypedExprPtr>& subscripts);

}  // namespace tc::lang
