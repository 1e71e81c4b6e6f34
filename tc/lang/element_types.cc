#include <algorithm>
#include <map>

#include "tc/lang/intrinsics.h"
#include "tc/lang/literals.h"
#include "tc/lang/scope.h"
#include "tc/lang/types.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// Nothing while a tensor that it depends on has no type.
using MaybeType = std::optional<ScalarType>;

/// The unknown side gives way; a mixture with bool is an error that the typing of the expression reports.
MaybeType join(MaybeType a, MaybeType b) {
  if (!a) return b;
  if (!b || *a == ScalarType::kBool || *b == ScalarType::kBool) return a;
  return meet(*a, *b);
}

/// The type that an expression has, as far as it can be told from the types found so far.
class Guess {
 public:
  Guess(const Scope& scope, const Statement& statement) : scope_(scope), names_{scope, {}, {}, {}} {
    for (const Clause& clause : statement.clauses) {
      const auto* let = std::get_if<LetClause>(&clause.node);
      if (!let) continue;
      // All of it before the name is known: a let that uses itself is an error, which is reported later.
      const LetFacts facts{let, names_.classify(*let->value), names_.classify(*let->value, true)};
      let_types_.push_back(of(*let->value));
      names_.let_ids.try_emplace(let->name.text, names_.lets.size());
      names_.lets.push_back(facts);
    }
  }

  MaybeType of(const Expr& expr) const {
    if (names_.classify(expr) == IndexClass::kIndex) return ScalarType::kInt32;
    return std::visit(Overloaded{
                          [](const IntegerLiteral& literal) -> MaybeType { return natural_type(literal.value); },
                          [](const FloatLiteral&) -> MaybeType { return ScalarType::kFloat32; },
                          [&](const NameUse& use) { return of_name(use.name); },
                          [](const ExtentUse&) -> MaybeType { return ScalarType::kInt32; },
                          [&](const Apply& apply) { return of_apply(apply); },
                          [&](const Unary& unary) -> MaybeType {
                            return unary.op == UnaryOp::kNot ? ScalarType::kBool : of(*unary.operand);
                          },
                          [&](const Binary& binary) -> MaybeType {
                            if (is_logic(binary.op) || is_comparison(binary.op)) return ScalarType::kBool;
                            return join_all({binary.left, binary.right}, 0);
                          },
                          [&](const Conditional& conditional) {
                            return join_all({conditional.if_true, conditional.if_false}, 0);
                          },
                          [](const CastTo& cast) -> MaybeType { return as_value(cast.type); },
                      },
                      expr.node);
  }

 private:
  MaybeType of_name(const std::string& name) const {
    const Resolved resolved = names_.resolve(name);
    switch (resolved.kind) {
      case NameKind::kLet:
        return let_types_[resolved.id];
      case NameKind::kScalar:
        return scope_.definition.scalars[resolved.id].type;
      case NameKind::kTensor:
        return as_value(scope_.facts[resolved.id].type);
      default:
        return ScalarType::kInt32;
    }
  }

  MaybeType of_apply(const Apply& apply) const {
    if (auto tensor = scope_.tensors.find(apply.name.text); tensor != scope_.tensors.end()) {
      return as_value(scope_.facts[tensor->second].type);
    }
    const IntrinsicInfo* intrinsic = find_intrinsic(apply.name.text);
    if (!intrinsic) return std::nullopt;
    const auto& arguments = apply.arguments;
    const auto last = arguments.size() - 1;
    switch (intrinsic->signature) {
      case Signature::kFloatToBool:
        return ScalarType::kBool;
      case Signature::kFloatToInt64:
        return ScalarType::kInt64;
      case Signature::kFloatToInt32:
      case Signature::kIntegerToInt32:
        return ScalarType::kInt32;
      case Signature::kShift:
        return of(*arguments[0]);
      case Signature::kFloat32:
        return ScalarType::kFloat32;
      case Signature::kFloatInt32:
        return floating(of(*arguments[0]));
      case Signature::kInt32Float:
        return floating(of(*arguments[last]));
      case Signature::kFloat:
        return floating(join_all(arguments, 0));
      case Signature::kSelect:
        return join_all(arguments, 1);
      default:
        return join_all(arguments, 0);
    }
  }

  /// Beside something unknown a literal tells nothing: `C(i) + 1` has the type of C.
  MaybeType join_all(const std::vector<ExprPtr>& exprs, size_t from) const {
    MaybeType all;
    MaybeType of_literals;
    bool unknown = false;
    for (size_t i = from; i < exprs.size(); ++i) {
      const MaybeType type = of(*exprs[i]);
      unknown |= !type;
      MaybeType& side = is_literal(*exprs[i]) ? of_literals : all;
      side = join(side, type);
    }
    return unknown ? all : join(all, of_literals);
  }

  /// T8: the value of an 8-bit float is a float32.
  static MaybeType as_value(MaybeType type) { return type && is_float8(*type) ? ScalarType::kFloat32 : type; }

  static MaybeType floating(MaybeType type) { return type && !is_float(*type) ? ScalarType::kFloat32 : type; }

  const Scope& scope_;
  StatementScope names_;
  std::vector<MaybeType> let_types_;
};

/// The type that a statement alone gives to its tensor: T2, T6, T8.
MaybeType type_of(const Scope& scope, const Statement& statement) {
  const MaybeType type = Guess(scope, statement).of(*statement.right);
  const auto* cast = std::get_if<CastTo>(&statement.right->node);
  if (statement.op == AssignOp::kSet && cast && is_float8(cast->type)) return cast->type;
  const bool sums = statement.op == AssignOp::kSum || statement.op == AssignOp::kSumInit ||
                    statement.op == AssignOp::kProduct || statement.op == AssignOp::kProductInit;
  if (!sums || !type || !is_integer(*type) || bits_of(*type) >= 32) return type;
  return is_signed_integer(*type) ? ScalarType::kInt32 : ScalarType::kUInt32;
}

/// The statements that write a tensor decide together: the first right side with a type of its own, and the literals
/// before it, which only tell integers from floats (T2).
MaybeType type_from_statements(const Scope& scope, int tensor) {
  MaybeType literals;
  for (size_t s = 0; s < scope.written.size(); ++s) {
    if (scope.written[s] != tensor) continue;
    const Statement& statement = scope.source->statements[s];
    const MaybeType type = type_of(scope, statement);
    if (is_literal(*statement.right)) {
      literals = join(literals, type);
      continue;
    }
    if (!type) continue;
    const bool only_float = literals && is_float(*literals) && is_integer(*type);
    return only_float ? ScalarType::kFloat32 : type;
  }
  return std::nullopt;
}

/// All right sides are literals: int32, int64 or float32.
MaybeType type_of_literals(const Scope& scope, int tensor) {
  MaybeType type;
  for (size_t s = 0; s < scope.written.size(); ++s) {
    if (scope.written[s] != tensor) continue;
    const Statement& statement = scope.source->statements[s];
    if (!is_literal(*statement.right)) return std::nullopt;
    type = join(type, Guess(scope, statement).of(*statement.right));
  }
  return type;
}

}  // namespace

std::vector<int> find_element_types(Scope& scope) {
  // Types only ever widen, so this ends; the bound is for the reader's peace of mind.
  const size_t rounds = 16 * (scope.facts.size() + 1);
  bool changed = true;
  for (size_t round = 0; changed && round < rounds; ++round) {
    changed = false;
    for (int written : scope.written) {
      if (written < 0 || scope.facts[written].declared) continue;
      MaybeType& known = scope.facts[written].type;
      MaybeType type = type_from_statements(scope, written);
      if (!type) type = type_of_literals(scope, written);
      changed |= type != known;
      known = type;
    }
  }
  std::vector<int> unknown;
  for (size_t id = 0; id < scope.facts.size(); ++id) {
    scope.definition.tensors[id].type = scope.facts[id].type.value_or(ScalarType::kFloat32);
    const bool written =
        std::find(scope.written.begin(), scope.written.end(), static_cast<int>(id)) != scope.written.end();
    if (!scope.facts[id].type && written) unknown.push_back(static_cast<int>(id));
  }
  return unknown;
}

}  // namespace tc::lang
