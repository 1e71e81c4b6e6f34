#pragma once

#include <optional>
#include <variant>

#include "tc/lang/ast.h"
#include "tc/lang/report.h"
#include "tc/lang/typed_ast.h"

/// Expressions made of numbers only (`0`, `-1`, `1.0 / 3`). They are evaluated here, in int64 or float64, and take
/// the type of the place where they stand.
namespace tc::lang {

using LiteralValue = std::variant<int64_t, double>;

/// Numbers with unary minus and + - * / %.
bool is_literal(const Expr& expr);

/// The value of such an expression; integers stay integers. Reports an overflow of int64 or float64.
std::optional<LiteralValue> evaluate_literal(const Expr& expr, Report& report);

/// int32 or int64 for an integer, float32 for a float.
ScalarType natural_type(const LiteralValue& value);

/// The value as a constant of a type that must hold it. With `cast` a float becomes an integer by dropping its
/// fraction, and any number a bool. Null after a reported error.
TypedExprPtr make_constant(const LiteralValue& value, ScalarType type, bool cast, SourceRange range, Report& report);

}  // namespace tc::lang
