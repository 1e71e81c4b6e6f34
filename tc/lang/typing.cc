#include "tc/lang/typing.h"

#include "tc/lang/advice.h"
#include "tc/lang/format.h"
#include "tc/lang/intrinsics.h"
#include "tc/lang/numbers.h"
#include "tc/lang/types.h"
#include "tc/lang/walk.h"
#include "tc/support/nearest.h"
#include "tc/support/scalar_type_names.h"

namespace tc::lang {

TypedExprPtr Typing::make(TypedExpr::Node node, ScalarType type, const Expr& at) const {
  return std::make_shared<const TypedExpr>(TypedExpr{std::move(node), type, at.range});
}

TypedExprPtr Typing::widen(TypedExprPtr expr, ScalarType type) const {
  if (expr->type == type) return expr;
  const SourceRange range = expr->range;
  return std::make_shared<const TypedExpr>(TypedExpr{Cast{std::move(expr), true}, type, range});
}

// Values.

TypedExprPtr Typing::value(const Expr& expr) {
  if (is_literal(expr)) {
    const auto literal = evaluate_literal(expr, report_);
    return literal ? make_constant(*literal, natural_type(*literal), false, expr.range, report_) : nullptr;
  }
  // A let keeps its name in the tree, whatever it stands for.
  const bool is_let = std::holds_alternative<NameUse>(expr.node) &&
                      names_.resolve(std::get<NameUse>(expr.node).name).kind == NameKind::kLet;
  if (!is_let && names_.classify(expr) == IndexClass::kIndex) {
    TypedExprPtr exact = index(expr, "an index");
    return exact ? make(Cast{exact, true}, ScalarType::kInt32, expr) : nullptr;
  }
  return std::visit(
      Overloaded{
          [&](const NameUse& use) { return name(use, expr); },
          [&](const Apply& a) { return apply(a, expr); },
          [&](const ExtentUse& use) { return extent(use, expr); },
          [&](const Unary& u) { return unary(u, expr); },
          [&](const Binary& b) { return binary(b, expr); },
          [&](const Conditional& c) { return select(*c.condition, *c.if_true, *c.if_false, expr, "'?:'"); },
          [&](const CastTo& c) { return cast(c, expr); },
          [](const IntegerLiteral&) -> TypedExprPtr { return nullptr; },  // literals are done above
          [](const FloatLiteral&) -> TypedExprPtr { return nullptr; },
      },
      expr.node);
}

TypedExprPtr Typing::value_of_type(const Expr& expr, ScalarType type, int tensor) {
  if (is_float8(type)) {  // T8
    TypedExprPtr typed = value_of_type(expr, ScalarType::kFloat32, tensor);
    return typed ? widen(std::move(typed), type) : nullptr;
  }
  if (is_literal(expr)) {
    const auto literal = evaluate_literal(expr, report_);
    if (literal) note_whole_quotients(expr, type);
    return literal ? make_constant(*literal, type, false, expr.range, report_) : nullptr;
  }
  TypedExprPtr typed = value(expr);
  if (!typed) return nullptr;
  if (widens(typed->type, type)) return promote(std::move(typed), type, expr);
  const std::string& name = scope_.definition.tensors[tensor].name;
  type = scope_.definition.tensors[tensor].type;
  const bool logic = typed->type == ScalarType::kBool || type == ScalarType::kBool;
  Diagnostic* error =
      logic ? report_.error(expr.range, "'{}' is {} and its right side is {}: a conversion needs a cast, {}(...)", name,
                            name_of(type), name_of(typed->type), name_of(type))  // T4
            : report_.error(expr.range, "'{}' is {} and its right side is {}: narrowing needs a cast, {}(...)", name,
                            name_of(type), name_of(typed->type), name_of(type));  // T2
  error->notes.push_back(scope_.declared_here(tensor));
  return nullptr;
}

TypedExprPtr Typing::let_value(int let) {
  TypedExprPtr& typed = value_lets_[let];
  if (!typed) typed = value(*names_.lets[let].clause->value);
  return typed;
}

TypedExprPtr Typing::name(const NameUse& use, const Expr& at) {
  const Resolved resolved = names_.resolve(use.name);
  switch (resolved.kind) {
    case NameKind::kLet: {
      TypedExprPtr let = let_value(resolved.id);
      return let ? make(LetRef{resolved.id, let}, let->type, at) : nullptr;
    }
    case NameKind::kScalar:
      return make(ScalarRef{resolved.id}, scope_.definition.scalars[resolved.id].type, at);
    case NameKind::kTensor:
      return read(resolved.id, {}, at);
    default:
      report_.error(at.range, "'{0}' is an intrinsic and takes arguments: {0}(...)", use.name);  // C9
      return nullptr;
  }
}

TypedExprPtr Typing::apply(const Apply& apply, const Expr& at) {
  const std::string& name = apply.name.text;
  if (auto tensor = scope_.tensors.find(name); tensor != scope_.tensors.end()) {
    return read(tensor->second, apply.arguments, at);
  }
  if (find_intrinsic(name)) return intrinsic(apply, at);
  return undefined(apply.name);
}

std::nullptr_t Typing::undefined(const Name& name) {
  const Resolved resolved = names_.resolve(name.text);
  if (resolved.kind != NameKind::kIndex) {
    const std::string_view kind = resolved.kind == NameKind::kScalar ? "scalar"
                                  : resolved.kind == NameKind::kSize ? "size"
                                                                     : "let";
    Diagnostic* error =
        report_.error(name.range, "'{}' is a {}, so it has no elements and no dimensions", name.text, kind);  // C9
    if (resolved.kind == NameKind::kScalar) {
      const ScalarType type = scope_.definition.scalars[resolved.id].type;
      error->notes.push_back({std::nullopt, fmt::format("a tensor's extents stand behind its type: '{}(N) {}'",
                                                        name_of(type), name.text)});
    }
    return nullptr;
  }
  if (scope_.defs.contains(name.text)) {
    report_.error(name.range, "'{}' is a def, and a def cannot call another: write its statements in this one",
                  name.text);  // C9
    return nullptr;
  }
  Diagnostic* error = report_.error(name.range, "'{}' is neither a tensor nor an intrinsic", name.text);  // C9
  if (const auto advice = advice_for_function(name.text); !advice.empty()) {
    error->notes.push_back({std::nullopt, std::string(advice)});
    return nullptr;
  }
  std::vector<std::string> candidates;
  for (const Tensor& tensor : scope_.definition.tensors) candidates.push_back(tensor.name);
  for (const IntrinsicInfo& info : all_intrinsics()) candidates.emplace_back(info.name);
  for (const ScalarTypeName& type : all_scalar_type_names()) candidates.emplace_back(type.name);
  if (const std::string near = nearest(name.text, candidates); !near.empty()) {
    error->notes.push_back({std::nullopt, fmt::format("did you mean '{}'?", near)});
    return nullptr;
  }
  constexpr size_t kFew = 8;
  const std::vector<Tensor>& tensors = scope_.definition.tensors;
  std::string list;
  for (size_t i = 0; i < tensors.size(); ++i) {
    list += fmt::format("{}'{}'", i == 0 ? "" : i + 1 == tensors.size() ? " and " : ", ", tensors[i].name);
  }
  if (tensors.size() <= kFew) error->notes.push_back({std::nullopt, fmt::format("the tensors here are {}", list)});
  return nullptr;
}

TypedExprPtr Typing::read(int tensor, const std::vector<ExprPtr>& subscripts, const Expr& at) {
  const Tensor& declared = scope_.definition.tensors[tensor];
  if (static_cast<int>(subscripts.size()) != declared.rank) {
    report_
        .error(at.range, "'{}' has {} dimension{} but is indexed with {}", declared.name, declared.rank,
               declared.rank == 1 ? "" : "s", subscripts.size())  // C9
        ->notes.push_back(scope_.declared_here(tensor));
    return nullptr;
  }
  Read read{tensor, {}};
  bool complete = true;
  for (const ExprPtr& subscript : subscripts) {
    read.subscripts.push_back(index(*subscript, "a subscript"));
    complete &= read.subscripts.back() != nullptr;
  }
  if (!complete) return nullptr;
  TypedExprPtr element = make(std::move(read), declared.type, at);
  return is_float8(declared.type) ? widen(std::move(element), ScalarType::kFloat32) : element;  // T8
}

TypedExprPtr Typing::condition(const Expr& expr, std::string_view of) {
  TypedExprPtr typed = value(expr);
  if (!typed || typed->type == ScalarType::kBool) return typed;
  report_.error(expr.range, "{} takes a bool, and '{}' is {}: compare it, as in '{} != 0'", of, text(expr),
                name_of(typed->type), text(expr));  // T4
  return nullptr;
}

TypedExprPtr Typing::number(const Expr& expr, std::string_view of) {
  TypedExprPtr typed = value(expr);
  if (!typed || typed->type != ScalarType::kBool) return typed;
  report_.error(expr.range, "{} takes numbers, and '{}' is a bool: write a cast, as in int32({})", of, text(expr),
                text(expr));  // T4
  return nullptr;
}

bool Typing::numbers(const std::vector<ExprPtr>& exprs, std::string_view of, std::vector<TypedExprPtr>& typed) {
  bool complete = true;
  for (const ExprPtr& expr : exprs) {
    typed.push_back(number(*expr, of));
    complete &= typed.back() != nullptr;
  }
  return complete;
}

TypedExprPtr Typing::unary(const Unary& unary, const Expr& at) {
  const std::string of = fmt::format("'{}'", spelling_of(unary.op));
  if (unary.op == UnaryOp::kNot) {
    TypedExprPtr operand = condition(*unary.operand, of);
    return operand ? make(TypedUnary{unary.op, operand}, ScalarType::kBool, at) : nullptr;
  }
  TypedExprPtr operand = number(*unary.operand, of);
  return operand ? make(TypedUnary{unary.op, operand}, operand->type, at) : nullptr;
}

TypedExprPtr Typing::binary(const Binary& binary, const Expr& at) {
  const std::string of = fmt::format("'{}'", spelling_of(binary.op));
  if (is_comparison(binary.op)) return compare(binary, at);
  if (is_logic(binary.op)) {
    TypedExprPtr left = condition(*binary.left, of);
    TypedExprPtr right = condition(*binary.right, of);
    return left && right ? make(TypedBinary{binary.op, left, right}, ScalarType::kBool, at) : nullptr;
  }
  TypedExprPtr left = number(*binary.left, of);
  TypedExprPtr right = number(*binary.right, of);
  if (!left || !right) return nullptr;
  const ScalarType type = meet(left->type, right->type);  // T1
  if (binary.op == BinaryOp::kMod && is_float(type)) {
    report_.error(at.range, "'%' takes integers: write fmod(x, y) for floats");  // R8
    return nullptr;
  }
  return make(TypedBinary{binary.op, promote(left, type, *binary.left), promote(right, type, *binary.right)}, type, at);
}

TypedExprPtr Typing::compare(const Binary& binary, const Expr& at) {
  const IndexClass left_class = names_.classify(*binary.left, true);
  const IndexClass right_class = names_.classify(*binary.right, true);
  if (left_class != IndexClass::kNone && right_class != IndexClass::kNone &&
      (left_class == IndexClass::kIndex || right_class == IndexClass::kIndex)) {
    // A scalar in a guard stays a value of the call: only subscripts and ranges compile it in.
    compiles_in_ = false;
    TypedExprPtr left = index(*binary.left, "an index");
    TypedExprPtr right = index(*binary.right, "an index");
    compiles_in_ = true;
    return left && right ? make(TypedBinary{binary.op, left, right}, ScalarType::kBool, at) : nullptr;
  }
  TypedExprPtr left = value(*binary.left);
  TypedExprPtr right = value(*binary.right);
  if (!left || !right) return nullptr;
  const bool left_bool = left->type == ScalarType::kBool;
  const bool right_bool = right->type == ScalarType::kBool;
  const bool equality = binary.op == BinaryOp::kEq || binary.op == BinaryOp::kNe;
  if (left_bool && right_bool && equality) return make(TypedBinary{binary.op, left, right}, ScalarType::kBool, at);
  if (left_bool || right_bool) {
    report_.error(at.range, "'{}' cannot compare {} with {}: a bool needs a cast to become a number",
                  spelling_of(binary.op), name_of(left->type), name_of(right->type));  // T4
    return nullptr;
  }
  const ScalarType type = meet(left->type, right->type);
  return make(TypedBinary{binary.op, promote(left, type, *binary.left), promote(right, type, *binary.right)},
              ScalarType::kBool, at);
}

TypedExprPtr Typing::select(const Expr& condition_expr, const Expr& if_true, const Expr& if_false, const Expr& at,
                            std::string_view of) {
  TypedExprPtr chosen = condition(condition_expr, of);
  TypedExprPtr left = value(if_true);
  TypedExprPtr right = value(if_false);
  if (!chosen || !left || !right) return nullptr;
  if ((left->type == ScalarType::kBool) != (right->type == ScalarType::kBool)) {
    report_.error(at.range, "the branches of {} are {} and {}: a bool needs a cast to become a number", of,
                  name_of(left->type), name_of(right->type));  // T4
    return nullptr;
  }
  const ScalarType type = left->type == ScalarType::kBool ? left->type : meet(left->type, right->type);  // T4
  return make(Select{chosen, promote(left, type, if_true), promote(right, type, if_false)}, type, at);
}

TypedExprPtr Typing::cast(const CastTo& cast, const Expr& at) {
  if (is_literal(*cast.operand)) {
    const auto literal = evaluate_literal(*cast.operand, report_);
    if (literal && is_float8(cast.type)) return float8_constant(*literal, cast);
    return literal ? make_constant(*literal, cast.type, true, cast.operand->range, report_) : nullptr;
  }
  const bool exact = cast.type == ScalarType::kInt64 && names_.classify(*cast.operand) == IndexClass::kIndex;
  if (exact) return index(*cast.operand, "an index");
  TypedExprPtr operand = value(*cast.operand);
  if (!operand || operand->type == cast.type) return operand;
  if (!is_float8(cast.type)) return make(Cast{operand, false}, cast.type, at);
  // T8: the value is that of an element, read again. An integer that float32 cannot hold saturates anyway.
  if (!is_float(operand->type)) operand = make(Cast{operand, true}, ScalarType::kFloat32, at);
  return widen(make(Cast{operand, false}, cast.type, at), ScalarType::kFloat32);
}

/// T8: rounded once, to a number that float32 holds.
TypedExprPtr Typing::float8_constant(const LiteralValue& value, const CastTo& cast) {
  const double exact = std::visit([](auto v) { return static_cast<double>(v); }, value);
  return make_constant(round_to(cast.type, exact), ScalarType::kFloat32, true, cast.operand->range, report_);
}

TypedExprPtr Typing::promote(TypedExprPtr typed, ScalarType type, const Expr& expr) {
  if (is_integer(typed->type)) note_whole_quotients(expr, type);
  return widen(std::move(typed), type);
}

/// T6. What stands in a cast is meant, as float(i / 2) is.
void Typing::note_whole_quotients(const Expr& expr, ScalarType type) {
  if (!is_float(type)) return;
  if (const auto* unary = std::get_if<Unary>(&expr.node)) return note_whole_quotients(*unary->operand, type);
  if (const auto* choice = std::get_if<Conditional>(&expr.node)) {
    note_whole_quotients(*choice->if_true, type);
    return note_whole_quotients(*choice->if_false, type);
  }
  const auto* binary = std::get_if<Binary>(&expr.node);
  if (!binary || binary->op < BinaryOp::kAdd) return;
  note_whole_quotients(*binary->left, type);
  note_whole_quotients(*binary->right, type);
  if (binary->op != BinaryOp::kDiv || !loses_a_fraction(*binary)) return;
  const std::string divisor = std::holds_alternative<Binary>(binary->right->node)
                                  ? fmt::format("({})", format(*binary->right))
                                  : format(*binary->right);
  const auto* number = std::get_if<IntegerLiteral>(&binary->left->node);
  const std::string dividend =
      number ? fmt::format("{}.0", number->value)
             : fmt::format("{}({})", type == ScalarType::kFloat64 ? "double" : "float", format(*binary->left));
  const std::string quotient = format(expr);
  scope_.definition.remarks.push_back(
      {expr.range,
       fmt::format("'{0}' divides integers, so it is rounded down before it becomes {1}: write {2} / {3}, or "
                   "{1}({0}) if that is meant",
                   quotient, name_of(type), dividend, divisor)});
}

/// False for numbers whose quotient is whole, and for a quotient of floats.
bool Typing::loses_a_fraction(const Binary& quotient) {
  const Expr* const sides[] = {quotient.left.get(), quotient.right.get()};
  std::vector<LiteralValue> numbers;
  for (const Expr* side : sides) {
    if (!is_literal(*side)) continue;
    Report ignored(report_.source());
    const auto value = evaluate_literal(*side, ignored);
    if (!value || !std::holds_alternative<int64_t>(*value)) return false;
    numbers.push_back(*value);
  }
  if (numbers.size() < 2) return true;
  const int64_t divisor = std::get<int64_t>(numbers[1]);
  return divisor == 0 || floor_modulo(std::get<int64_t>(numbers[0]), divisor == -1 ? 1 : divisor) != 0;
}

TypedExprPtr Typing::intrinsic(const Apply& apply, const Expr& at) {
  const IntrinsicInfo& info = *find_intrinsic(apply.name.text);
  const auto count = static_cast<int>(apply.arguments.size());
  if (count < info.min_arguments || count > info.max_arguments) {
    report_.error(at.range, "'{}' takes {}{} argument{}, not {}", apply.name.text, info.min_arguments,
                  info.max_arguments > info.min_arguments ? " or more" : "", info.max_arguments == 1 ? "" : "s", count);
    return nullptr;
  }
  if (info.signature == Signature::kSelect) {
    return select(*apply.arguments[0], *apply.arguments[1], *apply.arguments[2], at, "'select'");
  }
  const std::string of = fmt::format("'{}'", apply.name.text);
  std::vector<TypedExprPtr> arguments;
  if (!numbers(apply.arguments, of, arguments)) return nullptr;
  return call(info, apply, std::move(arguments), at);
}

TypedExprPtr Typing::call(const IntrinsicInfo& info, const Apply& apply, std::vector<TypedExprPtr> arguments,
                          const Expr& at) {
  const auto wrong = [&](size_t i, std::string_view wanted) {
    report_.error(apply.arguments[i]->range, "'{}' takes {} here, and '{}' is {}", apply.name.text, wanted,
                  text(*apply.arguments[i]), name_of(arguments[i]->type));  // T1
    return nullptr;
  };
  const auto floating = [](ScalarType type) { return is_float(type) ? type : ScalarType::kFloat32; };
  const size_t last = arguments.size() - 1;
  const bool integers = info.signature == Signature::kInteger || info.signature == Signature::kShift ||
                        info.signature == Signature::kIntegerToInt32;
  ScalarType type = arguments[0]->type;
  for (size_t i = 0; i <= last; ++i) {
    if (integers && !is_integer(arguments[i]->type)) return wrong(i, "integers");
    type = meet(type, arguments[i]->type);  // T1
  }
  switch (info.signature) {
    case Signature::kShift: {
      const ScalarType shifted = arguments[0]->type;
      return make(Intrinsic{std::string(info.name), std::move(arguments)}, shifted, at);
    }
    case Signature::kFloatInt32:
    case Signature::kInt32Float: {
      const size_t whole = info.signature == Signature::kFloatInt32 ? 1 : 0;
      if (!widens(arguments[whole]->type, ScalarType::kInt32)) return wrong(whole, "an int32");
      type = floating(arguments[1 - whole]->type);
      arguments[whole] = widen(arguments[whole], ScalarType::kInt32);
      arguments[1 - whole] = widen(arguments[1 - whole], type);
      return make(Intrinsic{std::string(info.name), std::move(arguments)}, type, at);
    }
    case Signature::kArithmetic:
    case Signature::kInteger:
    case Signature::kIntegerToInt32:
      break;
    case Signature::kFloat32:
      if (type == ScalarType::kFloat64) return wrong(0, "a float32");
      type = ScalarType::kFloat32;
      break;
    default:
      type = floating(type);
  }
  for (size_t i = 0; i <= last; ++i) arguments[i] = promote(std::move(arguments[i]), type, *apply.arguments[i]);
  ScalarType result = type;
  if (info.signature == Signature::kFloatToBool) result = ScalarType::kBool;
  if (info.signature == Signature::kFloatToInt64) result = ScalarType::kInt64;
  if (info.signature == Signature::kFloatToInt32 || info.signature == Signature::kIntegerToInt32) {
    result = ScalarType::kInt32;
  }
  return make(Intrinsic{std::string(info.name), std::move(arguments)}, result, at);
}

// Index arithmetic.

TypedExprPtr Typing::index(const Expr& expr, std::string_view what) {
  if (is_literal(expr)) {
    const auto literal = evaluate_literal(expr, report_);
    if (!literal) return nullptr;
    if (const auto* value = std::get_if<int64_t>(&*literal)) {
      return make(IntegerConstant{*value}, ScalarType::kInt64, expr);
    }
    return integer_value(expr, what);
  }
  if (const auto* use = std::get_if<NameUse>(&expr.node)) return index_name(*use, expr, what);
  if (const auto* a = std::get_if<Apply>(&expr.node)) return index_apply(*a, expr, what);
  if (const auto* use = std::get_if<ExtentUse>(&expr.node)) return extent(*use, expr);
  if (const auto* u = std::get_if<Unary>(&expr.node); u && u->op == UnaryOp::kNegate) {
    TypedExprPtr operand = index(*u->operand, what);
    return operand ? make(TypedUnary{u->op, operand}, ScalarType::kInt64, expr) : nullptr;
  }
  if (const auto* b = std::get_if<Binary>(&expr.node); b && b->op >= BinaryOp::kAdd) {
    TypedExprPtr left = index(*b->left, what);
    TypedExprPtr right = index(*b->right, what);
    return left && right ? make(TypedBinary{b->op, left, right}, ScalarType::kInt64, expr) : nullptr;
  }
  if (const auto* c = std::get_if<Conditional>(&expr.node)) {
    return index_select(*c->condition, *c->if_true, *c->if_false, expr, what);
  }
  if (const auto* c = std::get_if<CastTo>(&expr.node);
      c && c->type == ScalarType::kInt64 && names_.classify(*c->operand) == IndexClass::kIndex) {
    return index(*c->operand, what);
  }
  TypedExprPtr typed = integer_value(expr, what);
  if (typed && compiles_in_) compile_in(*typed);
  return typed;
}

/// Compiles in (C11) the scalars of a value in a subscript, such as a cast of one, unless data decide it anyway.
void Typing::compile_in(const TypedExpr& value) {
  std::vector<int> scalars;
  bool data_decide = false;
  walk(value, [&](const TypedExpr& e) {
    data_decide |= std::holds_alternative<Read>(e.node);
    const auto* ref = std::get_if<ScalarRef>(&e.node);
    if (ref == nullptr) return;
    data_decide |= !is_integer(scope_.definition.scalars[ref->scalar].type);
    scalars.push_back(ref->scalar);
  });
  if (data_decide) return;
  for (const int scalar : scalars) scope_.definition.scalars[scalar].compiled_in = true;
}

TypedExprPtr Typing::index_select(const Expr& condition_expr, const Expr& if_true, const Expr& if_false, const Expr& at,
                                  std::string_view what) {
  TypedExprPtr chosen = condition(condition_expr, "'?:'");
  TypedExprPtr left = index(if_true, what);
  TypedExprPtr right = index(if_false, what);
  if (!chosen || !left || !right) return nullptr;
  return make(Select{chosen, left, right}, ScalarType::kInt64, at);
}

TypedExprPtr Typing::integer_value(const Expr& expr, std::string_view what) {
  TypedExprPtr typed = value(expr);
  if (!typed) return nullptr;
  if (is_integer(typed->type)) return widen(std::move(typed), ScalarType::kInt64);
  if (find_constant(text(expr))) {
    report_.error(expr.range, "'{}' is a constant, so it cannot be an index", text(expr));  // C9
    return nullptr;
  }
  report_.error(expr.range, "{} must be an integer, and '{}' is {}", what, text(expr), name_of(typed->type));  // C8
  return nullptr;
}

TypedExprPtr Typing::index_name(const NameUse& use, const Expr& at, std::string_view what) {
  const Resolved resolved = names_.resolve(use.name);
  switch (resolved.kind) {
    case NameKind::kIndex:
      return make(IndexRef{names_.indices.find(use.name)->second}, ScalarType::kInt64, at);
    case NameKind::kSize:
      return make(SizeRef{resolved.id}, ScalarType::kInt64, at);
    case NameKind::kLet: {
      TypedExprPtr& typed = index_lets_[compiles_in_ ? 1 : 0][resolved.id];
      if (!typed) typed = index(*names_.lets[resolved.id].clause->value, what);
      return typed ? make(LetRef{resolved.id, typed}, ScalarType::kInt64, at) : nullptr;
    }
    case NameKind::kScalar: {
      TypedExprPtr scalar = integer_value(at, what);
      if (scalar && compiles_in_) compile_in(*scalar);
      return scalar;
    }
    default:
      return integer_value(at, what);
  }
}

/// Intrinsics on integers stay exact; others are values.
TypedExprPtr Typing::index_apply(const Apply& apply, const Expr& at, std::string_view what) {
  const IntrinsicInfo* info = scope_.tensors.contains(apply.name.text) ? nullptr : find_intrinsic(apply.name.text);
  const bool exact = info && (info->signature == Signature::kArithmetic || info->signature == Signature::kInteger ||
                              info->signature == Signature::kShift);
  const auto count = static_cast<int>(apply.arguments.size());
  if (info && info->signature == Signature::kSelect && count == 3) {
    return index_select(*apply.arguments[0], *apply.arguments[1], *apply.arguments[2], at, what);
  }
  if (!exact || count < info->min_arguments || count > info->max_arguments) return integer_value(at, what);
  Intrinsic intrinsic{std::string(info->name), {}};
  bool complete = true;
  for (const ExprPtr& argument : apply.arguments) {
    intrinsic.arguments.push_back(index(*argument, what));
    complete &= intrinsic.arguments.back() != nullptr;
  }
  return complete ? make(std::move(intrinsic), ScalarType::kInt64, at) : nullptr;
}

TypedExprPtr Typing::extent(const ExtentUse& use, const Expr& at) {
  const auto tensor = scope_.tensors.find(use.tensor.text);
  if (tensor == scope_.tensors.end()) {
    report_.error(use.tensor.range, "'{}' is not a tensor, so it has no extents", use.tensor.text);  // C9
    return nullptr;
  }
  const Tensor& declared = scope_.definition.tensors[tensor->second];
  if (use.dimension >= declared.rank) {
    report_
        .error(at.range, "'{}' has {} dimension{}, counted from 0: there is no dimension {}", declared.name,
               declared.rank, declared.rank == 1 ? "" : "s", use.dimension)  // C9
        ->notes.push_back(scope_.declared_here(tensor->second));
    return nullptr;
  }
  return make(ExtentRef{tensor->second, static_cast<int>(use.dimension)}, ScalarType::kInt64, at);
}

}  // namespace tc::lang
