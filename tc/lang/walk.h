#pragma once

#include <variant>

#include "tc/lang/ast.h"

namespace tc::lang {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

/// Calls `visit` with each child of an expression, from left to right.
template <typename Visit>
void for_each_child(const Expr& expr, Visit&& visit) {
  std::visit(Overloaded{
                 [](const IntegerLiteral&) {},
                 [](const FloatLiteral&) {},
                 [](const NameUse&) {},
                 [](const ExtentUse&) {},
                 [&](const Apply& apply) {
                   for (const ExprPtr& argument : apply.arguments) visit(*argument);
                 },
                 [&](const Unary& unary) { visit(*unary.operand); },
                 [&](const Binary& binary) {
                   visit(*binary.left);
                   visit(*binary.right);
                 },
                 [&](const Conditional& conditional) {
                   visit(*conditional.condition);
                   visit(*conditional.if_true);
                   visit(*conditional.if_false);
                 },
                 [&](const CastTo& cast) { visit(*cast.operand); },
             },
             expr.node);
}

/// Calls `visit` with an expression and all below it, parents first.
template <typename Visit>
void walk(const Expr& expr, Visit&& visit) {
  visit(expr);
  for_each_child(expr, [&](const Expr& child) { walk(child, visit); });
}

}  // namespace tc::lang
