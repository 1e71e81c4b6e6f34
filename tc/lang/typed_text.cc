#include "tc/lang/typed_text.h"

#include <fmt/format.h>

#include <cmath>

#include "tc/lang/ast.h"
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

class Writer {
 public:
  Writer(const TypedDefinition& definition, const TypedStatement& statement, bool widened = false)
      : definition_(definition), statement_(statement), widened_(widened) {}

  std::string write(const TypedExpr& expr) const {
    return std::visit(
        Overloaded{
            [&](const IntegerConstant& c) { return integer(c.value, expr.type); },
            [&](const FloatConstant& c) { return float_text(c.value, expr.type); },
            [&](const IndexRef& ref) { return statement_.indices[ref.index].name; },
            [&](const SizeRef& ref) { return definition_.sizes[ref.size].name; },
            [&](const ScalarRef& ref) { return wide(definition_.scalars[ref.scalar].name, expr.type); },
            [&](const ExtentRef& ref) {
              return fmt::format("{}.{}", definition_.tensors[ref.tensor].name, ref.dimension);
            },
            [&](const Read& read) {
              return wide(reference_text(definition_.tensors[static_cast<size_t>(read.tensor)]) + list(read.subscripts),
                          expr.type);
            },
            [&](const TypedUnary& unary) {
              return fmt::format("({}{})", spelling_of(unary.op), write(*unary.operand));
            },
            [&](const TypedBinary& binary) {
              return fmt::format("({} {} {})", write(*binary.left), spelling_of(binary.op), write(*binary.right));
            },
            [&](const Select& select) {
              return fmt::format("({} ? {} : {})", write(*select.condition), write(*select.if_true),
                                 write(*select.if_false));
            },
            [&](const Intrinsic& call) { return call.name + list(call.arguments); },
            [&](const Cast& cast) {
              const std::string inner = write(*cast.operand);
              return cast.implicit ? inner : fmt::format("{}({})", name_of(expr.type), inner);
            },
            [&](const LetRef& let) { return write(*let.value); },
        },
        expr.node);
  }

  std::string list(const std::vector<TypedExprPtr>& items) const {
    std::string text;
    for (const TypedExprPtr& item : items) text += (text.empty() ? "(" : ", ") + write(*item);
    return text.empty() ? text : text + ")";
  }

 private:
  static std::string integer(int64_t value, ScalarType type) {
    if (type == ScalarType::kBool) return value ? "bool(1)" : "bool(0)";
    if (type == ScalarType::kUInt64 && value < 0) {  // beyond int64: a float, which saturates (T6)
      return fmt::format("uint64({}.0)", static_cast<uint64_t>(value));
    }
    const std::string digits = value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    if (type == ScalarType::kInt32 || type == ScalarType::kInt64) return digits;
    return fmt::format("{}({})", name_of(type), digits);
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
  return Writer(definition, statement, widened).write(expr);
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
  return Writer(definition, statement).list(subscripts);
}

}  // namespace tc::lang
