#include "tc/lang/instantiate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "tc/lang/format.h"
#include "tc/lang/intrinsics.h"
#include "tc/lang/walk.h"
#include "tc/support/check.h"
#include "tc/support/nearest.h"

namespace tc::lang {
namespace {

constexpr ScalarType kCandidates[] = {
    ScalarType::kFloat32, ScalarType::kFloat64, ScalarType::kFloat16, ScalarType::kBFloat16, ScalarType::kInt32,
    ScalarType::kInt64,   ScalarType::kInt16,   ScalarType::kInt8,    ScalarType::kUInt8,    ScalarType::kUInt16,
    ScalarType::kUInt32,  ScalarType::kUInt64,  ScalarType::kBool,
};
constexpr size_t kMaxInstances = 64;

/// Puts types in place of variables.
class Instantiation {
 public:
  explicit Instantiation(const TypeArguments& types) : types_(types) {}

  void operator()(ScalarType& type, std::string& variable) const {
    if (variable.empty()) return;
    type = types_.at(variable);
    variable.clear();
  }
  void operator()(std::optional<ScalarType>& type, std::string& variable) const {
    if (variable.empty()) return;
    type = types_.at(variable);
    variable.clear();
  }

  ExprPtr operator()(const ExprPtr& expr) const {
    Expr copy = *expr;
    std::visit(Overloaded{
                   [](IntegerLiteral&) {},
                   [](FloatLiteral&) {},
                   [](NameUse&) {},
                   [](ExtentUse&) {},
                   [&](Apply& apply) { replace(apply.arguments); },
                   [&](Unary& unary) { replace(unary.operand); },
                   [&](Binary& binary) { replace(binary.left), replace(binary.right); },
                   [&](Conditional& c) { replace(c.condition), replace(c.if_true), replace(c.if_false); },
                   [&](CastTo& cast) {
                     (*this)(cast.type, cast.type_variable);
                     replace(cast.operand);
                   },
               },
               copy.node);
    return std::make_shared<const Expr>(std::move(copy));
  }

  void replace(ExprPtr& expr) const { expr = (*this)(expr); }
  void replace(std::vector<ExprPtr>& exprs) const {
    for (ExprPtr& expr : exprs) replace(expr);
  }
  void replace(Clause& clause) const {
    std::visit(Overloaded{
                   [&](RangeClause& range) { replace(range.low), replace(range.high); },
                   [&](LetClause& let) { replace(let.value); },
                   [&](ExistsClause& exists) { replace(exists.expression); },
               },
               clause.node);
  }

 private:
  const TypeArguments& types_;
};

std::string names_of(const std::vector<TypeVariable>& variables) {
  std::vector<std::string> names;
  for (const TypeVariable& variable : variables) names.push_back(fmt::format("'{}'", variable.name.text));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The tensors and scalars whose type a variable is: their names.
struct Uses {
  std::vector<std::string> parameters;
  std::vector<std::string> results;
};

Uses tensors_of(const Definition& generic, const std::string& variable) {
  Uses uses;
  for (const Parameter& parameter : generic.parameters) {
    if (parameter.type_variable == variable && parameter.dimensions) uses.parameters.push_back(parameter.name.text);
  }
  for (const ResultDeclaration& result : generic.results) {
    if (result.type_variable == variable) uses.results.push_back(result.name.text);
  }
  return uses;
}

/// A type that something decides for a variable.
struct Decision {
  ScalarType type;
  std::string by;  ///< "'A'"; empty: the caller's own word
};

Result<Decision> decide(const Definition& generic, const TypeVariable& variable,
                        const std::map<std::string, ScalarType>& tensors, const TypeArguments& given) {
  const std::string& name = variable.name.text;
  std::optional<Decision> decided;
  if (const auto own = given.find(name); own != given.end()) decided = Decision{own->second, ""};
  const Uses uses = tensors_of(generic, name);
  std::vector<std::string> candidates = uses.parameters;
  candidates.insert(candidates.end(), uses.results.begin(), uses.results.end());
  for (const std::string& tensor : candidates) {
    const auto known = tensors.find(tensor);
    if (known == tensors.end()) continue;
    if (!decided) decided = Decision{known->second, tensor};
    if (decided->type == known->second) continue;
    if (decided->by.empty()) {
      return fail("'{}' is of {}; the type variable '{}' of '{}' is given as {}", tensor, name_of(known->second), name,
                  generic.name.text, name_of(decided->type));
    }
    return fail("'{}' is of {} and '{}' of {}; both have the type '{}' of '{}', so they must agree", decided->by,
                name_of(decided->type), tensor, name_of(known->second), name, generic.name.text);
  }
  if (!decided) {
    return fail("nothing decides the type variable '{}' of '{}': no tensor of that type is given ({})", name,
                generic.name.text, fmt::join(candidates, ", "));
  }
  if (!allows(variable, decided->type)) {
    const std::string by = decided->by.empty() ? "it" : fmt::format("'{}'", decided->by);
    return fail("the type variable '{}' of '{}' is restricted to {} types; {} is {}", name, generic.name.text,
                name_of(variable.restriction), by, name_of(decided->type));
  }
  return *decided;
}

}  // namespace

bool allows(const TypeVariable& variable, ScalarType type) {
  switch (variable.restriction) {
    case TypeVariable::Restriction::kNone:
      return true;
    case TypeVariable::Restriction::kFloat:
      return is_float(type);
    case TypeVariable::Restriction::kInteger:
      return is_integer(type);
  }
  TC_CHECK(false, "no restriction has the number {}", static_cast<int>(variable.restriction));
}

std::string instance_name(const Definition& generic, const TypeArguments& types) {
  std::vector<std::string_view> names;
  for (const TypeVariable& variable : generic.type_variables) names.push_back(name_of(types.at(variable.name.text)));
  return fmt::format("{}<{}>", generic.name.text, fmt::join(names, ","));
}

std::optional<TypeArguments> types_of_instance(const Definition& generic, std::string_view name) {
  const std::string begin = generic.name.text + "<";
  if (!name.starts_with(begin) || !name.ends_with(">")) return std::nullopt;
  name = name.substr(begin.size(), name.size() - begin.size() - 1);
  TypeArguments types;
  for (const TypeVariable& variable : generic.type_variables) {
    const size_t comma = name.find(',');
    const auto type = scalar_type_from_name(name.substr(0, comma));
    const bool last = types.size() + 1 == generic.type_variables.size();
    if (!type || !allows(variable, *type) || last != (comma == std::string_view::npos)) return std::nullopt;
    types[variable.name.text] = *type;
    if (!last) name.remove_prefix(comma + 1);
  }
  return types;
}

Definition instantiate(const Definition& generic, const TypeArguments& types) {
  Definition instance = generic;
  instance.name.text = instance_name(generic, types);
  instance.type_variables.clear();
  const Instantiation put(types);
  for (Parameter& parameter : instance.parameters) put(parameter.type, parameter.type_variable);
  for (ResultDeclaration& result : instance.results) put(result.type, result.type_variable);
  for (Statement& statement : instance.statements) {
    put(statement.type, statement.type_variable);
    put.replace(statement.subscripts);
    put.replace(statement.right);
    for (Clause& clause : statement.clauses) put.replace(clause);
  }
  return instance;
}

File instance_file(const File& file, const Definition& generic, const TypeArguments& types) {
  return {.source = file.source, .definitions = {instantiate(generic, types)}, .comments = {}};
}

std::optional<File> file_of_instance(const File& file, std::string_view name) {
  for (const Definition& definition : file.definitions) {
    if (!is_generic(definition)) continue;
    if (const auto types = types_of_instance(definition, name)) return instance_file(file, definition, *types);
  }
  return std::nullopt;
}

namespace {

/// Every type of one variable, with the first type of each of the others.
std::vector<TypeArguments> single_changes(const Definition& generic) {
  std::vector<TypeArguments> instances = {{}};
  for (const TypeVariable& variable : generic.type_variables) {
    const auto first = std::ranges::find_if(kCandidates, [&](ScalarType type) { return allows(variable, type); });
    instances[0][variable.name.text] = *first;
  }
  for (const TypeVariable& variable : generic.type_variables) {
    for (const ScalarType type : kCandidates) {
      if (!allows(variable, type) || type == instances[0].at(variable.name.text)) continue;
      instances.push_back(instances[0]);
      instances.back()[variable.name.text] = type;
    }
  }
  return instances;
}

/// All combinations of the types, or the first ones.
std::vector<TypeArguments> combinations(const Definition& generic, std::span<const ScalarType> candidates) {
  std::vector<TypeArguments> instances = {{}};
  for (const TypeVariable& variable : generic.type_variables) {
    std::vector<TypeArguments> longer;
    for (const ScalarType type : candidates) {
      if (!allows(variable, type)) continue;
      for (TypeArguments types : instances) {
        types[variable.name.text] = type;
        longer.push_back(std::move(types));
      }
    }
    longer.resize(std::min(longer.size(), kMaxInstances));
    instances = std::move(longer);
  }
  return instances;
}

}  // namespace

std::vector<TypeArguments> instances_of(const Definition& generic) {
  std::vector<TypeArguments> instances = combinations(generic, kCandidates);
  if (instances.size() < kMaxInstances) return instances;
  // Cut: the last variables have one type only.
  std::vector<TypeArguments> chosen = single_changes(generic);
  const auto add = [&](std::vector<TypeArguments> others) {
    for (TypeArguments& types : others) {
      if (std::ranges::find(chosen, types) == chosen.end()) chosen.push_back(std::move(types));
    }
  };
  constexpr ScalarType kKinds[] = {ScalarType::kFloat32, ScalarType::kInt32};
  add(combinations(generic, kKinds));
  const size_t wanted = std::max(chosen.size(), kMaxInstances);
  add(std::move(instances));
  chosen.resize(wanted);
  return chosen;
}

Result<TypeArguments> with_types_of_name(const Definition& generic, std::string_view name, TypeArguments given) {
  const std::optional<TypeArguments> named = types_of_instance(generic, name);
  if (!named) return fail("'{}' is no instance of '{}'", name, header_name(generic));
  for (const auto& [variable, type] : *named) {
    const auto [known, added] = given.emplace(variable, type);
    if (added || known->second == type) continue;
    return fail("the type of '{}' is {} in '{}', but given as {}", variable, name_of(type), name,
                name_of(known->second));
  }
  return given;
}

namespace {

bool has_variable(const Definition& generic, const std::string& name) {
  return std::ranges::any_of(generic.type_variables, [&](const TypeVariable& v) { return v.name.text == name; });
}

tl::unexpected<Error> no_variable(const Definition& definition, const std::string& name) {
  if (!is_generic(definition)) return fail("'{}' has no type variables, so '{}' is none", definition.name.text, name);
  return fail("'{}' has no type variable '{}'; it has {}", definition.name.text, name,
              names_of(definition.type_variables));
}

/// Holds if a def of the file has the variable that a type is given for: "T" or "f.T".
Result<void> check_given(const File& file, const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) {
    const auto has_it = [&](const Definition& definition) { return has_variable(definition, name); };
    if (std::ranges::any_of(file.definitions, has_it)) return {};
    const auto generic = std::ranges::find_if(file.definitions, is_generic);
    if (std::ranges::count_if(file.definitions, is_generic) == 1) return no_variable(*generic, name);
    return fail("no def has a type variable '{}'", name);
  }
  std::vector<std::string> names;
  for (const Definition& definition : file.definitions) {
    names.push_back(definition.name.text);
    if (names.back() != name.substr(0, dot)) continue;
    if (has_variable(definition, name.substr(dot + 1))) return {};
    return no_variable(definition, name.substr(dot + 1));
  }
  const std::string meant = nearest(name.substr(0, dot), names);
  if (!meant.empty()) return fail("there is no def '{}'; did you mean '{}'?", name.substr(0, dot), meant);
  return fail("there is no def '{}'; there are {}", name.substr(0, dot), fmt::join(names, ", "));
}

}  // namespace

Result<TypeArguments> types_given_for(const File& file, const Definition& generic, const TypeArguments& given) {
  for (const auto& [name, type] : given) TC_TRY_VOID(check_given(file, name));
  TypeArguments types;
  for (const TypeVariable& variable : generic.type_variables) {
    const std::string& name = variable.name.text;
    for (const std::string& key : {generic.name.text + "." + name, name}) {
      if (const auto found = given.find(key); found != given.end()) types.emplace(name, found->second);
    }
  }
  return types;
}

Result<TypeArguments> decide_types(const Definition& generic, const std::map<std::string, ScalarType>& tensors,
                                   const TypeArguments& given) {
  for (const auto& [name, type] : given) {
    if (!has_variable(generic, name)) return no_variable(generic, name);
  }
  TypeArguments types;
  for (const TypeVariable& variable : generic.type_variables) {
    TC_TRY(decision, decide(generic, variable, tensors, given));
    types[variable.name.text] = decision.type;
  }
  return types;
}

void check_type_variables(const Definition& generic, Report& report) {
  for (const TypeVariable& variable : generic.type_variables) {
    const std::string& name = variable.name.text;
    if (find_intrinsic(name)) {
      report.error(variable.name.range, "'{}' is an intrinsic, so it cannot name a type variable", name);  // C9
      continue;
    }
    const Uses uses = tensors_of(generic, name);
    if (!uses.parameters.empty() || !uses.results.empty()) continue;
    report.error(variable.name.range,
                 "nothing decides the type variable '{0}': make it the type of a tensor, as in '{0}(N) A'",
                 name);  // T7
  }
}

Error in_instance(const Error& error, const File& file) {
  if (file.definitions.size() != 1) return error;
  const Name& name = file.definitions[0].name;
  if (!error.source() || file.source->text(name.range) == name.text) return error;
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.range) diagnostic.notes.push_back({name.range, fmt::format("in the instance {}", name.text)});
  }
  return Error(error.source(), std::move(diagnostics)).with_kind(error.kind());
}

}  // namespace tc::lang
