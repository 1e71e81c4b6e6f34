#include "tc/lang/generic_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "tc/lang/format.h"
#include "tc/lang/literals.h"
#include "tc/lang/parser.h"
#include "tc/lang/same_meaning.h"
#include "tc/lang/sema.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// The texts differ in more than types.
struct Different {};

/// The subexpressions of an expression, to be replaced.
std::vector<ExprPtr*> children_of(Expr& expr) {
  std::vector<ExprPtr*> children;
  std::visit(Overloaded{
                 [&](Apply& apply) {
                   for (ExprPtr& argument : apply.arguments) children.push_back(&argument);
                 },
                 [&](Unary& unary) { children = {&unary.operand}; },
                 [&](Binary& binary) {
                   children = {&binary.left, &binary.right};
                 },
                 [&](Conditional& c) {
                   children = {&c.condition, &c.if_true, &c.if_false};
                 },
                 [&](CastTo& cast) { children = {&cast.operand}; },
                 [](auto&) {},
             },
             expr.node);
  return children;
}

/// The text of an expression without its subexpressions.
std::string node_text(Expr expr) {
  static const auto any = std::make_shared<const Expr>(Expr{NameUse{"_"}, {}});
  for (ExprPtr* child : children_of(expr)) *child = any;
  return format(expr);
}

/// Merges the gradients of instances that differ in the type of one variable. Where the types differ, the variable is
/// put. A cast that an instance lacks changes nothing there, as int32(i) does not.
class Merge {
 public:
  Merge(std::string variable, std::vector<ScalarType> types)
      : variable_(std::move(variable)), types_(std::move(types)) {}

  /// `first` may have other variables already. Throws Different.
  Definition operator()(const Definition& first, const std::vector<Definition>& others) {
    std::vector<Definition> all = {first};
    all.insert(all.end(), others.begin(), others.end());
    each(all, &Definition::parameters, [&](const std::vector<Parameter*>& p) { type_of(p, &Parameter::type); });
    each(all, &Definition::results, [&](const std::vector<ResultDeclaration*>& r) { optional_type_of(r); });
    each(all, &Definition::statements, [&](const std::vector<Statement*>& s) { statement(s); });
    return std::move(all[0]);
  }

 private:
  using Exprs = std::vector<ExprPtr>;

  /// Calls `visit` with the items of one place in all lists.
  template <typename Owner, typename Item, typename Visit>
  static void each(std::vector<Owner>& owners, std::vector<Item> Owner::*list, Visit visit) {
    for (size_t i = 0; i < (owners[0].*list).size(); ++i) {
      std::vector<Item*> items;
      for (Owner& owner : owners) {
        if ((owner.*list).size() != (owners[0].*list).size()) throw Different();
        items.push_back(&(owner.*list)[i]);
      }
      visit(items);
    }
  }

  template <typename Item, typename Type>
  void type_of(const std::vector<Item*>& items, Type Item::*type) const {
    bool is_same = true, is_variable = items[0]->type_variable.empty();
    for (size_t n = 0; n < items.size(); ++n) {
      is_same &= items[n]->*type == items[0]->*type;
      is_variable &= items[n]->*type == types_[n];
    }
    if (is_same) return;
    if (!is_variable) throw Different();
    items[0]->type_variable = variable_;
  }
  template <typename Item>
  void optional_type_of(const std::vector<Item*>& items) const {
    type_of(items, &Item::type);
  }

  void statement(const std::vector<Statement*>& all) {
    for (const Statement* s : all) {
      const Statement& first = *all[0];
      const bool same_sizes =
          s->subscripts.size() == first.subscripts.size() && s->clauses.size() == first.clauses.size();
      if (s->tensor.text != first.tensor.text || s->op != first.op || !same_sizes) throw Different();
    }
    optional_type_of(all);
    for (size_t d = 0; d < all[0]->subscripts.size(); ++d) {
      merge(all, [&](Statement& s) -> ExprPtr& { return s.subscripts[d]; });
    }
    merge(all, [](Statement& s) -> ExprPtr& { return s.right; });
    for (size_t c = 0; c < all[0]->clauses.size(); ++c) clause(all, c);
  }

  void clause(const std::vector<Statement*>& all, size_t c) {
    const auto& first = all[0]->clauses[c].node;
    for (Statement* s : all) {
      if (s->clauses[c].node.index() != first.index()) throw Different();
    }
    const auto part = [&](auto member) { return [=](Statement& s) -> ExprPtr& { return member(s.clauses[c].node); }; };
    using Node = decltype(Clause::node);
    if (std::holds_alternative<RangeClause>(first)) {
      merge(all, part([](Node& node) -> ExprPtr& { return std::get<RangeClause>(node).low; }));
      merge(all, part([](Node& node) -> ExprPtr& { return std::get<RangeClause>(node).high; }));
    } else if (std::holds_alternative<LetClause>(first)) {
      merge(all, part([](Node& node) -> ExprPtr& { return std::get<LetClause>(node).value; }));
    } else {
      merge(all, part([](Node& node) -> ExprPtr& { return std::get<ExistsClause>(node).expression; }));
    }
  }

  /// Puts the merged expression in the place of the first.
  template <typename Part>
  void merge(const std::vector<Statement*>& all, Part part) {
    Exprs exprs;
    for (Statement* s : all) exprs.push_back(part(*s));
    part(*all[0]) = merged(exprs);
  }

  ExprPtr merged(const Exprs& all) {
    const auto is_cast = [](const ExprPtr& e) { return std::holds_alternative<CastTo>(e->node); };
    if (std::ranges::any_of(all, is_cast)) return of_casts(all);
    if (std::ranges::all_of(all, [](const ExprPtr& e) { return is_literal(*e); })) return number(all);
    Expr result = *all[0];
    std::vector<Expr> copies;
    for (const ExprPtr& e : all) {
      if (node_text(*e) != node_text(*all[0])) throw Different();
      copies.push_back(*e);
    }
    const std::vector<ExprPtr*> children = children_of(result);
    for (size_t c = 0; c < children.size(); ++c) {
      Exprs parts;
      for (Expr& copy : copies) parts.push_back(*children_of(copy)[c]);
      *children[c] = merged(parts);
    }
    return std::make_shared<const Expr>(std::move(result));
  }

  /// A cast that all have, but for those where it changes nothing.
  struct Candidate {
    std::string variable;           ///< empty: to a type
    std::vector<ScalarType> types;  ///< in each instance
  };

  ExprPtr of_casts(const Exprs& all) {
    for (const Candidate& candidate : candidates(all)) {
      Exprs inside = all;
      for (size_t n = 0; n < all.size(); ++n) {
        if (has(candidate, all, n)) inside[n] = std::get<CastTo>(all[n]->node).operand;
      }
      try {
        return std::make_shared<const Expr>(
            Expr{CastTo{candidate.types[0], merged(inside), candidate.variable}, all[0]->range, all[0]->height});
      } catch (const Different&) {
        if (--attempts_ < 0) throw;  // casts of casts
      }
    }
    throw Different();
  }

  static bool has(const Candidate& candidate, const Exprs& all, size_t n) {
    const auto* cast = std::get_if<CastTo>(&all[n]->node);
    if (!cast || cast->type != candidate.types[n]) return false;
    return cast->type_variable.empty() || cast->type_variable == candidate.variable;
  }

  /// The one that most instances have is first.
  std::vector<Candidate> candidates(const Exprs& all) const {
    std::vector<Candidate> found = {{variable_, types_}};
    const auto add = [&](const std::string& variable, ScalarType type) {
      const auto is_it = [&](const Candidate& c) { return c.variable == variable && c.types[0] == type; };
      if (std::ranges::any_of(found, is_it)) return;
      found.push_back({variable, std::vector<ScalarType>(all.size(), type)});
    };
    for (const ExprPtr& e : all) {
      if (const auto* cast = std::get_if<CastTo>(&e->node)) add(cast->type_variable, cast->type);
    }
    const auto count = [&](const Candidate& candidate) {
      size_t count = 0;
      for (size_t n = 0; n < all.size(); ++n) count += has(candidate, all, n);
      return count;
    };
    std::erase_if(found, [&](const Candidate& candidate) { return count(candidate) == 0; });
    std::ranges::stable_sort(found, std::ranges::greater(), count);
    return found;
  }

  /// A constant. In a narrow type it is rounded or has saturated.
  ExprPtr number(const Exprs& all) const {
    const std::string text = format(*all[0]);
    if (std::ranges::all_of(all, [&](const ExprPtr& e) { return format(*e) == text; })) return all[0];
    if (is_float(types_[0])) {
      const auto widest = std::ranges::max_element(types_, {}, [](ScalarType type) { return bits_of(type); });
      return all[static_cast<size_t>(widest - types_.begin())];
    }
    double value = 0;
    for (const ExprPtr& e : all) {
      const double other = value_of(*e);
      if (std::abs(other) > std::abs(value)) value = other;
    }
    std::string digits = fmt::format("{}", std::abs(value));
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";  // a float saturates (T6)
    const auto literal = std::make_shared<const Expr>(Expr{FloatLiteral{std::abs(value), digits}, all[0]->range});
    if (value >= 0) return literal;
    return std::make_shared<const Expr>(Expr{Unary{UnaryOp::kNegate, literal}, all[0]->range, 2});
  }

  static double value_of(const Expr& literal) {
    Report ignored(std::make_shared<const Source>("gradient", ""));
    const std::optional<LiteralValue> value = evaluate_literal(literal, ignored);
    if (!value) throw Different();
    return std::visit([](auto number) { return static_cast<double>(number); }, *value);
  }

  std::string variable_;
  std::vector<ScalarType> types_;
  int attempts_ = 1000;
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

/// The gradients of a def's instances. Each is derived once.
class Gradients {
 public:
  Gradients(const Definition& generic, const InstanceGradient& gradient_of)
      : generic_(generic), gradient_of_(gradient_of) {}

  const Definition& generic() const { return generic_; }
  const Result<std::string>& of(const TypeArguments& types) {
    const auto known = texts_.find(types);
    return known != texts_.end() ? known->second : texts_.emplace(types, gradient_of_(types)).first->second;
  }

  tl::unexpected<Error> differ(const TypeArguments& a, const TypeArguments& b) const {
    return fail("the gradients of {} and {} differ in more than types; derive that of an instance",
                instance_name(generic_, a), instance_name(generic_, b));
  }

  /// Those of the instances that have another type of the same kind for a variable; of integers all or the narrow ones.
  Result<std::vector<std::pair<TypeArguments, Definition>>> others(const TypeArguments& types,
                                                                   const TypeVariable& variable, bool all) {
    std::vector<std::pair<TypeArguments, Definition>> found;
    std::optional<Error> first;
    for (const ScalarType type : types_beside(types.at(variable.name.text), all)) {
      TypeArguments other = types;
      other[variable.name.text] = type;
      const Result<std::string>& text = of(other);
      if (!text && text.error().ended_early()) return tl::unexpected(text.error());
      if (!text && !first) first = text.error();
      if (!text) continue;
      TC_TRY(file, parsed(*text));
      found.emplace_back(other, std::move(file.definitions.at(0)));
    }
    if (found.empty() && first) return tl::unexpected(*first);
    return found;
  }

 private:
  /// Gradients of narrower floats compute in float32, where that of an instance for float32 has no casts.
  static std::vector<ScalarType> types_beside(ScalarType type, bool all) {
    if (is_float(type)) return {ScalarType::kFloat64};
    if (!is_integer(type)) return {};
    std::vector<ScalarType> types = {ScalarType::kInt16, ScalarType::kInt8, ScalarType::kUInt8, ScalarType::kUInt16};
    const ScalarType wide[] = {ScalarType::kInt32, ScalarType::kInt64, ScalarType::kUInt32, ScalarType::kUInt64};
    if (all) types.insert(types.begin(), std::begin(wide), std::end(wide));
    std::erase(types, type);
    return types;
  }

  const Definition& generic_;
  const InstanceGradient& gradient_of_;
  std::map<TypeArguments, Result<std::string>> texts_;
};

/// The first instance that has a gradient.
Result<TypeArguments> first_with_gradient(Gradients& gradients) {
  std::optional<Error> first;
  for (const TypeArguments& types : instances_of(gradients.generic())) {
    const Result<std::string>& text = gradients.of(types);
    if (text) return types;
    if (!first || text.error().ended_early()) first = text.error();
    if (first->ended_early()) break;
  }
  return tl::unexpected(*first);
}

/// Puts a variable where the gradients of instances differ in its type.
Result<Definition> merge(Gradients& gradients, const Definition& first, const TypeArguments& types,
                         const TypeVariable& variable, bool all) {
  TC_TRY(others, gradients.others(types, variable, all));
  const std::string& name = variable.name.text;
  const auto try_to = [&](std::span<const std::pair<TypeArguments, Definition>> of) -> std::optional<Definition> {
    std::vector<ScalarType> all_types = {types.at(name)};
    std::vector<Definition> definitions;
    for (const auto& [other, definition] : of) {
      all_types.push_back(other.at(name));
      definitions.push_back(definition);
    }
    try {
      return Merge(name, all_types)(first, definitions);
    } catch (const Different&) {
      return std::nullopt;
    }
  };
  if (std::optional<Definition> merged = try_to(others)) return *std::move(merged);
  const auto alone = [&](const auto& other) { return !try_to({&other, 1}); };
  const auto differs = std::ranges::find_if(others, alone);
  return gradients.differ(types, differs == others.end() ? others.back().first : differs->first);
}

/// Whether each instance of the gradient is the gradient of the instance. Of the variables that the gradient lacks,
/// all types give one gradient.
Result<void> check_instances(Gradients& gradients, const File& file, const TypeArguments& types) {
  const Definition& derived = file.definitions[0];
  for (const TypeArguments& instance : instances_of(derived)) {
    const bool has_narrow_float =
        std::ranges::any_of(instance, [](const auto& v) { return is_float(v.second) && bits_of(v.second) < 32; });
    if (has_narrow_float) continue;
    TypeArguments all = types;
    for (const auto& [name, type] : instance) all[name] = type;
    const Result<std::string>& text = gradients.of(all);
    if (!text && text.error().ended_early()) return tl::unexpected(text.error());
    if (!text) continue;
    TC_TRY(wanted, analyse(std::make_shared<const Source>("gradient", *text)));
    const Result<TypedProgram> made = analyse(instance_file(file, derived, instance));
    if (made && same_meaning(made->definitions.at(0), wanted.definitions.at(0))) continue;
    return fail("no generic def is the gradient of all instances of '{0}'; derive that of one, such as {1}",
                gradients.generic().name.text, instance_name(gradients.generic(), all));
  }
  return {};
}

/// The generic def that the gradients of instances are merged to.
Result<std::string> merge(Gradients& gradients, const TypeArguments& types, bool all) {
  const Definition& generic = gradients.generic();
  TC_TRY(file, parsed(*gradients.of(types)));
  Definition& derived = file.definitions.at(0);
  for (const TypeVariable& variable : generic.type_variables) {
    const std::string before = format(file);
    TC_TRY(merged, merge(gradients, derived, types, variable, all));
    derived = std::move(merged);
    const auto has_it = [&](const auto& tensor) { return tensor.type_variable == variable.name.text; };
    const bool is_type =
        std::ranges::any_of(derived.parameters, [&](const Parameter& p) { return p.dimensions && has_it(p); }) ||
        std::ranges::any_of(derived.results, has_it);
    if (!is_type && format(file) == before) continue;
    if (!is_type) {
      return fail(
          "the gradient of '{}' has no tensor of the type variable '{}', so no call would decide it; derive "
          "that of an instance, such as {}",
          generic.name.text, variable.name.text, instance_name(generic, types));
    }
    derived.type_variables.push_back(variable);
    derived.type_variables.back().restriction = is_float(types.at(variable.name.text))
                                                    ? TypeVariable::Restriction::kFloat
                                                    : TypeVariable::Restriction::kInteger;
  }
  cast_values(derived);
  TC_TRY(written, parsed(format(file)));
  TC_TRY_VOID(check_instances(gradients, written, types));
  return format(written);
}

}  // namespace

Result<std::string> generic_gradient(const Definition& generic, const InstanceGradient& gradient_of) {
  Gradients gradients(generic, gradient_of);
  TC_TRY(types, first_with_gradient(gradients));
  Result<std::string> merged = merge(gradients, types, true);
  if (merged || merged.error().ended_early()) return merged;
  // An int64 has casts less: int64(T(i)) * int64(i) is int64(i * i).
  Result<std::string> of_narrow = merge(gradients, types, false);
  return of_narrow ? of_narrow : merged;
}

}  // namespace tc::lang
