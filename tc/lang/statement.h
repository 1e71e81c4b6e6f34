#pragma once

#include <optional>

#include "tc/lang/scope.h"

namespace tc::lang {

/// Analyses one statement of a def whose names, roles and types are known: C1, C7, C9, C10, and the typing.
/// Nothing after a reported error.
std::optional<TypedStatement> analyse_statement(Scope& scope, int statement, Report& report);

}  // namespace tc::lang
