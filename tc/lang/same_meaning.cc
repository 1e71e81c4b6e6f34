#include "tc/lang/same_meaning.h"

#include <algorithm>
#include <bit>

#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

template <typename Item, typename Same>
bool same_items(const std::vector<Item>& a, const std::vector<Item>& b, Same same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool same(const TypedExprPtr& a, const TypedExprPtr& b) { return same_meaning(*a, *b); }
bool same(const std::vector<TypedExprPtr>& a, const std::vector<TypedExprPtr>& b) {
  return same_items(a, b, [](const TypedExprPtr& x, const TypedExprPtr& y) { return same(x, y); });
}

bool same(const IntegerConstant& a, const IntegerConstant& b) { return a.value == b.value; }
bool same(const FloatConstant& a, const FloatConstant& b) {  // NaN is a constant, and -0 is not 0
  return std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}
bool same(const IndexRef& a, const IndexRef& b) { return a.index == b.index; }
bool same(const SizeRef& a, const SizeRef& b) { return a.size == b.size; }
bool same(const ScalarRef& a, const ScalarRef& b) { return a.scalar == b.scalar; }
bool same(const ExtentRef& a, const ExtentRef& b) { return a.tensor == b.tensor && a.dimension == b.dimension; }
bool same(const Read& a, const Read& b) { return a.tensor == b.tensor && same(a.subscripts, b.subscripts); }
bool same(const TypedUnary& a, const TypedUnary& b) { return a.op == b.op && same(a.operand, b.operand); }
bool same(const TypedBinary& a, const TypedBinary& b) {
  return a.op == b.op && same(a.left, b.left) && same(a.right, b.right);
}
bool same(const Select& a, const Select& b) {
  return same(a.condition, b.condition) && same(a.if_true, b.if_true) && same(a.if_false, b.if_false);
}
bool same(const Intrinsic& a, const Intrinsic& b) { return a.name == b.name && same(a.arguments, b.arguments); }
bool same(const Cast& a, const Cast& b) { return same(a.operand, b.operand); }
bool same(const LetRef& a, const LetRef& b) { return same(a.value, b.value); }

/// An implicit cast to int64.
const Cast* widening(const TypedExpr& expr) {
  const auto* cast = std::get_if<Cast>(&expr.node);
  return cast && cast->implicit && expr.type == ScalarType::kInt64 ? cast : nullptr;
}

/// Without a let, and without a cast to int32 and back of index arithmetic, which fits int32.
const TypedExpr& plain(const TypedExpr& expr) {
  if (const auto* let = std::get_if<LetRef>(&expr.node)) return plain(*let->value);
  const Cast* const wide = widening(expr);
  const auto* narrow = wide ? std::get_if<Cast>(&wide->operand->node) : nullptr;
  const bool is_back = narrow && narrow->implicit && narrow->operand->type == ScalarType::kInt64;
  return is_back ? plain(*narrow->operand) : expr;
}

/// The number that an expression is, widened to its type.
const IntegerConstant* constant_of(const TypedExpr& expr) {
  const Cast* const wide = widening(expr);
  const TypedExpr& number = wide && wide->operand->type == ScalarType::kInt32 ? *wide->operand : expr;
  return std::get_if<IntegerConstant>(&number.node);
}

bool same(const Index& a, const Index& b) {
  if (a.name != b.name || a.kind != b.kind || a.given.has_value() != b.given.has_value()) return false;
  return !a.given || (same(a.given->low, b.given->low) && same(a.given->high, b.given->high));
}

bool same(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.type == b.type && a.rank == b.rank && a.role == b.role &&
         a.dimensions.has_value() == b.dimensions.has_value() && (!a.dimensions || same(*a.dimensions, *b.dimensions));
}

bool same(const TypedStatement& a, const TypedStatement& b) {
  return a.tensor == b.tensor && a.op == b.op && a.map_indices == b.map_indices && same(a.subscripts, b.subscripts) &&
         same(a.right, b.right) && same(a.exists, b.exists) &&
         same_items(a.indices, b.indices, [](const Index& x, const Index& y) { return same(x, y); });
}

}  // namespace

bool same_meaning(const TypedExpr& of_a, const TypedExpr& of_b) {
  const TypedExpr &a = plain(of_a), &b = plain(of_b);
  if (a.type != b.type) return false;
  const IntegerConstant *const number_a = constant_of(a), *const number_b = constant_of(b);
  if (number_a && number_b) return number_a->value == number_b->value;
  if (a.node.index() != b.node.index()) return false;
  return std::visit([&](const auto& node) { return same(node, std::get<std::decay_t<decltype(node)>>(b.node)); },
                    a.node);
}

bool same_meaning(const TypedDefinition& a, const TypedDefinition& b) {
  const auto same_size = [](const Size& x, const Size& y) { return x.name == y.name; };
  const auto same_scalar = [](const Scalar& x, const Scalar& y) { return x.name == y.name && x.type == y.type; };
  const auto same_argument = [](const Argument& x, const Argument& y) {
    return x.is_scalar == y.is_scalar && x.id == y.id;
  };
  return same_items(a.sizes, b.sizes, same_size) && same_items(a.scalars, b.scalars, same_scalar) &&
         same_items(a.tensors, b.tensors, [](const Tensor& x, const Tensor& y) { return same(x, y); }) &&
         same_items(a.arguments, b.arguments, same_argument) && a.results == b.results &&
         same_items(a.statements, b.statements,
                    [](const TypedStatement& x, const TypedStatement& y) { return same(x, y); });
}

}  // namespace tc::lang
