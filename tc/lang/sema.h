#pragma once

#include <functional>

#include "tc/lang/ast.h"
#include "tc/lang/typed_ast.h"
#include "tc/support/result.h"

namespace tc::lang {

/// Resolves names, gives types and roles, and checks every rule of docs/language.md that needs neither ranges
/// nor sizes. Generic defs are checked, and left out (T7): their instances are defs of other files
/// (tc/lang/instantiate.h). Reports up to kMaxErrors errors at once. `stop` is called often; where it is true, an error
/// of kind kBudget ends the analysis.
Result<TypedProgram> analyse(const File& file, const std::function<bool()>& stop = {});

/// parse, then analyse.
Result<TypedProgram> analyse(SourcePtr source);

}  // namespace tc::lang
