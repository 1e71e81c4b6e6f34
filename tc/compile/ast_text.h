#pragma once

#include <string>

#include "tc/lang/typed_ast.h"

namespace tc::compile {

/// A typed definition as an indented tree: sizes, arguments, then each statement with its indices and expressions, one
/// node a line with its type. What the pass "analyse" shows.
std::string ast_text(const lang::TypedDefinition& definition);

}  // namespace tc::compile
