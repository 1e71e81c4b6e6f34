#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tc/api/engine_impl.h"
#include "tc/api/request.h"
#include "tc/ir/bounds.h"
#include "tc/ir/canonical.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/from_lang.h"
#include "tc/lang/format.h"
#include "tc/lang/gradient.h"
#include "tc/lang/sema.h"
#include "tc/support/nearest.h"

namespace tc::api {
namespace {

Argument describe(const ir::Tensor& tensor) {
  Argument argument{.name = tensor.name, .type = ir::from_halide(tensor.type)};
  argument.role = tensor.role == ir::Role::kInput   ? Role::kInput
                  : tensor.role == ir::Role::kInOut ? Role::kInOut
                                                    : Role::kResult;
  for (const Halide::Expr& extent : tensor.extents) argument.shape.push_back(ir::to_text(extent));
  return argument;
}

/// The same index of the same statement, of which the Program may have made several.
bool is_same(const ir::Index& index, const lang::Index& typed) {
  return index.name == typed.name && index.range == (typed.given ? typed.given->range : typed.range);
}

/// The ranges of a statement's indices. The Program has statements of its own among the def's: fills, copies, stores of
/// wider sums, which lack one of its indices or have what the statement has.
std::vector<std::pair<std::string, std::string>> ranges_of(const ir::Program& program,
                                                           const lang::TypedStatement& typed) {
  for (const ir::Statement& statement : program.statements) {
    if (statement.range != typed.range) continue;
    std::vector<std::pair<std::string, std::string>> ranges;
    for (const lang::Index& wanted : typed.indices) {
      const auto index =
          std::ranges::find_if(statement.indices, [&](const ir::Index& known) { return is_same(known, wanted); });
      if (index != statement.indices.end()) ranges.emplace_back(ir::to_text(index->begin), ir::to_text(index->end));
    }
    if (ranges.size() == typed.indices.size()) return ranges;
  }
  TC_CHECK(false, "a statement of '{}' is not in the program", program.name);
}

/// What has been inferred for a typed def, as text.
lang::InferredRanges ranges_of(const ir::Program& program, const lang::TypedDefinition& definition) {
  lang::InferredRanges ranges;
  for (const lang::Tensor& typed : definition.tensors) {
    const auto tensor = std::ranges::find(program.tensors, typed.name, &ir::Tensor::name);
    TC_CHECK(tensor != program.tensors.end(), "the tensor '{}' is not in the program", typed.name);
    ranges.extents.push_back(describe(*tensor).shape);
  }
  for (const lang::TypedStatement& statement : definition.statements) {
    ranges.indices.push_back(ranges_of(program, statement));
  }
  return ranges;
}

}  // namespace

Signature signature_of(const ir::Program& program) {
  Signature signature{.entry = program.name, .sizes = program.sizes};
  for (const std::string& name : program.parameters) {
    if (const ir::Scalar* scalar = program.find_scalar(name)) {
      signature.parameters.push_back({.name = name,
                                      .role = Role::kScalar,
                                      .type = ir::from_halide(scalar->type),
                                      .compiled_in = scalar->specialised});
    } else {
      signature.parameters.push_back(describe(program.tensor(name)));
    }
  }
  for (const std::string& name : program.results) signature.results.push_back(describe(program.tensor(name)));
  return signature;
}

Result<const Def*> Engine::Impl::find(const std::string& entry, const Request& request) const {
  if (entry.empty() && entries.size() != 1) {
    return fail("the text has {} defs; name one: {}", entries.size(), fmt::join(entries, ", "));
  }
  const std::string& wanted = entry.empty() ? entries[0] : entry;
  if (const lang::Definition* found = generic(wanted)) return find_generic(*found, wanted, request);
  const auto found = defs.find(wanted);
  if (found != defs.end()) {
    if (!request.types.empty()) return fail("'{}' has no type variable '{}'", wanted, request.types.begin()->first);
    return &found->second;
  }
  if (is_absent(wanted)) return unknown(wanted);
  if (production && !front.file) {
    TC_TRY(known, find_known_instance(wanted, request));
    if (known) return known;
  }
  const std::string meant = nearest(wanted, entries);
  if (!meant.empty()) return fail("there is no def '{}'; did you mean '{}'?", wanted, meant);
  return fail("there is no def '{}'; there are {}", wanted, fmt::join(entries, ", "));
}

/// The generic def of a name, or of the name of an instance.
const lang::Definition* Engine::Impl::generic(const std::string& entry) const {
  if (!front.file) return nullptr;
  const std::string name = entry.substr(0, entry.find('<'));
  for (const lang::Definition& definition : front.file->definitions) {
    if (lang::is_generic(definition) && definition.name.text == name) return &definition;
  }
  return nullptr;
}

/// The instance that a request decides (T7).
Result<const Def*> Engine::Impl::find_generic(const lang::Definition& generic, const std::string& entry,
                                              const Request& request) const {
  TC_TRY(types, types_of(request, generic, entry));
  return find_instance(generic, types, {request.budget, request.cancel});
}

Result<const Def*> Engine::Impl::find_instance(const lang::Definition& generic, const lang::TypeArguments& types,
                                               const Limits& limits) const {
  const std::string name = lang::instance_name(generic, types);
  Instance* instance = nullptr;
  {
    const std::lock_guard<std::mutex> lock(instances_mutex);
    instance = &instances[name];
  }
  const std::lock_guard<std::mutex> lock(instance->mutex);
  if (instance->def) return instance->def.get();
  compile::Compilation parsed;
  parsed.source = front.source;
  parsed.file = std::make_shared<const lang::File>(lang::instance_file(*front.file, generic, types));
  parsed.done = 1;
  auto def = std::make_unique<Def>();
  TC_TRY(known, fill(*def, name, parsed, limits));
  if (!known) return unknown(name);
  def->instance = std::move(parsed);
  instance->def = std::move(def);
  return instance->def.get();
}

/// In production without a text: the only instance that the file knows for these tensors; null if there is none.
Result<const Def*> Engine::Impl::find_known_instance(const std::string& entry, const Request& request) const {
  const Def* chosen = nullptr;
  for (const auto& [name, def] : defs) {
    if (!name.starts_with(entry + "<")) continue;
    const std::vector<std::string> inputs = inputs_of(def.program);
    bool fits = true;
    for (size_t i = 0; i < std::min(inputs.size(), request.inputs.size()); ++i) {
      const ir::Tensor& tensor = def.program.tensor(inputs[i]);
      fits = fits && (!request.inputs[i] || request.inputs[i]->type == ir::from_halide(tensor.type));
    }
    if (fits && chosen) return fail("'{}' and '{}' both fit the request; name one", chosen->program.name, name);
    if (fits) chosen = &def;
  }
  return chosen;
}

/// A def that the file knows by its interface.
Result<void> Engine::Impl::fill_known(Def& def, const cache::Interface& interface) const {
  auto program = compile::program_of(interface);
  if (!program)
    return fail("the cache {}: the interface of '{}' cannot be read", store->file()->path(), interface.entry);
  def.program = std::move(*program);
  def.digest = interface.program;
  def.text = interface.text;
  def.has_run_time_checks = interface.has_run_time_checks;
  return {};
}

/// A def of the text `parsed`: by its interface if the file knows it, else through the front end. False in production,
/// if the file does not know it.
Result<bool> Engine::Impl::fill(Def& def, const std::string& entry, compile::Compilation& parsed,
                                const Limits& limits) const {
  std::string text;
  if (store) {
    text = compile::source_of(*parsed.file, entry);
    Result<std::optional<cache::Interface>> known = store->file()->find_interface(Digest::of(text));
    if (!known) store->warn(known.error().diagnostics().at(0).message);
    if (known && *known) {
      TC_TRY_VOID(fill_known(def, **known));
      return true;
    }
    if (production) return false;
  }
  if (!parsed.typed) TC_TRY_VOID(compile::run_passes(limits.settings(), parsed, "analyse"));
  compile::Settings settings = limits.settings();
  settings.entry = entry;
  compile::Compilation compilation = parsed;
  TC_TRY_VOID(compile::run_passes(settings, compilation, "program"));
  def.text = text;
  def.program = *compilation.program;
  def.has_run_time_checks = !ir::run_time_checks(def.program).empty();
  def.made = std::move(compilation);
  if (!store) return true;
  def.digest = ir::digest_of(def.program).to_string();
  const std::optional<cache::Interface> interface = compile::interface_of(def.program, text);
  if (!interface || store->file()->mode() == cache::Mode::kReadOnly) return true;
  if (auto written = store->file()->put(Digest::of(text), *interface); !written) {
    store->warn(written.error().diagnostics().at(0).message);
  }
  return true;
}

Result<void> Engine::Impl::add_def(const std::string& entry, const Limits& limits) {
  const auto place = defs.try_emplace(entry).first;
  TC_TRY(known, fill(place->second, entry, front, limits));
  if (known) {
    entries.push_back(entry);
  } else {
    defs.erase(place);
    absent.push_back(entry);
  }
  return {};
}

/// Keeps the shapes of a def for the values of its scalars, for processes without the front end.
void Engine::Impl::keep_instance(const Def& def, const compile::Compilation& compilation) const {
  if (!compilation.program->waits_for_scalars() || store->file()->mode() == cache::Mode::kReadOnly) return;
  if (auto kept = compile::keep_interfaces(*store->file(), *compilation.program, *compilation.instance, def.text);
      !kept) {
    store->warn(kept.error().diagnostics().at(0).message);
  }
}

/// The def's Program for the values of its compiled-in scalars: from the file if it has it, else by the front end.
/// Without a value for each of them, the one without values, of which ir::bind() says so.
Result<std::shared_ptr<const ir::Program>> Engine::Impl::program_for(const Def& def,
                                                                     const compile::Settings& settings) const {
  const auto plain = [&] {
    return std::shared_ptr<const ir::Program>(std::shared_ptr<const ir::Program>(), &def.program);
  };
  if (!def.program.waits_for_scalars()) return plain();
  const bool all = std::ranges::all_of(def.program.scalars, [&](const ir::Scalar& scalar) {
    return !scalar.specialised || settings.given.scalars.contains(scalar.name);
  });
  if (!all) return plain();
  if (store) {
    auto known = store->file()->find_interface(compile::interface_key(def.text, settings.given.scalars));
    if (!known) store->warn(known.error().diagnostics().at(0).message);
    if (known && *known) {
      if (auto program = compile::program_of(**known)) return std::make_shared<const ir::Program>(*std::move(program));
    }
  }
  if (production) {
    if (!def.program.open) return plain();
    std::string values;
    for (const auto& [name, value] : settings.given.scalars) {
      values += fmt::format("{}'{}' is {}", values.empty() ? "" : ", ", name, value);
    }
    return fail("the cache {} does not know the shapes of '{}' where {}", store->file()->path(), def.program.name,
                values);
  }
  TC_TRY(compilation, def.compilation(front, settings));
  return compilation.instance;
}

Result<void> Engine::Impl::add_defs(const Limits& limits) {
  for (const lang::Definition& definition : front.file->definitions) {
    // Two defs of one name: the analysis says so.
    const std::string& name = definition.name.text;
    const auto is_same = [&](const lang::Definition& other) { return other.name.text == name; };
    const bool twice = std::ranges::count_if(front.file->definitions, is_same) > 1;
    if (twice) return compile::run_passes(limits.settings(), front, "analyse");
    if (!lang::is_generic(definition)) {
      TC_TRY_VOID(add_def(name, limits));
      continue;
    }
    // Its instances come when they are asked for, but for those that its signature is read from.
    if (!production && !front.typed) TC_TRY_VOID(compile::run_passes(limits.settings(), front, "analyse"));
    const auto signature = generic_signatures.emplace(name, generic_signature(definition, limits)).first;
    // No error of a text that is used by its instances only.
    if (!signature->second && signature->second.error().ended_early()) return tl::unexpected(signature->second.error());
    entries.push_back(name);
  }
  if (entries.empty() && !absent.empty() && !on_miss) return unknown(absent[0]);
  return {};
}

tl::unexpected<Error> Engine::Impl::unknown(const std::string& entry) const {
  return fail("the cache {} does not know the def '{}'", store->file()->path(), entry);
}

/// A result without a declared type names a variable if it has its type in every instance without errors. The analysis
/// knows all types, without ranges.
void Engine::Impl::name_result_types(const lang::Definition& generic, const Limits& limits,
                                     Signature& signature) const {
  const auto is_declared = [](const auto& result) { return result.type || !result.type_variable.empty(); };
  if (std::ranges::all_of(generic.results, is_declared)) return;
  const ir::Deadline deadline(limits.budget.wall_clock_ms, limits.cancel);
  const auto is_over = [&] { return deadline.is_over(); };
  std::vector<std::pair<lang::TypeArguments, lang::TypedProgram>> instances;
  for (const lang::TypeArguments& types : lang::instances_of(generic)) {
    Result<lang::TypedProgram> typed = lang::analyse(lang::instance_file(*front.file, generic, types), is_over);
    if (!typed && typed.error().ended_early()) return;
    if (typed) instances.emplace_back(types, *std::move(typed));
  }
  for (const lang::TypeVariable& variable : generic.type_variables) {
    const auto type_in = [&](const auto& instance) { return instance.first.at(variable.name.text); };
    // One type alone says nothing: a result of float32 would follow it, too.
    const auto differs = [&](const auto& instance) { return type_in(instance) != type_in(instances[0]); };
    if (std::ranges::none_of(instances, differs)) continue;
    for (size_t r = 0; r < signature.results.size(); ++r) {
      const auto follows = [&](const auto& instance) {
        const lang::TypedDefinition& definition = instance.second.definitions.at(0);
        return definition.tensors[static_cast<size_t>(definition.results[r])].type == type_in(instance);
      };
      std::string& name = signature.results[r].type_variable;
      if (!name.empty() || !std::ranges::all_of(instances, follows)) continue;
      name = variable.name.text;
      if (variable.restriction == lang::TypeVariable::Restriction::kInteger) continue;
      std::pair narrow(instances[0].first, lang::TypedProgram());
      narrow.first[name] = ScalarType::kFloat8E4M3;
      Result<lang::TypedProgram> typed = lang::analyse(lang::instance_file(*front.file, generic, narrow.first));
      if (!typed) continue;
      narrow.second = *std::move(typed);
      signature.results[r].widens_float8 = !follows(narrow);
    }
  }
}

/// That of the first instance without errors.
Result<Signature> Engine::Impl::generic_signature(const lang::Definition& generic, const Limits& limits) const {
  std::optional<Error> first;
  for (const lang::TypeArguments& types : lang::instances_of(generic)) {
    const Result<const Def*> def = find_instance(generic, types, limits);
    if (!def) {
      if (def.error().ended_early()) return tl::unexpected(def.error());
      if (!first) first = def.error();
      continue;
    }
    Signature signature = signature_of((*def)->program);
    signature.entry = generic.name.text;
    for (const lang::TypeVariable& variable : generic.type_variables) {
      signature.type_variables.push_back({variable.name.text, std::string(lang::name_of(variable.restriction))});
    }
    for (size_t i = 0; i < generic.parameters.size(); ++i) {
      signature.parameters[i].type_variable = generic.parameters[i].type_variable;
    }
    for (size_t i = 0; i < generic.results.size(); ++i) {
      signature.results[i].type_variable = generic.results[i].type_variable;
    }
    name_result_types(generic, limits, signature);
    return signature;
  }
  return tl::unexpected(*first);
}

Result<std::string> Engine::Impl::gradient(const Def& def) const {
  compile::Settings settings;
  settings.budget = budget;
  TC_TRY(compilation, def.compilation(front, settings));
  const ir::Program& program = *compilation.program;
  if (program.open) {
    return fail("no gradient of '{}' is derived: its ranges depend on the values of scalars; give them with 'where'",
                program.name);
  }
  const auto& definitions = compilation.typed->definitions;
  const auto typed = std::ranges::find(definitions, program.name, &lang::TypedDefinition::name);
  TC_CHECK(typed != definitions.end(), "the def '{}' is not in its text", program.name);
  lang::TypedDefinition definition = *typed;
  definition.name = definition.name.substr(0, definition.name.find('<'));  // of an instance: the generic def's
  return lang::gradient(definition, compilation.source, ranges_of(program, *typed));
}

}  // namespace tc::api
