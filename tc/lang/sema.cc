#include "tc/lang/sema.h"

#include <set>

#include "tc/lang/instantiate.h"
#include "tc/lang/parser.h"
#include "tc/lang/scope.h"
#include "tc/lang/statement.h"
#include "tc/support/check.h"

namespace tc::lang {
namespace {

using Stop = std::function<bool()>;

/// Thrown where the analysis is to stop.
struct Stopped {};

void check(const Stop& stop) {
  if (stop && stop()) throw Stopped();
}

/// A definition of a file, or an instance of one.
TypedDefinition analyse_definition(const Definition& definition, const File& file, Report& report, const Stop& stop) {
  check(stop);
  Scope scope;
  scope.source = &definition;
  for (const Definition& other : file.definitions) scope.defs.insert(other.name.text);
  declare_names(scope, report);
  find_roles(scope, report);
  const std::vector<int> untyped = find_element_types(scope);
  const size_t errors_before = report.size();
  for (size_t s = 0; s < definition.statements.size(); ++s) {
    if (scope.written[s] < 0) continue;
    check(stop);
    if (auto statement = analyse_statement(scope, static_cast<int>(s), report)) {
      scope.definition.statements.push_back(std::move(*statement));
    }
  }
  if (report.size() > errors_before) return std::move(scope.definition);  // an unknown name, say, is why nothing tells
  for (int id : untyped) {
    const Tensor& tensor = scope.definition.tensors[id];
    report.error(tensor.range, "nothing tells the type of '{0}': declare it, as in 'float {0}(...) = ...'",
                 tensor.name);  // T2
  }
  return std::move(scope.definition);
}

}  // namespace

std::string_view name_of(Role role) {
  switch (role) {
    case Role::kInput:
      return "input";
    case Role::kResult:
      return "result";
    case Role::kInOut:
      return "in-out";
    case Role::kTemporary:
      return "temporary";
  }
  TC_CHECK(false, "no role has the number {}", static_cast<int>(role));
}

namespace {

/// T7: a generic def has an instance without errors; else the errors of the first.
void check_generic(const File& file, const Definition& generic, Report& report, const Stop& stop) {
  const size_t errors_before = report.size();
  check_type_variables(generic, report);
  if (report.size() > errors_before) return;
  std::optional<Error> first;
  for (const TypeArguments& types : instances_of(generic)) {
    Report of_instance(file.source);
    const File instance = instance_file(file, generic, types);
    analyse_definition(instance.definitions[0], file, of_instance, stop);
    if (of_instance.empty()) return;
    if (!first) first = in_instance(of_instance.take(), instance);
  }
  for (const Diagnostic& diagnostic : first->diagnostics()) {
    *report.error(*diagnostic.range, "{}", diagnostic.message) = diagnostic;
  }
}

Result<TypedProgram> analyse_all(const File& file, const Stop& stop) {
  Report report(file.source);
  TypedProgram program{file.source, {}};
  std::map<std::string_view, SourceRange> names;
  for (const Definition& definition : file.definitions) {
    const auto [first, fresh] = names.emplace(definition.name.text, definition.name.range);
    if (!fresh) {
      report
          .error(definition.name.range, "there are two defs called '{}'", definition.name.text)  // C9
          ->notes.push_back({first->second, "the first one is here"});
    }
    if (is_generic(definition)) {
      check_generic(file, definition, report, stop);
    } else {
      program.definitions.push_back(analyse_definition(definition, file, report, stop));
    }
  }
  if (!report.empty()) return tl::unexpected(report.take());
  return program;
}

}  // namespace

Result<TypedProgram> analyse(const File& file, const Stop& stop) {
  try {
    return analyse_all(file, stop);
  } catch (const Stopped&) {
    return tl::unexpected(Error("the analysis has been stopped").with_kind(ErrorKind::kBudget));
  }
}

Result<TypedProgram> analyse(SourcePtr source) {
  TC_TRY(file, parse(std::move(source)));
  return analyse(file);
}

}  // namespace tc::lang
