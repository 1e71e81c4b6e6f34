#include "tc/lang/literals.h"

#include <cmath>
#include <limits>

#include "tc/lang/numbers.h"
#include "tc/lang/walk.h"
#include "tc/support/check.h"

namespace tc::lang {
namespace {

double as_double(const LiteralValue& value) {
  return std::visit([](auto v) { return static_cast<double>(v); }, value);
}

/// Nothing when the result overflows.
std::optional<int64_t> compute(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::kSub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::kMul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::kDiv:
      overflow = b == -1 && __builtin_sub_overflow(int64_t{0}, a, &result);
      if (!overflow) result = floor_divide(a, b);
      break;
    default:
      result = b == -1 ? 0 : floor_modulo(a, b);
  }
  return overflow ? std::nullopt : std::optional(result);
}

std::optional<double> compute(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    default:
      return a / b;
  }
}

std::optional<LiteralValue> compute(BinaryOp op, const LiteralValue& a, const LiteralValue& b) {
  const auto* left = std::get_if<int64_t>(&a);
  const auto* right = std::get_if<int64_t>(&b);
  if (left && right) return compute(op, *left, *right);
  return compute(op, as_double(a), as_double(b));
}

}  // namespace

bool is_literal(const Expr& expr) {
  if (std::holds_alternative<IntegerLiteral>(expr.node) || std::holds_alternative<FloatLiteral>(expr.node)) return true;
  if (const auto* unary = std::get_if<Unary>(&expr.node)) {
    return unary->op == UnaryOp::kNegate && is_literal(*unary->operand);
  }
  const auto* binary = std::get_if<Binary>(&expr.node);
  return binary && binary->op >= BinaryOp::kAdd && is_literal(*binary->left) && is_literal(*binary->right);
}

std::optional<LiteralValue> evaluate_literal(const Expr& expr, Report& report) {
  if (const auto* integer = std::get_if<IntegerLiteral>(&expr.node)) return integer->value;
  if (const auto* floating = std::get_if<FloatLiteral>(&expr.node)) return floating->value;
  if (const auto* unary = std::get_if<Unary>(&expr.node)) {
    const auto operand = evaluate_literal(*unary->operand, report);
    if (!operand) return std::nullopt;
    if (const auto* floating = std::get_if<double>(&*operand)) return -*floating;
    if (const int64_t value = std::get<int64_t>(*operand); value != std::numeric_limits<int64_t>::min()) return -value;
  } else {
    const auto& binary = std::get<Binary>(expr.node);
    const auto left = evaluate_literal(*binary.left, report);
    const auto right = evaluate_literal(*binary.right, report);
    if (!left || !right) return std::nullopt;
    const bool whole = std::holds_alternative<int64_t>(*left) && std::holds_alternative<int64_t>(*right);
    if (binary.op == BinaryOp::kMod && !whole) {
      report.error(expr.range, "'%' takes integers: write fmod(x, y) for floats");  // R8
      return std::nullopt;
    }
    if (auto value = compute(binary.op, *left, *right)) return value;
  }
  report.error(expr.range, "the value of '{}' does not fit int64", report.source()->text(expr.range));
  return std::nullopt;
}

ScalarType natural_type(const LiteralValue& value) {
  if (std::holds_alternative<double>(value)) return ScalarType::kFloat32;
  return holds(ScalarType::kInt32, std::get<int64_t>(value)) ? ScalarType::kInt32 : ScalarType::kInt64;
}

TypedExprPtr make_constant(const LiteralValue& value, ScalarType type, bool cast, SourceRange range, Report& report) {
  const auto constant = [&](TypedExpr::Node node) {
    return std::make_shared<const TypedExpr>(TypedExpr{std::move(node), type, range});
  };
  const std::string_view text = report.source()->text(range);
  if (is_float(type)) {
    const double exact = as_double(value);
    const double rounded = round_to(type, exact);
    if (std::isinf(rounded) && !std::isinf(exact)) {
      report.error(range, "{} is too large for {}", text, name_of(type));
      return nullptr;
    }
    if (rounded == 0 && exact != 0) {
      report.error(range, "{} is too small for {}: it would be 0", text, name_of(type));
      return nullptr;
    }
    return constant(FloatConstant{rounded});
  }
  if (type == ScalarType::kBool && cast) return constant(IntegerConstant{as_double(value) != 0 ? 1 : 0});
  if (type == ScalarType::kBool) {
    report.error(range, "{} is not a bool: write bool({})", text, text);  // T4
    return nullptr;
  }
  if (std::holds_alternative<double>(value) && !cast) {
    report.error(range, "{0} is a float and does not become {1} without a cast: write {1}({0})", text,
                 name_of(type));  // T2
    return nullptr;
  }
  if (const auto* floating = std::get_if<double>(&value)) {
    return constant(IntegerConstant{saturated(type, *floating)});  // T6
  }
  const int64_t integer = std::get<int64_t>(value);
  if (!holds(type, integer)) {
    report.error(range, "{} does not fit {}", text, name_of(type));
    return nullptr;
  }
  return constant(IntegerConstant{integer});
}

}  // namespace tc::lang
