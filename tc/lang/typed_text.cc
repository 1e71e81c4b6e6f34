#include "tc/lang/typed_text.h"

#include <fmt/format.h>

#include <cmath>

#include "tc/lang/ast.h"
#include "tc/lang/literals.h"
#include "tc/lang/scope.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// A float of a type: literals are float32 unless they carry a cast. The fewest digits that give it back.
std::string float_text(double value, ScalarType type) {
  if (!std::isfinite(value)) {
    const std::string name = std::isnan(value) ? "nan" : value < 0 ? "(-inf)" : "inf";
    return type == ScalarType::kFloat32 ? name : fmt::format("{}({})", name_of(type), name);
  }
  std::string digits = fmt::format("{}", value);
  const auto narrow = static_cast<float>(value);
  if (type == ScalarType::kFloat32 && narrow == value) digits = fmt::format("{}", narrow);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  if (type == ScalarType::kFloat32) return value < 0 ? "(" + digits + ")" : digits;
  return fmt::format("{}({})", name_of(type), digits);
}

/// What index arithmetic is made of.
struct Parts {
  bool index = false;   ///< indices, sizes, extents
  bool scalar = false;  ///< integer scalars
  bool other = false;   ///< what is a value
};

void find_parts(const TypedExpr& expr, Parts& parts) {
  parts.other |= expr.type != ScalarType::kInt64;
  if (parts.other) return;
  std::visit(Overloaded{
                 [](const IntegerConstant&) {},
                 [&](const IndexRef&) { parts.index = true; },
                 [&](const SizeRef&) { parts.index = true; },
                 [&](const ExtentRef&) { parts.index = true; },
                 [&](const ScalarRef&) { parts.scalar = true; },
                 [&](const TypedUnary& unary) { find_parts(*unary.operand, parts); },
                 [&](const TypedBinary& binary) {
                   find_parts(*binary.left, parts);
                   find_parts(*binary.right, parts);
                 },
                 [&](const Cast& cast) {
                   const bool is_scalar = cast.implicit && std::holds_alternative<ScalarRef>(cast.operand->node);
                   (is_scalar ? parts.scalar : parts.other) = true;
                 },
                 [&](const LetRef& let) { find_parts(*let.value, parts); },
                 [&](const auto&) { parts.other = true; },
             },
             expr.node);
}
Parts parts_of(const TypedExpr& expr) {
  Parts parts;
  find_parts(expr, parts);
  return parts;
}

/// Whether index arithmetic becomes a value by a cast.
bool enters_value(const TypedExpr& expr, const Cast& cast) {
  return cast.implicit && expr.type == ScalarType::kInt32 && cast.operand->type == ScalarType::kInt64;
}

/// Index arithmetic that is a value of int64, as int64(i + 1) is.
bool is_exact_value(const TypedExpr& expr) {
  const Parts parts = parts_of(expr);
  return parts.index && !parts.scalar && !parts.other;
}

/// A comparison of two sides of index arithmetic, whose exact numbers it compares.
bool compares_indices(const TypedBinary& binary) {
  if (!is_comparison(binary.op)) return false;
  const Parts left = parts_of(*binary.left), right = parts_of(*binary.right);
  return (left.index || right.index) && !left.other && !right.other;
}

/// What the text of a value would be taken for, if it had no casts that the value lacks (scope.h). Numbers and index
/// arithmetic are computed by other rules than values of one type: exactly.
IndexClass class_of(const TypedExpr& expr, bool with_scalars = false) {
  const auto natural = [&](LiteralValue value) {
    return expr.type == natural_type(value) ? IndexClass::kLiteral : IndexClass::kNone;
  };
  const auto of_scalar = [&](const ScalarRef&) {
    const bool is_index = with_scalars && is_integer(expr.type) && expr.type != ScalarType::kUInt64;
    return is_index ? IndexClass::kLiteral : IndexClass::kNone;
  };
  const auto of_binary = [&](const TypedBinary& binary) {
    if (binary.op < BinaryOp::kAdd) return IndexClass::kNone;
    const IndexClass left = class_of(*binary.left, with_scalars);
    if (left == IndexClass::kNone) return left;
    const IndexClass right = class_of(*binary.right, with_scalars);
    return right == IndexClass::kLiteral ? left : right;
  };
  const auto of_cast = [&](const Cast& cast) {
    if (!cast.implicit) return IndexClass::kNone;
    return enters_value(expr, cast) ? IndexClass::kIndex : class_of(*cast.operand, with_scalars);
  };
  const auto of_unary = [&](const TypedUnary& unary) {
    return unary.op == UnaryOp::kNegate ? class_of(*unary.operand, with_scalars) : IndexClass::kNone;
  };
  return std::visit(Overloaded{
                        [&](const IntegerConstant& c) { return natural(c.value); },
                        [&](const FloatConstant& c) { return natural(c.value); },
                        of_scalar,
                        of_unary,
                        of_binary,
                        of_cast,
                        [&](const LetRef& let) { return class_of(*let.value, with_scalars); },
                        [](const auto&) { return IndexClass::kNone; },
                    },
                    expr.node);
}

/// Whether the text of a comparison would compare exact numbers, and the values are of one type.
bool would_compare_indices(const TypedBinary& binary) {
  const IndexClass left = class_of(*binary.left, true), right = class_of(*binary.right, true);
  return left != IndexClass::kNone && right != IndexClass::kNone &&
         (left == IndexClass::kIndex || right == IndexClass::kIndex);
}

class Writer {
 public:
  Writer(const TypedDefinition& definition, const TypedStatement& statement, bool widened = false)
      : definition_(definition), statement_(statement), widened_(widened) {}

  std::string value(const TypedExpr& expr) const {
    return std::visit(Overloaded{
                          [&](const IntegerConstant& c) { return integer(c.value, expr.type); },
                          [&](const FloatConstant& c) { return float_text(c.value, expr.type); },
                          [&](const IndexRef&) { return exact(expr); },
                          [&](const SizeRef&) { return exact(expr); },
                          [&](const ExtentRef&) { return exact(expr); },
                          [&](const ScalarRef& ref) { return wide(definition_.scalars[ref.scalar].name, expr.type); },
                          [&](const Read& read) {
                            const Tensor& tensor = definition_.tensors[static_cast<size_t>(read.tensor)];
                            return wide(reference_text(tensor) + indices(read.subscripts), expr.type);
                          },
                          [&](const TypedUnary& unary) { return of_unary(expr, unary); },
                          [&](const TypedBinary& binary) { return of_binary(expr, binary); },
                          [&](const Select& select) {
                            return fmt::format("({} ? {} : {})", value(*select.condition), value(*select.if_true),
                                               value(*select.if_false));
                          },
                          [&](const Intrinsic& call) { return call.name + values(call.arguments); },
                          [&](const Cast& cast) { return of_cast(expr, cast); },
                          [&](const LetRef& let) { return value(*let.value); },
                      },
                      expr.node);
  }

  /// Index arithmetic, where it is exact without a cast.
  std::string index(const TypedExpr& expr) const {
    if (expr.type != ScalarType::kInt64) return value(expr);
    return std::visit(
        Overloaded{
            [](const IntegerConstant& c) { return number(c.value); },
            [&](const IndexRef& ref) { return statement_.indices[static_cast<size_t>(ref.index)].name; },
            [&](const SizeRef& ref) { return definition_.sizes[static_cast<size_t>(ref.size)].name; },
            [&](const ExtentRef& ref) {
              return fmt::format("{}.{}", definition_.tensors[static_cast<size_t>(ref.tensor)].name, ref.dimension);
            },
            [&](const TypedUnary& unary) {
              return fmt::format("({}{})", spelling_of(unary.op), index(*unary.operand));
            },
            [&](const TypedBinary& binary) { return joined(index(*binary.left), binary.op, index(*binary.right)); },
            [&](const Select& select) {
              return fmt::format("({} ? {} : {})", value(*select.condition), index(*select.if_true),
                                 index(*select.if_false));
            },
            [&](const Intrinsic& call) { return call.name + indices(call.arguments); },
            [&](const LetRef& let) { return index(*let.value); },
            [&](const auto&) { return value(expr); },
        },
        expr.node);
  }

  std::string indices(const std::vector<TypedExprPtr>& items) const {
    return list(items, [&](const TypedExpr& item) { return index(item); });
  }

 private:
  template <typename Write>
  static std::string list(const std::vector<TypedExprPtr>& items, Write write) {
    std::string text;
    for (const TypedExprPtr& item : items) text += (text.empty() ? "(" : ", ") + write(*item);
    return text.empty() ? text : text + ")";
  }
  std::string values(const std::vector<TypedExprPtr>& items) const {
    return list(items, [&](const TypedExpr& item) { return value(item); });
  }

  std::string of_unary(const TypedExpr& expr, const TypedUnary& unary) const {
    if (is_exact_value(expr)) return exact(expr);
    const bool exact_text = is_integer(expr.type) && class_of(expr) != IndexClass::kNone;
    return fmt::format("({}{})", spelling_of(unary.op), operand(*unary.operand, exact_text));
  }

  std::string of_binary(const TypedExpr& expr, const TypedBinary& binary) const {
    if (is_exact_value(expr)) return exact(expr);
    if (compares_indices(binary)) return joined(index(*binary.left), binary.op, index(*binary.right));
    const bool exact_text =
        is_comparison(binary.op) ? would_compare_indices(binary) : class_of(expr) != IndexClass::kNone;
    return joined(operand(*binary.left, exact_text), binary.op, value(*binary.right));
  }

  std::string of_cast(const TypedExpr& expr, const Cast& cast) const {
    if (enters_value(expr, cast)) return index(*cast.operand);
    if (cast.implicit) return value(*cast.operand);
    const IndexClass inside = class_of(*cast.operand);
    const bool exact_text =
        inside == IndexClass::kLiteral || (inside == IndexClass::kIndex && expr.type == ScalarType::kInt64);
    return fmt::format("{}({})", name_of(expr.type), operand(*cast.operand, exact_text));
  }

  static std::string joined(const std::string& left, BinaryOp op, const std::string& right) {
    return fmt::format("({} {} {})", left, spelling_of(op), right);
  }

  /// A value. With its type as a cast it is neither a number nor index arithmetic.
  std::string operand(const TypedExpr& expr, bool with_type) const {
    return with_type ? fmt::format("{}({})", name_of(expr.type), value(expr)) : value(expr);
  }

  /// Index arithmetic as a value of int64.
  std::string exact(const TypedExpr& expr) const { return fmt::format("int64({})", index(expr)); }

  static std::string number(int64_t value) { return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value); }

  static std::string integer(int64_t value, ScalarType type) {
    if (type == ScalarType::kBool) return value ? "bool(1)" : "bool(0)";
    if (type == ScalarType::kUInt64 && value < 0) {  // beyond int64: a float, which saturates (T6)
      return fmt::format("uint64({}.0)", static_cast<uint64_t>(value));
    }
    // A number is an int32 if it fits one.
    if (type == natural_type(value)) return number(value);
    return fmt::format("{}({})", name_of(type), number(value));
  }

  std::string wide(const std::string& text, ScalarType type) const {
    return widened_ && is_narrow_float(type) ? fmt::format("float32({})", text) : text;
  }

  const TypedDefinition& definition_;
  const TypedStatement& statement_;
  bool widened_;
};

}  // namespace

std::string reference_text(const Tensor& tensor) {
  const bool is_parameter = tensor.role == Role::kInput || tensor.role == Role::kResult;
  return tensor.rank == 0 && is_parameter ? tensor.name + "(0)" : tensor.name;
}

std::string typed_text(const TypedDefinition& definition, const TypedStatement& statement, const TypedExpr& expr,
                       bool widened) {
  return Writer(definition, statement, widened).value(expr);
}

std::string index_text(const TypedDefinition& definition, const TypedStatement& statement, const TypedExpr& expr) {
  return Writer(definition, statement).index(expr);
}

std::set<std::string> names_in(const TypedDefinition& definition) {
  std::set<std::string> names;
  for (const Tensor& tensor : definition.tensors) names.insert(tensor.name);
  for (const Scalar& scalar : definition.scalars) names.insert(scalar.name);
  for (const Size& size : definition.sizes) names.insert(size.name);
  for (const TypedStatement& statement : definition.statements) {
    for (const Index& index : statement.indices) names.insert(index.name);
    for (const Let& let : statement.lets) names.insert(let.name);
  }
  return names;
}

std::string subscripts_text(const TypedDefinition& definition, const TypedStatement& statement,
                            const std::vector<TypedExprPtr>& subscripts) {
  return Writer(definition, statement).indices(subscripts);
}

}  // namespace tc::lang
