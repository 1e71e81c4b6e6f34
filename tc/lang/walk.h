#pragma once

#include <variant>

#include "tc/lang/ast.h"
#include "tc/lang/typed_ast.h"

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

/// The same of a typed expression; the child of a let is what it stands for.
template <typename Visit>
void for_each_child(const TypedExpr& expr, Visit&& visit) {
  std::visit(Overloaded{
                 [](const IntegerConstant&) {},
                 [](const FloatConstant&) {},
                 [](const IndexRef&) {},
                 [](const SizeRef&) {},
                 [](const ScalarRef&) {},
                 [](const ExtentRef&) {},
                 [&](const Read& read) {
                   for (const TypedExprPtr& subscript : read.subscripts) visit(*subscript);
                 },
                 [&](const TypedUnary& unary) { visit(*unary.operand); },
                 [&](const TypedBinary& binary) {
                   visit(*binary.left);
                   visit(*binary.right);
                 },
                 [&](const Select& select) {
                   visit(*select.condition);
                   visit(*select.if_true);
                   visit(*select.if_false);
                 },
                 [&](const Intrinsic& call) {
                   for (const TypedExprPtr& argument : call.arguments) visit(*argument);
                 },
                 [&](const Cast& cast) { visit(*cast.operand); },
                 [&](const LetRef& let) { visit(*let.value); },
             },
             expr.node);
}

/// Calls `visit` with an expression and all below it, parents first.
template <typename Expression, typename Visit>
void walk(const Expression& expr, Visit&& visit) {
  visit(expr);
  for_each_child(expr, [&](const Expression& child) { walk(child, visit); });
}

}  // namespace tc::lang
