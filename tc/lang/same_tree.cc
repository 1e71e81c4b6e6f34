#include <algorithm>

#include "tc/lang/format.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

bool same(const ExprPtr& a, const ExprPtr& b);

bool same(const std::vector<ExprPtr>& a, const std::vector<ExprPtr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ExprPtr& x, const ExprPtr& y) { return same(x, y); });
}
bool same(const std::optional<std::vector<ExprPtr>>& a, const std::optional<std::vector<ExprPtr>>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

bool same(const IntegerLiteral& a, const IntegerLiteral& b) { return a.value == b.value; }
bool same(const FloatLiteral& a, const FloatLiteral& b) { return a.spelling == b.spelling; }
bool same(const NameUse& a, const NameUse& b) { return a.name == b.name; }
bool same(const Apply& a, const Apply& b) { return a.name.text == b.name.text && same(a.arguments, b.arguments); }
bool same(const ExtentUse& a, const ExtentUse& b) {
  return a.tensor.text == b.tensor.text && a.dimension == b.dimension;
}
bool same(const Unary& a, const Unary& b) { return a.op == b.op && same(a.operand, b.operand); }
bool same(const Binary& a, const Binary& b) { return a.op == b.op && same(a.left, b.left) && same(a.right, b.right); }
bool same(const Conditional& a, const Conditional& b) {
  return same(a.condition, b.condition) && same(a.if_true, b.if_true) && same(a.if_false, b.if_false);
}
bool same(const CastTo& a, const CastTo& b) {
  return a.type == b.type && a.type_variable == b.type_variable && same(a.operand, b.operand);
}

bool same(const RangeClause& a, const RangeClause& b) {
  return a.index.text == b.index.text && same(a.low, b.low) && same(a.high, b.high);
}
bool same(const LetClause& a, const LetClause& b) { return a.name.text == b.name.text && same(a.value, b.value); }
bool same(const ExistsClause& a, const ExistsClause& b) { return same(a.expression, b.expression); }

template <typename Variant>
bool same_alternative(const Variant& a, const Variant& b) {
  return std::visit(
      [](const auto& x, const auto& y) {
        if constexpr (std::is_same_v<decltype(x), decltype(y)>) {
          return same(x, y);
        } else {
          return false;
        }
      },
      a, b);
}

bool same(const ExprPtr& a, const ExprPtr& b) { return same_alternative(a->node, b->node); }

bool same(const Statement& a, const Statement& b) {
  return a.type == b.type && a.type_variable == b.type_variable && a.tensor.text == b.tensor.text && a.op == b.op &&
         same(a.subscripts, b.subscripts) && same(a.right, b.right) &&
         std::equal(a.clauses.begin(), a.clauses.end(), b.clauses.begin(), b.clauses.end(),
                    [](const Clause& x, const Clause& y) { return same_alternative(x.node, y.node); });
}

bool same(const Parameter& a, const Parameter& b) {
  return a.type == b.type && a.type_variable == b.type_variable && a.name.text == b.name.text &&
         same(a.dimensions, b.dimensions);
}
bool same(const ResultDeclaration& a, const ResultDeclaration& b) {
  return a.type == b.type && a.type_variable == b.type_variable && a.name.text == b.name.text &&
         same(a.dimensions, b.dimensions);
}

bool same(const TypeVariable& a, const TypeVariable& b) {
  return a.name.text == b.name.text && a.restriction == b.restriction;
}

bool same(const Definition& a, const Definition& b);

template <typename Item>
bool same_items(const std::vector<Item>& a, const std::vector<Item>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Item& x, const Item& y) { return same(x, y); });
}

bool same(const Definition& a, const Definition& b) {
  return a.name.text == b.name.text && same_items(a.type_variables, b.type_variables) &&
         same_items(a.parameters, b.parameters) && same_items(a.results, b.results) &&
         same_items(a.statements, b.statements);
}

}  // namespace

bool same_tree(const File& a, const File& b) { return same_items(a.definitions, b.definitions); }

}  // namespace tc::lang
