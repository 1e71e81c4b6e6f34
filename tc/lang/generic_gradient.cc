#include "tc/lang/generic_gradient.h"

#include <algorithm>
#include <map>
#include <set>

#include "tc/lang/format.h"
#include "tc/lang/literals.h"
#include "tc/lang/parser.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// The texts differ in more than types.
struct Different {};

/// Merges a def for one type of a variable with the same for another: where the types differ, the variable is put.
class Merge {
 public:
  Merge(ScalarType one, ScalarType other, std::string variable)
      : one_(one), other_(other), variable_(std::move(variable)) {}

  void operator()(Definition& a, const Definition& b) const {
    same_size(a.parameters, b.parameters);
    same_size(a.results, b.results);
    same_size(a.statements, b.statements);
    for (size_t i = 0; i < a.parameters.size(); ++i) {
      type(a.parameters[i].type, b.parameters[i].type, a.parameters[i].type_variable);
    }
    for (size_t i = 0; i < a.results.size(); ++i) optional_type(a.results[i], b.results[i]);
    for (size_t i = 0; i < a.statements.size(); ++i) statement(a.statements[i], b.statements[i]);
  }

 private:
  template <typename Item>
  static void same_size(const std::vector<Item>& a, const std::vector<Item>& b) {
    if (a.size() != b.size()) throw Different();
  }

  void type(ScalarType& a, ScalarType b, std::string& variable) const {
    if (a == b) return;
    if (!variable.empty() || a != one_ || b != other_) throw Different();
    variable = variable_;
  }

  template <typename Item>
  void optional_type(Item& a, const Item& b) const {
    if (a.type.has_value() != b.type.has_value()) throw Different();
    if (a.type) type(*a.type, *b.type, a.type_variable);
  }

  void statement(Statement& a, const Statement& b) const {
    if (a.tensor.text != b.tensor.text || a.op != b.op) throw Different();
    optional_type(a, b);
    list(a.subscripts, b.subscripts);
    a.right = merged(a.right, b.right);
    same_size(a.clauses, b.clauses);
    for (size_t i = 0; i < a.clauses.size(); ++i) clause(a.clauses[i], b.clauses[i]);
  }

  void clause(Clause& a, const Clause& b) const {
    if (a.node.index() != b.node.index()) throw Different();
    if (auto* range = std::get_if<RangeClause>(&a.node)) {
      range->low = merged(range->low, std::get<RangeClause>(b.node).low);
      range->high = merged(range->high, std::get<RangeClause>(b.node).high);
    } else if (auto* let = std::get_if<LetClause>(&a.node)) {
      let->value = merged(let->value, std::get<LetClause>(b.node).value);
    } else {
      auto& exists = std::get<ExistsClause>(a.node);
      exists.expression = merged(exists.expression, std::get<ExistsClause>(b.node).expression);
    }
  }

  void list(std::vector<ExprPtr>& a, const std::vector<ExprPtr>& b) const {
    same_size(a, b);
    for (size_t i = 0; i < a.size(); ++i) a[i] = merged(a[i], b[i]);
  }

  ExprPtr merged(const ExprPtr& a, const ExprPtr& b) const {
    // A number of the natural type has no cast; the wider type's has more digits.
    const auto* cast_b = std::get_if<CastTo>(&b->node);
    if (cast_b && cast_b->type == other_ && is_literal(*a) && is_literal(*cast_b->operand)) {
      return with(*a, CastTo{one_, cast_b->operand, variable_});
    }
    if (a->node.index() != b->node.index()) throw Different();
    return std::visit([&](const auto& node) { return of(*a, node, std::get<std::decay_t<decltype(node)>>(b->node)); },
                      a->node);
  }

  static ExprPtr with(const Expr& at, Expr::Node node) {
    return std::make_shared<const Expr>(Expr{std::move(node), at.range, at.height});
  }
  static ExprPtr same(const Expr& at, bool equal) {
    if (!equal) throw Different();
    return std::make_shared<const Expr>(at);
  }

  ExprPtr of(const Expr& at, const IntegerLiteral& a, const IntegerLiteral& b) const {
    return same(at, a.value == b.value);
  }
  ExprPtr of(const Expr& at, const FloatLiteral& a, const FloatLiteral& b) const {
    return same(at, a.spelling == b.spelling);
  }
  ExprPtr of(const Expr& at, const NameUse& a, const NameUse& b) const { return same(at, a.name == b.name); }
  ExprPtr of(const Expr& at, const ExtentUse& a, const ExtentUse& b) const {
    return same(at, a.tensor.text == b.tensor.text && a.dimension == b.dimension);
  }
  ExprPtr of(const Expr& at, Apply a, const Apply& b) const {
    if (a.name.text != b.name.text) throw Different();
    list(a.arguments, b.arguments);
    return with(at, std::move(a));
  }
  ExprPtr of(const Expr& at, const Unary& a, const Unary& b) const {
    if (a.op != b.op) throw Different();
    return with(at, Unary{a.op, merged(a.operand, b.operand)});
  }
  ExprPtr of(const Expr& at, const Binary& a, const Binary& b) const {
    if (a.op != b.op) throw Different();
    return with(at, Binary{a.op, merged(a.left, b.left), merged(a.right, b.right)});
  }
  ExprPtr of(const Expr& at, const Conditional& a, const Conditional& b) const {
    return with(at, Conditional{merged(a.condition, b.condition), merged(a.if_true, b.if_true),
                                merged(a.if_false, b.if_false)});
  }
  ExprPtr of(const Expr& at, CastTo a, const CastTo& b) const {
    type(a.type, b.type, a.type_variable);
    a.operand = merged(a.operand, b.operand);
    return with(at, std::move(a));
  }

  ScalarType one_, other_;
  std::string variable_;
};

/// Values of tensors that a variable is the type of are cast to it: narrower floats meet numbers of float32.
void cast_values(Definition& definition) {
  std::map<std::string, std::pair<ScalarType, std::string>> types;
  const auto note = [&](const std::string& name, std::optional<ScalarType> type, const std::string& variable) {
    if (type) types[name] = {*type, variable};
  };
  for (const ResultDeclaration& r : definition.results) note(r.name.text, r.type, r.type_variable);
  for (const Statement& s : definition.statements) note(s.tensor.text, s.type, s.type_variable);
  for (Statement& s : definition.statements) {
    const auto found = types.find(s.tensor.text);
    if (found == types.end() || found->second.second.empty()) continue;
    const auto& [type, variable] = found->second;
    const auto* cast = std::get_if<CastTo>(&s.right->node);
    if (cast && cast->type_variable == variable) continue;
    s.right = std::make_shared<const Expr>(Expr{CastTo{type, s.right, variable}, s.right->range, s.right->height + 1});
  }
}

Result<File> parsed(const std::string& text) { return parse(std::make_shared<const Source>("gradient", text)); }

/// The first instance that has a gradient, and that.
Result<std::pair<TypeArguments, std::string>> first_gradient(const Definition& generic,
                                                             const InstanceGradient& gradient_of) {
  std::optional<Error> first;
  for (const TypeArguments& types : instances_of(generic)) {
    Result<std::string> text = gradient_of(types);
    if (text) return std::pair(types, *text);
    if (!first || text.error().ended_early()) first = text.error();
    if (first->ended_early()) break;
  }
  return tl::unexpected(*first);
}

}  // namespace

Result<std::string> generic_gradient(const Definition& generic, const InstanceGradient& gradient_of) {
  TC_TRY(base, first_gradient(generic, gradient_of));
  const auto& [types, text] = base;
  TC_TRY(file, parsed(text));
  for (const TypeVariable& variable : generic.type_variables) {
    const ScalarType one = types.at(variable.name.text);
    const ScalarType other = is_float(one) ? ScalarType::kFloat64 : ScalarType::kInt64;
    TypeArguments wider = types;
    wider[variable.name.text] = other;
    TC_TRY(of_other, gradient_of(wider));
    TC_TRY(second, parsed(of_other));
    Definition& merged = file.definitions.at(0);
    const std::string before = format(file);
    try {
      Merge(one, other, variable.name.text)(merged, second.definitions.at(0));
    } catch (const Different&) {
      return fail("the gradients of {} and {} differ in more than types; derive that of an instance",
                  instance_name(generic, types), instance_name(generic, wider));
    }
    const auto has_it = [&](const auto& tensor) { return tensor.type_variable == variable.name.text; };
    const bool is_type =
        std::ranges::any_of(merged.parameters, [&](const Parameter& p) { return p.dimensions && has_it(p); }) ||
        std::ranges::any_of(merged.results, has_it);
    if (!is_type && format(file) == before) continue;
    if (!is_type) {
      return fail(
          "the gradient of '{}' has no tensor of the type variable '{}', so no call would decide it; derive "
          "that of an instance, such as {}",
          generic.name.text, variable.name.text, instance_name(generic, types));
    }
    merged.type_variables.push_back(variable);
    merged.type_variables.back().restriction =
        is_float(one) ? TypeVariable::Restriction::kFloat : TypeVariable::Restriction::kInteger;
  }
  cast_values(file.definitions[0]);
  return format(file);
}

}  // namespace tc::lang
