#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "tc/cli/cache_text.h"
#include "tc/cli/command_line.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/compile/pipeline.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/print.h"
#include "tc/lang/format.h"
#include "tc/lang/instantiate.h"
#include "tc/support/check.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

using Numbers = std::map<std::string, int64_t>;
using Members = std::vector<std::pair<std::string, std::string>>;

/// What the check of one def has found.
struct Checked {
  compile::Compilation compilation;
  Numbers sizes;    ///< of those given, the def's
  Numbers scalars;  ///< likewise
  Result<void> done{};
};

Result<Numbers> numbers_of(const std::string& flag, const std::string& text) {
  TC_TRY(pairs, parse_assignments(flag, text));
  Numbers numbers;
  for (const auto& [name, value] : pairs) {
    TC_TRY(number, parse_integer(fmt::format("'{}' in '--{}'", name, flag), value));
    numbers[name] = number;
  }
  return numbers;
}

/// Those that a def has: a file may have several defs.
Numbers those_of(const Numbers& numbers, const std::set<std::string>& names) {
  Numbers result;
  for (const auto& [name, value] : numbers) {
    if (names.contains(name)) result[name] = value;
  }
  return result;
}

/// Checks a def, or an instance of a generic one, from what is known of its text. All of them share the time limit.
Checked check(compile::Compilation compilation, const std::string& entry, const Numbers& sizes, const Numbers& scalars,
              std::chrono::steady_clock::time_point began) {
  Checked checked{.compilation = std::move(compilation)};
  checked.compilation.spent = std::chrono::steady_clock::now() - began;
  compile::Settings settings;
  settings.entry = entry;
  settings.budget.wall_clock_ms = FLAGS_time_limit_ms;
  checked.done = compile::run_passes(settings, checked.compilation, "analyse");
  if (!checked.done) return checked;
  const auto& definitions = checked.compilation.typed->definitions;
  const auto definition = std::ranges::find(definitions, entry, &lang::TypedDefinition::name);
  TC_CHECK(definition != definitions.end(), "the def '{}' is not in its text", entry);
  std::set<std::string> size_names, scalar_names;
  for (const lang::Size& size : definition->sizes) size_names.insert(size.name);
  for (const lang::Scalar& scalar : definition->scalars) scalar_names.insert(scalar.name);
  checked.sizes = those_of(sizes, size_names);
  checked.scalars = those_of(scalars, scalar_names);
  settings.given.scalars = checked.scalars;
  settings.given.sizes = checked.sizes;
  // Sizes of in-outs that only the caller's tensor gives are none of the def's names.
  const bool specialise = !sizes.empty() || (size_names.empty() && !scalars.empty());
  checked.done = compile::run_passes(settings, checked.compilation, "program");
  if (checked.done && specialise) checked.done = compile::run_passes(settings, checked.compilation, "specialise");
  return checked;
}

// --- as JSON ----------------------------------------------------------------------------------------------------

std::string json_list_of(const std::vector<std::string>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string json_numbers(const Numbers& numbers) {
  Members members;
  for (const auto& [name, value] : numbers) members.emplace_back(name, fmt::format("{}", value));
  return json_object(members);
}

/// The text of index arithmetic, and its value for the given sizes or null.
void add_expression(Members& members, const std::string& name, const Halide::Expr& e, const ir::Substitution& values) {
  const auto value = ir::constant_value(ir::substitute_variables(e, values));
  members.emplace_back(name, json_string(ir::to_text(e)));
  members.emplace_back(name + "_value", value ? fmt::format("{}", *value) : "null");
}

std::string json_of(const Error& error) {
  std::vector<std::string> list;
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    std::vector<std::string> notes;
    for (const Note& note : diagnostic.notes) notes.push_back(json_string(note.text));
    Members members{{"message", json_string(diagnostic.message)}};
    if (diagnostic.range && error.source()) {
      const LineColumn at = error.source()->position(diagnostic.range->begin);
      members.emplace_back("line", fmt::format("{}", at.line));
      members.emplace_back("column", fmt::format("{}", at.column));
    }
    members.emplace_back("notes", json_list_of(notes));
    list.push_back(json_object(members));
  }
  return json_list_of(list);
}

std::string json_of(const ir::Program& program, const ir::Statement& statement, const ir::Index& index,
                    const ir::Substitution& values) {
  Members members{{"name", json_string(index.name)}, {"kind", json_string(index.is_reduction ? "reduce" : "map")}};
  add_expression(members, "begin", index.begin, values);
  add_expression(members, "end", index.end, values);
  for (const auto& [name, by] : {std::pair("begin_by", &index.begin_by), std::pair("end_by", &index.end_by)}) {
    if (!index.begin.defined()) continue;
    members.emplace_back(name, json_object({{"rule", json_string(ir::rule_text(by->rule))},
                                            {"cause", json_string(ir::cause_text(program, statement, *by))}}));
  }
  return json_object(members);
}

std::string json_of(const ir::Statement& s, const ir::Program& program, const ir::Substitution& values) {
  std::vector<std::string> indices, subscripts;
  for (const ir::Index& index : s.indices) indices.push_back(json_of(program, s, index, values));
  for (const Halide::Expr& e : s.subscripts) subscripts.push_back(json_string(ir::to_text(e)));
  return json_object({{"tensor", json_string(s.tensor)},
                      {"subscripts", json_list_of(subscripts)},
                      {"indices", json_list_of(indices)}});
}

std::string json_of(const ir::Tensor& tensor, const ir::Substitution& values) {
  static const char* const kRoles[] = {"input", "result", "in-out", "temporary"};
  std::vector<std::string> extents, shape;
  for (const Halide::Expr& e : tensor.extents) {
    const auto value = ir::constant_value(ir::substitute_variables(e, values));
    extents.push_back(json_string(ir::to_text(e)));
    shape.push_back(value ? fmt::format("{}", *value) : "null");
  }
  return json_object({{"name", json_string(tensor.name)},
                      {"role", json_string(kRoles[static_cast<int>(tensor.role)])},
                      {"type", json_string(ir::type_text(tensor.type))},
                      {"extents", json_list_of(extents)},
                      {"shape", json_list_of(shape)}});
}

std::string json_of(const ir::Precondition& p, const ir::Substitution& values) {
  std::string holds = "null";
  if (p.condition.defined()) {
    const Halide::Expr value =
        Halide::Internal::simplify(ir::fold_divisions(ir::substitute_variables(p.condition, values)));
    if (Halide::Internal::is_const_one(value)) holds = "true";
    if (Halide::Internal::is_const_zero(value)) holds = "false";
  }
  return json_object({{"sentence", json_string(p.sentence.substr(0, p.sentence.find(", but ")))}, {"holds", holds}});
}

std::string json_of(const std::string& name, const Checked& checked) {
  Members members{{"def", json_string(name)},
                  {"sizes", json_numbers(checked.sizes)},
                  {"scalars", json_numbers(checked.scalars)},
                  {"ok", checked.done ? "true" : "false"},
                  {"errors", checked.done ? "[]" : json_of(checked.done.error())}};
  if (!checked.compilation.program) return json_object(members);
  const ir::Program& program = checked.compilation.concrete();
  ir::Substitution values;
  for (const auto& [size, value] : checked.sizes) values[size] = ir::index_constant(value);
  std::vector<std::string> statements, tensors, preconditions;
  for (const ir::Statement& s : program.statements) statements.push_back(json_of(s, program, values));
  for (const ir::Tensor& t : program.tensors) tensors.push_back(json_of(t, values));
  for (const ir::Precondition& p : program.preconditions) preconditions.push_back(json_of(p, values));
  members.emplace_back("waits_for_scalars", program.open ? "true" : "false");
  members.emplace_back("tensors", json_list_of(tensors));
  members.emplace_back("statements", json_list_of(statements));
  members.emplace_back("preconditions", json_list_of(preconditions));
  return json_object(members);
}

// --- as text ----------------------------------------------------------------------------------------------------

Result<std::string> text_of(const Checked& checked) {
  if (!checked.done) return tl::unexpected(checked.done.error());
  const compile::Compilation& c = checked.compilation;
  return ir::report(c.specialised ? *c.specialised : c.concrete());
}

/// The instances that --types names, or all.
Result<std::vector<std::string>> instances_of_flags(const lang::Definition& generic) {
  TC_TRY(given, types_of_flags());
  std::vector<std::string> names;
  if (!given.empty()) {
    TC_TRY(types, lang::decide_types(generic, {}, given));
    names.push_back(lang::instance_name(generic, types));
    return names;
  }
  for (const lang::TypeArguments& types : lang::instances_of(generic)) {
    names.push_back(lang::instance_name(generic, types));
  }
  return names;
}

/// Of the instance of --types; else of the first without errors, with a list of the others (T7).
Result<std::string> text_of_generic(const lang::Definition& generic, const std::vector<std::string>& names,
                                    const std::vector<Checked>& instances) {
  if (!FLAGS_types.empty()) return text_of(instances.at(0));
  std::string report;
  std::vector<std::string> good, bad;
  const Checked* first = nullptr;
  for (size_t i = 0; i < names.size(); ++i) {
    if (instances[i].done && report.empty()) {
      TC_TRY(text, text_of(instances[i]));
      report = text;
    }
    if (!instances[i].done && !first) first = &instances[i];
    (instances[i].done ? good : bad).push_back(names[i]);
  }
  if (good.empty()) return tl::unexpected(first->done.error());
  report += fmt::format("  instances of {} without errors: {}\n", lang::header_name(generic), fmt::join(good, ", "));
  if (!bad.empty()) {
    report += fmt::format("  instances with errors: {}; the first has: {}\n", fmt::join(bad, ", "),
                          first->done.error().diagnostics().at(0).message);
  }
  return report;
}

}  // namespace

Result<void> run_check(const std::vector<std::string>& files) {
  if (FLAGS_time_limit_ms <= 0) return fail("'--time_limit_ms' is {}; it must be at least 1", FLAGS_time_limit_ms);
  TC_TRY(sizes, numbers_of("sizes", FLAGS_sizes));
  TC_TRY(scalars, numbers_of("scalars", FLAGS_scalars));
  const auto began = std::chrono::steady_clock::now();
  compile::Compilation front;
  TC_TRY(source, read_source(files[0]));
  front.source = source;
  TC_TRY_VOID(compile::run_passes(compile::Settings(), front, "analyse"));
  const auto& definitions = front.file->definitions;
  if (!FLAGS_types.empty() && std::ranges::none_of(definitions, lang::is_generic)) {
    return fail("'--types' is for generic defs, and '{}' has none", source->name());
  }
  compile::Compilation unread;
  unread.source = source;
  // Errors of all defs are reported together.
  std::string report;
  std::vector<std::string> list;
  std::vector<Diagnostic> diagnostics;
  for (const lang::Definition& definition : definitions) {
    const bool is_generic = lang::is_generic(definition);
    std::vector<std::string> names = {definition.name.text};
    if (is_generic) {
      TC_TRY(instances, instances_of_flags(definition));
      names = instances;
    }
    std::vector<Checked> checked;
    for (const std::string& name : names) {
      checked.push_back(check(is_generic ? unread : front, name, sizes, scalars, began));
    }
    if (FLAGS_json) {
      for (size_t i = 0; i < names.size(); ++i) list.push_back(json_of(names[i], checked[i]));
      continue;
    }
    const Result<std::string> one = is_generic ? text_of_generic(definition, names, checked) : text_of(checked[0]);
    if (one) {
      if (!report.empty()) report += '\n';
      report += *one;
    } else {
      diagnostics.insert(diagnostics.end(), one.error().diagnostics().begin(), one.error().diagnostics().end());
    }
  }
  if (FLAGS_json) report = json_list(list) + "\n";
  if (!diagnostics.empty()) return tl::unexpected(Error(source, std::move(diagnostics)));
  std::fwrite(report.data(), 1, report.size(), stdout);
  std::string remarks;
  for (const lang::TypedDefinition& definition : front.typed->definitions) {
    remarks += to_string(source, definition.remarks);
  }
  std::fwrite(remarks.data(), 1, remarks.size(), stderr);
  return {};
}

}  // namespace tc::cli
