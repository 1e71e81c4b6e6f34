#include "tc/api/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tc/api/engine_impl.h"
#include "tc/lang/instantiate.h"
#include "tc/support/check.h"

namespace tc::api {
namespace {

using Clock = std::chrono::steady_clock;
using Numbers = std::map<std::string, int64_t>;

/// Those that a def has: a text may have several defs.
Numbers those_of(const Numbers& numbers, const std::set<std::string>& names) {
  Numbers result;
  for (const auto& [name, value] : numbers) {
    if (names.contains(name)) result[name] = value;
  }
  return result;
}

/// Goes on from what is known of a def's text.
Result<void> check_def(CheckedDef& checked, const CheckOptions& options, Clock::time_point start) {
  compile::Settings settings;
  settings.entry = checked.name;
  settings.budget.wall_clock_ms = options.time_limit_ms;
  settings.cancel = options.cancel;
  compile::Compilation& compilation = checked.compilation;
  compilation.spent = Clock::now() - start;  // by the defs before, too
  TC_TRY_VOID(compile::run_passes(settings, compilation, "analyse"));
  const auto& definitions = compilation.typed->definitions;
  const auto definition = std::ranges::find(definitions, checked.name, &lang::TypedDefinition::name);
  TC_CHECK(definition != definitions.end(), "the def '{}' is not in its text", checked.name);
  std::set<std::string> size_names, scalar_names;
  for (const lang::Size& size : definition->sizes) size_names.insert(size.name);
  for (const lang::Scalar& scalar : definition->scalars) scalar_names.insert(scalar.name);
  checked.sizes = those_of(options.sizes, size_names);
  checked.scalars = those_of(options.scalars, scalar_names);
  settings.given.scalars = checked.scalars;
  settings.given.sizes = checked.sizes;
  // Sizes of in-outs that only the caller's tensor gives are none of the def's names.
  const bool specialise = !options.sizes.empty() || (size_names.empty() && !options.scalars.empty());
  return compile::run_passes(settings, compilation, specialise ? "specialise" : "program");
}

/// The text after its parser, or after the analysis of all its defs.
compile::Compilation parsed(const SourcePtr& source, std::shared_ptr<const lang::File> file) {
  compile::Compilation compilation;
  compilation.source = source;
  compilation.file = std::move(file);
  compilation.done = 1;
  return compilation;
}

/// Those of all types, or the one of the types that are given.
Result<std::vector<lang::TypeArguments>> instances_of(const lang::File& file, const lang::Definition& generic,
                                                      const CheckOptions& options) {
  TC_TRY(given, lang::types_given_for(file, generic, options.types));
  if (given.empty()) return lang::instances_of(generic);
  TC_TRY(types, lang::decide_types(generic, {}, given));
  return std::vector{types};
}

/// The defs and instances of a text, one after the other until one ends early.
class Check {
 public:
  Check(const CheckOptions& options, Clock::time_point start, const SourcePtr& source)
      : options_(options), start_(start), source_(source) {}

  /// False after cancellation.
  bool def(CheckedDefinition& all, CheckedDef def) {
    if (is_over()) {
      const lang::Name& name = all.definition->name;
      def.done = tl::unexpected(
          Error(source_, name.range,
                fmt::format("the time limit of {} ms ended the check before '{}'", options_.time_limit_ms, def.name))
              .with_kind(ErrorKind::kBudget));
    } else {
      def.done = guarded([&] { return check_def(def, options_, start_); });
      ended_early_ = !def.done && def.done.error().ended_early();
    }
    all.instances.push_back(std::move(def));
    return !options_.cancel.stop_requested();
  }

  /// The same for the instances of a generic def.
  bool generic(CheckedDefinition& all, const lang::File& file, const std::vector<lang::TypeArguments>& instances) {
    all.wanted = instances.size();
    for (const lang::TypeArguments& types : instances) {
      std::string name = lang::instance_name(*all.definition, types);
      if (!all.instances.empty() && is_over()) {
        all.unchecked.push_back(std::move(name));
        continue;
      }
      auto alone = std::make_shared<const lang::File>(lang::instance_file(file, *all.definition, types));
      if (!def(all, {.name = name, .types = types, .compilation = parsed(source_, std::move(alone))})) return false;
      if (ended_early_) all.unchecked.push_back(std::move(name));
      if (options_.first_instance && all.good()) break;
    }
    return true;
  }

 private:
  bool is_over() {
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
    ended_early_ = ended_early_ || spent.count() >= options_.time_limit_ms;
    return ended_early_;
  }

  const CheckOptions& options_;
  Clock::time_point start_;
  SourcePtr source_;
  bool ended_early_ = false;
};

tl::unexpected<Error> cancelled() {
  return tl::unexpected(Error("the check was cancelled").with_kind(ErrorKind::kCancelled));
}

}  // namespace

const CheckedDef* CheckedDefinition::good() const {
  const auto found = std::ranges::find_if(instances, [](const CheckedDef& def) { return def.done.has_value(); });
  return found == instances.end() ? nullptr : &*found;
}

Error CheckedDefinition::out_of_time(const SourcePtr& source, int64_t limit_ms) const {
  return Error(source, definition->name.range,
               fmt::format("the time limit of {} ms left {} of {} instances unchecked: {}", limit_ms, unchecked.size(),
                           wanted, fmt::join(unchecked, ", ")))
      .with_kind(ErrorKind::kBudget);
}

bool CheckedText::ok() const {
  return !error && std::ranges::all_of(definitions, [](const CheckedDefinition& d) {
    return d.good() != nullptr && d.unchecked.empty();
  });
}

Result<CheckedText> check_text(SourcePtr source, const CheckOptions& options) {
  const Clock::time_point start = Clock::now();
  if (options.time_limit_ms <= 0) return fail("the time limit is {} ms; it must be at least 1", options.time_limit_ms);
  CheckedText checked{.source = source, .time_limit_ms = options.time_limit_ms};
  compile::Compilation front;
  front.source = source;
  compile::Settings limits;
  limits.budget.wall_clock_ms = options.time_limit_ms;
  limits.cancel = options.cancel;
  Result<void> read = guarded([&] { return compile::run_passes(limits, front, "analyse"); });
  if (options.cancel.stop_requested()) return cancelled();
  if (!read) checked.error = read.error();
  checked.file = front.file;
  if (!front.file) return checked;
  if (!read && read.error().ended_early()) {
    checked.error = Error(source, front.file->definitions[0].name.range,
                          fmt::format("the time limit of {} ms ended the analysis of the text", options.time_limit_ms))
                        .with_kind(ErrorKind::kBudget);
    return checked;
  }
  const auto& definitions = front.file->definitions;
  if (!options.types.empty() && std::ranges::none_of(definitions, lang::is_generic)) {
    return fail("types are given for generic defs, and '{}' has none", source->name());
  }
  Check check(options, start, source);
  for (const lang::Definition& definition : definitions) {
    CheckedDefinition all{.definition = &definition};
    bool go_on = true;
    if (lang::is_generic(definition)) {
      TC_TRY(instances, instances_of(*front.file, definition, options));
      go_on = check.generic(all, *front.file, instances);
    } else if (checked.error) {
      // The others may be right: each is analysed alone.
      lang::File alone = *front.file;
      alone.definitions = {definition};
      go_on = check.def(all, {.name = definition.name.text,
                              .compilation = parsed(source, std::make_shared<const lang::File>(std::move(alone)))});
    } else {
      go_on = check.def(all, {.name = definition.name.text, .compilation = front});
    }
    if (!go_on) return cancelled();
    // Errors of the analysis are those of the whole text.
    const bool is_known = checked.error && std::ranges::all_of(all.instances, [](const CheckedDef& def) {
                            return !def.done && !def.done.error().ended_early() && !def.compilation.typed;
                          });
    if (!is_known) checked.definitions.push_back(std::move(all));
  }
  return checked;
}

}  // namespace tc::api
