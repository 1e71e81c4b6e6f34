#include "tc/ir/convert.h"

#include "tc/ir/fold_constant.h"
#include "tc/ir/index_expr.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
using Halide::Type;
namespace hi = Halide::Internal;

namespace {

const lang::TypedExpr& without_lets(const lang::TypedExprPtr& expr) {
  const lang::TypedExpr* at = expr.get();
  while (const auto* let = std::get_if<lang::LetRef>(&at->node)) at = let->value.get();
  return *at;
}

Expr arithmetic(lang::BinaryOp op, const Expr& a, const Expr& b) {
  switch (op) {
    case lang::BinaryOp::kOr:
      return hi::Or::make(a, b);
    case lang::BinaryOp::kAnd:
      return hi::And::make(a, b);
    case lang::BinaryOp::kEq:
      return hi::EQ::make(a, b);
    case lang::BinaryOp::kNe:
      return hi::NE::make(a, b);
    case lang::BinaryOp::kLt:
      return hi::LT::make(a, b);
    case lang::BinaryOp::kLe:
      return hi::LE::make(a, b);
    case lang::BinaryOp::kGt:
      return hi::GT::make(a, b);
    case lang::BinaryOp::kGe:
      return hi::GE::make(a, b);
    case lang::BinaryOp::kAdd:
      return hi::Add::make(a, b);
    case lang::BinaryOp::kSub:
      return hi::Sub::make(a, b);
    case lang::BinaryOp::kMul:
      return hi::Mul::make(a, b);
    case lang::BinaryOp::kDiv:
      return a.type().is_float() ? hi::Div::make(a, b) : floor_div(a, b);
    case lang::BinaryOp::kMod:
      return a.type().is_float() ? hi::Mod::make(a, b) : floor_mod(a, b);
  }
  TC_CHECK(false, "unknown operator");
}

/// The number that an operation on two integers is, as analysis has made of those in the text: a scalar's number may be
/// one of them. The operation itself where it is no number.
Expr folded(const Expr& operation, const Expr& left, const Expr& right) {
  // Not what the simplifier makes of anything else: it holds x != x false, also of floats.
  const bool are_integers = left.type().is_int_or_uint() && operation.type().is_int_or_uint();
  return are_integers && hi::is_const(left) && hi::is_const(right) ? fold_constant(operation) : operation;
}

/// -x. Not 0 - x, which is +0 for x = +0.
Expr negate(const Expr& x) {
  if (x.type().is_float()) return hi::Mul::make(x, hi::make_const(x.type(), -1));
  const Expr negated = hi::Sub::make(hi::make_zero(x.type()), x);
  return fold_constant(negated);
}

Expr cast_to(Type type, const Expr& e) {
  if (e.type() == type) return e;
  // O(i) = float8_e4m3(x(i)): what has been rounded is not rounded again.
  const auto* widened = is_float8(type) ? e.as<hi::Cast>() : nullptr;
  if (widened && widened->value.type() == type && widened->value.as<hi::Cast>()) return widened->value;
  const Expr cast = hi::Cast::make(type, e);
  return type.is_bool() || e.type().is_bool() ? cast : fold_constant(cast);
}

/// T3's narrow types: what is summed in something wider.
bool is_narrow(ScalarType type) { return (is_float(type) || is_integer(type)) && bits_of(type) < 32; }

}  // namespace

Expr Converter::convert(const lang::TypedExprPtr& expr) {
  return std::visit([&](const auto& n) { return node(*expr, n); }, expr->node);
}

Expr Converter::node(const lang::TypedExpr& e, const lang::IntegerConstant& n) {
  if (e.type == ScalarType::kBool) return hi::make_bool(n.value != 0);
  const Type type = to_halide(e.type);
  return type.is_uint() ? hi::UIntImm::make(type, static_cast<uint64_t>(n.value)) : hi::make_const(type, n.value);
}

Expr Converter::node(const lang::TypedExpr& e, const lang::FloatConstant& n) {
  return hi::FloatImm::make(to_halide(e.type), n.value);
}

Expr Converter::node(const lang::TypedExpr&, const lang::IndexRef& n) {
  TC_CHECK(statement_, "an index outside a statement");
  return index_variable(statement_->indices[n.index].name);
}

Expr Converter::node(const lang::TypedExpr&, const lang::SizeRef& n) {
  return index_variable(definition_.sizes[n.size].name);
}

Expr Converter::compiled_in(const lang::TypedExpr& e, Type type) const {
  const auto* scalar = std::get_if<lang::ScalarRef>(&e.node);
  if (!scalar) return Expr();
  const std::string& name = definition_.scalars[scalar->scalar].name;
  if (!scalars_.names.contains(name)) return Expr();
  const auto value = scalars_.values.find(name);
  if (value == scalars_.values.end()) return cast_to(type, index_variable(name));
  return hi::make_const(type, value->second);
}

Expr Converter::node(const lang::TypedExpr& e, const lang::ScalarRef& n) {
  const Expr constant = compiled_in(e, to_halide(e.type));
  if (constant.defined()) return constant;
  const lang::Scalar& scalar = definition_.scalars[n.scalar];
  return scalar_variable(to_halide(scalar.type), scalar.name);
}

Expr Converter::node(const lang::TypedExpr&, const lang::ExtentRef& n) {
  const lang::Tensor& tensor = definition_.tensors[n.tensor];
  if (tensor.dimensions) return convert(tensor.dimensions->at(n.dimension));
  return index_variable(extent_variable(tensor.name, n.dimension));
}

Expr Converter::node(const lang::TypedExpr& e, const lang::Read& n) {
  Access access;
  access.tensor = definition_.tensors[n.tensor].name;
  for (const lang::TypedExprPtr& subscript : n.subscripts) access.subscripts.push_back(convert(subscript));
  access.guard = guard_;
  access.range = e.range;
  accesses.push_back(access);
  return hi::Call::make(to_halide(e.type), access.tensor, access.subscripts, hi::Call::PureExtern);
}

Expr Converter::node(const lang::TypedExpr&, const lang::TypedUnary& n) {
  const Expr operand = convert(n.operand);
  return n.op == lang::UnaryOp::kNot ? hi::Not::make(operand) : negate(operand);
}

Expr Converter::node(const lang::TypedExpr&, const lang::TypedBinary& n) {
  const Expr left = convert(n.left);
  const Expr right = convert(n.right);
  return folded(arithmetic(n.op, left, right), left, right);
}

template <typename Branch>
Expr Converter::choice(const lang::Select& select, Type type, Branch branch) {
  const Expr condition = convert(select.condition);
  const Expr outer = guard_;
  const size_t reads_before = accesses.size();
  guard_ = conjunction(outer, condition);
  const Expr if_true = branch(select.if_true);
  guard_ = conjunction(outer, hi::Not::make(condition));
  const Expr if_false = branch(select.if_false);
  guard_ = outer;
  if (accesses.size() == reads_before) return hi::Select::make(condition, if_true, if_false);
  return hi::Call::make(type, hi::Call::if_then_else, {condition, if_true, if_false}, hi::Call::PureIntrinsic);
}

Expr Converter::node(const lang::TypedExpr& e, const lang::Select& n) {
  return choice(n, to_halide(e.type), [&](const lang::TypedExprPtr& branch) { return convert(branch); });
}

Expr Converter::node(const lang::TypedExpr& e, const lang::Intrinsic& n) {
  std::vector<Expr> arguments;
  for (const lang::TypedExprPtr& argument : n.arguments) arguments.push_back(convert(argument));
  const Type type = to_halide(e.type);
  if (n.name == "min" || n.name == "max") {
    Expr result = arguments[0];
    for (size_t i = 1; i < arguments.size(); ++i) {
      result = n.name == "min" ? hi::Min::make(result, arguments[i]) : hi::Max::make(result, arguments[i]);
    }
    return result;
  }
  if (n.name == "clamp") return hi::Min::make(hi::Max::make(arguments[0], arguments[1]), arguments[2]);
  // Of an index it stays index arithmetic, of which bounds are proved.
  if (n.name == "abs" && type == index_type() && !is_data_dependent(arguments[0])) {
    return hi::Max::make(arguments[0], negate(arguments[0]));
  }
  if (n.name == "relu") return hi::Max::make(arguments[0], hi::make_zero(type));
  return hi::Call::make(type, n.name, arguments, hi::Call::PureExtern);
}

Expr Converter::node(const lang::TypedExpr& e, const lang::Cast& n) {
  const Type type = to_halide(e.type);
  const lang::TypedExpr& operand = without_lets(n.operand);
  if (e.type == ScalarType::kInt64 || is_float(e.type)) {
    const Expr constant = compiled_in(operand, type);
    if (constant.defined() && (type == index_type() || constant.as<hi::FloatImm>())) return constant;
  }
  const Expr inner = convert(n.operand);
  if (n.implicit && e.type == ScalarType::kInt32 && operand.type == ScalarType::kInt64) {
    index_values.push_back({inner, guard_, e.range});
  }
  return cast_to(type, inner);
}

Expr Converter::node(const lang::TypedExpr&, const lang::LetRef& n) { return convert(n.value); }

namespace {

bool is_arithmetic(lang::BinaryOp op) {
  return op == lang::BinaryOp::kAdd || op == lang::BinaryOp::kSub || op == lang::BinaryOp::kMul;
}

/// The operands of a sum, difference, product or negation, and the branches of a choice; none of anything else.
std::vector<lang::TypedExprPtr> terms_of(const lang::TypedExpr& e) {
  if (const auto* unary = std::get_if<lang::TypedUnary>(&e.node)) {
    return unary->op == lang::UnaryOp::kNot ? std::vector<lang::TypedExprPtr>() : std::vector{unary->operand};
  }
  if (const auto* select = std::get_if<lang::Select>(&e.node)) return {select->if_true, select->if_false};
  const auto* binary = std::get_if<lang::TypedBinary>(&e.node);
  if (!binary || !is_arithmetic(binary->op)) return {};
  return {binary->left, binary->right};
}

/// Whether a value has a sum, difference, product or negation in a narrow type that T3 computes in a wider one.
bool computes_narrow(const lang::TypedExprPtr& expr) {
  const lang::TypedExpr& e = without_lets(expr);
  if (const auto* cast = std::get_if<lang::Cast>(&e.node)) return cast->implicit && computes_narrow(cast->operand);
  const std::vector<lang::TypedExprPtr> terms = terms_of(e);
  return (is_narrow(e.type) && !terms.empty()) || std::any_of(terms.begin(), terms.end(), computes_narrow);
}

}  // namespace

Expr Converter::widen(const lang::TypedExprPtr& expr, Type accumulator) {
  const lang::TypedExpr& e = without_lets(expr);
  if (const auto* cast = std::get_if<lang::Cast>(&e.node); cast && cast->implicit) {
    const ScalarType from = without_lets(cast->operand).type;
    if (is_narrow(from) && (accumulator.is_float() || !is_float(from))) return widen(cast->operand, accumulator);
  }
  const bool is_narrow_term = is_narrow(e.type) && (accumulator.is_float() || !is_float(e.type));
  if (!is_narrow_term && (is_narrow(e.type) || !computes_narrow(expr))) return cast_to(accumulator, convert(expr));
  // What has a wide type is computed in that, and only what is narrow within it in a wider one than its own.
  const Type own = is_narrow_term ? accumulator : to_halide(e.type);
  const auto term = [&](const lang::TypedExprPtr& operand) { return widen(operand, own); };
  if (terms_of(e).empty()) return cast_to(accumulator, convert(expr));
  if (const auto* unary = std::get_if<lang::TypedUnary>(&e.node)) {
    return cast_to(accumulator, negate(term(unary->operand)));
  }
  if (const auto* select = std::get_if<lang::Select>(&e.node)) return cast_to(accumulator, choice(*select, own, term));
  const auto& binary = std::get<lang::TypedBinary>(e.node);
  const Expr left = term(binary.left);
  return cast_to(accumulator, arithmetic(binary.op, left, term(binary.right)));
}

}  // namespace tc::ir
