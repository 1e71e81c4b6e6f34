#pragma once

#include "tc/lang/ast.h"
#include "tc/support/result.h"

namespace tc::lang {

/// Text to tree. Reports up to kMaxErrors errors at once; the bounds of tc/lang/limits.h hold for what it returns.
Result<File> parse(SourcePtr source);

}  // namespace tc::lang
