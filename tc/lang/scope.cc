#include "tc/lang/scope.h"

#include "tc/lang/intrinsics.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

std::optional<int> find(const std::map<std::string, int, std::less<>>& ids, std::string_view name) {
  const auto at = ids.find(name);
  return at == ids.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace

Note Scope::declared_here(int tensor) const {
  const Tensor& t = definition.tensors[tensor];
  return {t.range, fmt::format("'{}' is {} here", t.name, t.role == Role::kTemporary ? "first written" : "declared")};
}

Resolved StatementScope::resolve(std::string_view name) const {
  if (auto id = find(let_ids, name)) return {NameKind::kLet, *id};
  if (auto id = find(scope.scalars, name)) return {NameKind::kScalar, *id};
  // Before tensors: a size and a tensor with dimensions may share a name (C9).
  if (auto id = find(scope.sizes, name)) return {NameKind::kSize, *id};
  if (auto id = find(scope.tensors, name)) return {NameKind::kTensor, *id};
  if (find_intrinsic(name)) return {NameKind::kIntrinsic, -1};
  return {NameKind::kIndex, -1};
}

IndexClass StatementScope::classify(const Expr& expr, bool with_scalars) const {
  if (std::holds_alternative<IntegerLiteral>(expr.node)) return IndexClass::kLiteral;
  if (std::holds_alternative<ExtentUse>(expr.node)) return IndexClass::kIndex;
  if (const auto* use = std::get_if<NameUse>(&expr.node)) {
    const Resolved name = resolve(use->name);
    if (name.kind == NameKind::kLet) {
      return with_scalars ? lets[name.id].index_class_with_scalars : lets[name.id].index_class;
    }
    if (name.kind == NameKind::kScalar && with_scalars) {
      const ScalarType type = scope.definition.scalars[name.id].type;
      return is_integer(type) && type != ScalarType::kUInt64 ? IndexClass::kLiteral : IndexClass::kNone;
    }
    return name.kind == NameKind::kIndex || name.kind == NameKind::kSize ? IndexClass::kIndex : IndexClass::kNone;
  }
  if (const auto* unary = std::get_if<Unary>(&expr.node)) {
    return unary->op == UnaryOp::kNegate ? classify(*unary->operand, with_scalars) : IndexClass::kNone;
  }
  const auto* binary = std::get_if<Binary>(&expr.node);
  if (!binary || is_logic(binary->op) || is_comparison(binary->op)) return IndexClass::kNone;
  const IndexClass left = classify(*binary->left, with_scalars);
  if (left == IndexClass::kNone) return left;
  const IndexClass right = classify(*binary->right, with_scalars);
  return right == IndexClass::kLiteral ? left : right;
}

}  // namespace tc::lang
