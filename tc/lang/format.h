#pragma once

#include <string>

#include "tc/lang/ast.h"

namespace tc::lang {

/// Canonical source: two spaces, one statement a line, types by their full names, the fewest parentheses. Comments
/// stay with the statement they stood at; a blank line between statements stays one. Parsing the result gives the
/// same tree but for positions, and formatting it changes nothing.
std::string format(const File& file);

/// "softmax", or "softmax<T: float>".
std::string header_name(const Definition& definition);

/// One expression, on one line.
std::string format(const Expr& expr);

/// The same tree, positions and comments apart.
bool same_tree(const File& a, const File& b);

}  // namespace tc::lang
