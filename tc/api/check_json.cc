#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tc/api/check.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/print.h"
#include "tc/ir/unproved_checks.h"
#include "tc/lang/format.h"
#include "tc/support/json.h"

namespace tc::api {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

constexpr int kVersion = 1;  // of the schema

std::string boolean(bool value) { return value ? "true" : "false"; }

// --- places and diagnostics -------------------------------------------------------------------------------------

std::string position_json(const SourcePtr& source, uint32_t offset) {
  const LineColumn at = source->position(offset);
  return fmt::format(R"({{"offset": {}, "line": {}, "column": {}}})", offset, at.line, at.column);
}

std::string range_json(const SourcePtr& source, const std::optional<SourceRange>& range) {
  if (!range || !source) return "null";
  return json_object({{"begin", position_json(source, range->begin)}, {"end", position_json(source, range->end)}});
}

std::string ranges_json(const SourcePtr& source, const std::vector<SourceRange>& ranges) {
  std::vector<std::string> list;
  for (const SourceRange& range : ranges) list.push_back(range_json(source, range));
  return json_array(list);
}

std::string notes_json(const SourcePtr& source, const std::vector<Note>& notes) {
  std::vector<std::string> list;
  for (const Note& note : notes) {
    list.push_back(json_object({{"message", json_string(note.text)}, {"range", range_json(source, note.range)}}));
  }
  return json_array(list);
}

const char* kind_text(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUser:
      return "user";
    case ErrorKind::kBudget:
      return "budget";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

/// A diagnostic of the text: an error, or a note of what may be meant otherwise.
struct Finding {
  const char* severity;
  ErrorKind kind = ErrorKind::kUser;
  std::string def{};  ///< "": of none
  std::optional<SourceRange> range{};
  std::string message{};
  std::vector<Note> notes{};
};

std::string json_of(const SourcePtr& source, const Finding& finding) {
  return json_object({{"severity", json_string(finding.severity)},
                      {"kind", json_string(kind_text(finding.kind))},
                      {"def", finding.def.empty() ? "null" : json_string(finding.def)},
                      {"message", json_string(finding.message)},
                      {"range", range_json(source, finding.range)},
                      {"notes", notes_json(source, finding.notes)}});
}

/// An error without a place (a budget) is at its def's name.
std::vector<Finding> findings_of(const Error& error, const std::string& def, std::optional<SourceRange> place) {
  std::vector<Finding> findings;
  for (const Diagnostic& d : error.diagnostics()) {
    findings.push_back({.severity = "error",
                        .kind = error.kind(),
                        .def = def,
                        .range = d.range ? d.range : place,
                        .message = d.message,
                        .notes = d.notes});
  }
  return findings;
}

/// The def of a place; "" outside of all.
std::string def_at(const CheckedText& checked, const std::optional<SourceRange>& range) {
  if (!range || !checked.file) return "";
  for (const lang::Definition& definition : checked.file->definitions) {
    if (definition.range.begin <= range->begin && range->begin <= definition.range.end) return definition.name.text;
  }
  return "";
}

/// Of the generic def whose instances do not all have errors, those that do.
Finding finding_of_instances(const lang::Definition& definition, const std::vector<const CheckedDef*>& bad) {
  std::vector<std::string> names;
  for (const CheckedDef* def : bad) names.push_back(def->name);
  const Diagnostic& first = bad[0]->done.error().diagnostics().at(0);
  std::vector<Note> notes{{first.range, first.message}};
  notes.insert(notes.end(), first.notes.begin(), first.notes.end());
  return {.severity = "note",
          .def = definition.name.text,
          .range = definition.name.range,
          .message = fmt::format("instances with errors: {}", fmt::join(names, ", ")),
          .notes = notes};
}

void add_findings(std::vector<Finding>& findings, const CheckedText& text, const CheckedDefinition& checked) {
  const lang::Definition& definition = *checked.definition;
  const auto add = [&](const Error& error) {
    for (Finding& f : findings_of(error, definition.name.text, definition.name.range)) findings.push_back(std::move(f));
  };
  const bool is_generic = lang::is_generic(definition);
  std::vector<const CheckedDef*> bad;
  for (const CheckedDef& def : checked.instances) {
    if (!def.done && !(is_generic && def.done.error().ended_early())) bad.push_back(&def);
  }
  if (!checked.unchecked.empty()) add(checked.out_of_time(text.source, text.time_limit_ms));
  const CheckedDef* good = checked.good();
  if (!good && checked.unchecked.empty()) return add(bad[0]->done.error());
  if (!bad.empty()) findings.push_back(finding_of_instances(definition, bad));
  if (!good) return;
  for (const lang::TypedDefinition& typed : good->compilation.typed->definitions) {
    if (typed.name != good->name) continue;
    for (const Note& remark : typed.remarks) {
      findings.push_back(
          {.severity = "note", .def = definition.name.text, .range = remark.range, .message = remark.text});
    }
  }
}

std::string diagnostics_json(const CheckedText& checked) {
  std::vector<Finding> findings;
  if (checked.error) {
    for (Finding& f : findings_of(*checked.error, "", std::nullopt)) {
      f.def = def_at(checked, f.range);
      findings.push_back(std::move(f));
    }
  }
  for (const CheckedDefinition& definition : checked.definitions) add_findings(findings, checked, definition);
  std::ranges::stable_sort(findings, {}, [](const Finding& f) { return f.range ? f.range->begin : 0; });
  std::vector<std::string> list;
  for (const Finding& f : findings) list.push_back("\n  " + json_of(checked.source, f));
  return json_array(list);
}

// --- a def ------------------------------------------------------------------------------------------------------

std::string numbers_json(const std::map<std::string, int64_t>& numbers) {
  Members members;
  for (const auto& [name, value] : numbers) members.emplace_back(name, fmt::format("{}", value));
  return json_object(members);
}

/// A def as far as the check got, with the values of sizes that were given.
class Describe {
 public:
  Describe(const CheckedText& text, const lang::Definition& definition, const CheckedDef& def)
      : source_(text.source), definition_(definition), def_(def) {
    if (def.compilation.program) program_ = &def.compilation.concrete();
    if (def.compilation.typed) {
      for (const lang::TypedDefinition& typed : def.compilation.typed->definitions) {
        if (typed.name == def.name) typed_ = &typed;
      }
    }
    for (const auto& [size, value] : def.sizes) values_[size] = ir::index_constant(value);
  }

  std::string json() const {
    Members types;
    for (const auto& [variable, type] : def_.types) types.emplace_back(variable, json_string(name_of(type)));
    std::vector<std::string> errors;
    if (!def_.done) {
      for (const Finding& f : findings_of(def_.done.error(), definition_.name.text, definition_.name.range)) {
        errors.push_back(json_of(source_, f));
      }
    }
    Members members{{"def", json_string(def_.name)},
                    {"generic", lang::is_generic(definition_) ? json_string(lang::header_name(definition_)) : "null"},
                    {"range", range_json(source_, definition_.range)},
                    {"name_range", range_json(source_, definition_.name.range)},
                    {"types", json_object(types)},
                    {"sizes", numbers_json(def_.sizes)},
                    {"scalars", numbers_json(def_.scalars)},
                    {"ok", boolean(def_.done.has_value())},
                    {"errors", json_array(errors)},
                    {"signature", program_ ? json_string(ir::signature_text(*program_)) : "null"},
                    {"waits_for_scalars", boolean(program_ && program_->open)},
                    {"symbols", json_array(symbols())},
                    {"tensors", json_array(tensors())},
                    {"statements", json_array(statements())},
                    {"preconditions", json_array(preconditions())},
                    {"run_time_checks", json_array(run_time_checks())}};
    return json_object(members);
  }

 private:
  std::string range(const std::optional<SourceRange>& range) const { return range_json(source_, range); }

  std::vector<std::string> symbols() const {
    std::vector<std::string> list;
    for (const lang::TypeVariable& variable : definition_.type_variables) {
      const auto type = def_.types.find(variable.name.text);
      list.push_back(json_object({{"name", json_string(variable.name.text)},
                                  {"kind", json_string("type")},
                                  {"type", type == def_.types.end() ? "null" : json_string(name_of(type->second))},
                                  {"restriction", json_string(name_of(variable.restriction))},
                                  {"range", range(variable.name.range)}}));
    }
    if (!typed_) return list;
    for (const lang::Size& size : typed_->sizes) {
      list.push_back(json_object({{"name", json_string(size.name)},
                                  {"kind", json_string("size")},
                                  {"type", json_string("int64")},
                                  {"range", range(size.range)}}));
    }
    for (const lang::Scalar& scalar : typed_->scalars) {
      const ir::Scalar* known = program_ ? program_->find_scalar(scalar.name) : nullptr;
      list.push_back(json_object({{"name", json_string(scalar.name)},
                                  {"kind", json_string("scalar")},
                                  {"type", json_string(name_of(scalar.type))},
                                  {"compiled_in", boolean(known ? known->specialised : scalar.compiled_in)},
                                  {"range", range(scalar.range)}}));
    }
    return list;
  }

  std::string tensor(const ir::Tensor& tensor) const {
    static const char* const kRoles[] = {"input", "result", "in-out", "temporary"};
    std::vector<std::string> extents, shape;
    for (const Halide::Expr& e : tensor.extents) {
      const auto value = ir::constant_value(ir::substitute_variables(e, values_));
      extents.push_back(json_string(ir::to_text(e)));
      shape.push_back(value ? fmt::format("{}", *value) : "null");
    }
    return json_object({{"name", json_string(tensor.name)},
                        {"role", json_string(kRoles[static_cast<int>(tensor.role)])},
                        {"type", json_string(ir::type_text(tensor.type))},
                        {"rank", fmt::format("{}", tensor.rank())},
                        {"extents", json_array(extents)},
                        {"shape", json_array(shape)},
                        {"range", range(tensor.declared)}});
  }

  /// Without what range inference would tell.
  std::string tensor(const lang::Tensor& tensor) const {
    std::vector<std::string> extents;
    std::string known = "null";
    if (tensor.dimensions) {
      for (const lang::TypedExprPtr& e : *tensor.dimensions) extents.push_back(json_string(source_->text(e->range)));
      known = json_array(extents);
    }
    return json_object({{"name", json_string(tensor.name)},
                        {"role", json_string(lang::name_of(tensor.role))},
                        {"type", json_string(name_of(tensor.type))},
                        {"rank", fmt::format("{}", tensor.rank)},
                        {"extents", known},
                        {"shape", "null"},
                        {"range", range(tensor.range)}});
  }

  std::vector<std::string> tensors() const {
    std::vector<std::string> list;
    if (program_) {
      for (const ir::Tensor& t : program_->tensors) list.push_back(tensor(t));
    } else if (typed_) {
      for (const lang::Tensor& t : typed_->tensors) list.push_back(tensor(t));
    }
    return list;
  }

  /// The text of index arithmetic, and its value for the given sizes or null.
  void add_expression(Members& members, const std::string& name, const Halide::Expr& e) const {
    const auto value =
        e.defined() ? ir::constant_value(ir::substitute_variables(e, values_)) : std::optional<int64_t>();
    members.emplace_back(name, json_string(ir::to_text(e)));
    members.emplace_back(name + "_value", value ? fmt::format("{}", *value) : "null");
  }

  std::string bound(const ir::Statement& statement, const ir::RangeEnd& by) const {
    return json_object({{"rule", json_string(ir::rule_text(by.rule))},
                        {"cause", json_string(ir::cause_text(*program_, statement, by))},
                        {"reads", ranges_json(source_, by.reads)}});
  }

  std::string index(const ir::Statement& statement, const ir::Index& index) const {
    Members members{{"name", json_string(index.name)}, {"kind", json_string(index.is_reduction ? "reduce" : "map")}};
    add_expression(members, "begin", index.begin);
    add_expression(members, "end", index.end);
    members.emplace_back("begin_by", index.begin.defined() ? bound(statement, index.begin_by) : "null");
    members.emplace_back("end_by", index.end.defined() ? bound(statement, index.end_by) : "null");
    members.emplace_back("range", range(index.range));
    return json_object(members);
  }

  std::vector<std::string> lets(const lang::TypedStatement& statement) const {
    std::vector<std::string> list;
    for (const lang::Let& let : statement.lets) {
      list.push_back(json_object({{"name", json_string(let.name)},
                                  {"type", json_string(name_of(let.value->type))},
                                  {"range", range(let.range)}}));
    }
    return list;
  }

  /// Statements that the compiler adds (copies, fills) have no indices of the text.
  bool is_of_text(const ir::Statement& s) const {
    const bool known = std::ranges::any_of(typed_->tensors, [&](const lang::Tensor& t) { return t.name == s.tensor; });
    return known && std::ranges::none_of(s.indices, [](const ir::Index& index) {
             return index.end_by.rule == ir::RangeRule::kWholeTensor;
           });
  }

  std::string statement(const ir::Statement& s) const {
    std::vector<std::string> indices, subscripts, names;
    for (const ir::Index& i : s.indices) indices.push_back(index(s, i));
    for (const Halide::Expr& e : s.subscripts) subscripts.push_back(json_string(ir::to_text(e)));
    for (const lang::TypedStatement& typed : typed_->statements) {
      if (typed.range == s.range && is_of_text(s)) names = lets(typed);
    }
    return json_object({{"id", json_string(s.id)},
                        {"tensor", json_string(s.tensor)},
                        {"of_text", boolean(is_of_text(s))},
                        {"subscripts", json_array(subscripts)},
                        {"indices", json_array(indices)},
                        {"lets", json_array(names)},
                        {"range", range(s.range)}});
  }

  /// Without what range inference would tell.
  std::string statement(const lang::TypedStatement& s, size_t number) const {
    std::vector<std::string> indices, subscripts;
    for (const lang::Index& i : s.indices) {
      indices.push_back(json_object({{"name", json_string(i.name)},
                                     {"kind", json_string(i.kind == lang::IndexKind::kReduction ? "reduce" : "map")},
                                     {"begin", "null"},
                                     {"begin_value", "null"},
                                     {"end", "null"},
                                     {"end_value", "null"},
                                     {"begin_by", "null"},
                                     {"end_by", "null"},
                                     {"range", range(i.range)}}));
    }
    for (const lang::TypedExprPtr& e : s.subscripts) subscripts.push_back(json_string(source_->text(e->range)));
    return json_object({{"id", json_string(fmt::format("S{}", number))},
                        {"tensor", json_string(typed_->tensors[s.tensor].name)},
                        {"of_text", "true"},
                        {"subscripts", json_array(subscripts)},
                        {"indices", json_array(indices)},
                        {"lets", json_array(lets(s))},
                        {"range", range(s.range)}});
  }

  std::vector<std::string> statements() const {
    std::vector<std::string> list;
    if (program_) {
      for (const ir::Statement& s : program_->statements) list.push_back(statement(s));
    } else if (typed_) {
      for (const lang::TypedStatement& s : typed_->statements) list.push_back(statement(s, list.size()));
    }
    return list;
  }

  std::vector<std::string> preconditions() const {
    std::vector<std::string> list;
    if (!program_) return list;
    for (const ir::Precondition& p : program_->preconditions) {
      std::string holds = "null";
      if (p.condition.defined()) {
        const Halide::Expr value =
            Halide::Internal::simplify(ir::fold_divisions(ir::substitute_variables(p.condition, values_)));
        if (Halide::Internal::is_const_one(value)) holds = "true";
        if (Halide::Internal::is_const_zero(value)) holds = "false";
      }
      list.push_back(json_object({{"sentence", json_string(p.sentence.substr(0, p.sentence.find(", but ")))},
                                  {"holds", holds},
                                  {"range", range(p.range)}}));
    }
    return list;
  }

  std::vector<std::string> run_time_checks() const {
    std::vector<std::string> list;
    if (!program_ || program_->open) return list;
    for (const ir::RunTimeCheck& c : ir::unproved_checks(*program_)) {
      list.push_back(json_object({{"subscript", json_string(ir::to_text(c.subscript))},
                                  {"extent", json_string(ir::to_text(c.extent))},
                                  {"range", range(c.range)}}));
    }
    return list;
  }

  SourcePtr source_;
  const lang::Definition& definition_;
  const CheckedDef& def_;
  const ir::Program* program_ = nullptr;
  const lang::TypedDefinition* typed_ = nullptr;
  ir::Substitution values_;
};

}  // namespace

std::string to_json(const CheckedText& checked) {
  std::vector<std::string> defs;
  for (const CheckedDefinition& definition : checked.definitions) {
    for (const CheckedDef& def : definition.instances) {
      defs.push_back("\n  " + Describe(checked, *definition.definition, def).json());
    }
  }
  return fmt::format("{{\"version\": {},\n \"file\": {},\n \"ok\": {},\n \"diagnostics\": {},\n \"defs\": {}}}\n",
                     kVersion, json_string(checked.source->name()), boolean(checked.ok()), diagnostics_json(checked),
                     json_array(defs));
}

}  // namespace tc::api
