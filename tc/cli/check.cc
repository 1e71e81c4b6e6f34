#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tc/api/check.h"
#include "tc/cli/command_line.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/ir/print.h"
#include "tc/lang/format.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

using Numbers = std::map<std::string, api::Scalar>;

Result<std::map<std::string, int64_t>> sizes_of_flags() {
  TC_TRY(pairs, parse_assignments("sizes", FLAGS_sizes));
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, value] : pairs) {
    TC_TRY(number, parse_integer(fmt::format("size '{}'", name), value));
    sizes[name] = number;
  }
  return sizes;
}

Result<Numbers> scalars_of_flags() {
  TC_TRY(pairs, parse_assignments("scalars", FLAGS_scalars));
  Numbers scalars;
  for (const auto& [name, value] : pairs) {
    TC_TRY(number, parse_scalar(name, value));
    scalars.emplace(name, number);
  }
  return scalars;
}

std::optional<int64_t> integer_of(const api::Scalar& scalar) {
  return scalar.kind() == api::Scalar::Kind::kSigned ? std::optional(scalar.integer()) : std::nullopt;
}

/// Other numbers than integers are of scalars that decide no range.
Result<api::CheckOptions> options_of_flags(const Numbers& scalars) {
  if (FLAGS_time_limit_ms <= 0) return fail("'--time_limit_ms' is {}; it must be at least 1", FLAGS_time_limit_ms);
  TC_TRY(sizes, sizes_of_flags());
  TC_TRY(types, types_of_flags());
  api::CheckOptions options{.sizes = sizes, .types = types, .time_limit_ms = FLAGS_time_limit_ms};
  for (const auto& [name, value] : scalars) {
    if (const auto integer = integer_of(value)) options.scalars[name] = *integer;
  }
  return options;
}

Error unknown(const char* what, const std::string& name, const std::vector<std::string>& names) {
  const std::string meant = nearest(name, names);
  if (!meant.empty()) return Error(fmt::format("no def has a {} '{}'; did you mean '{}'?", what, name, meant));
  if (names.empty()) return Error(fmt::format("no def has a {} '{}'; there are none", what, name));
  if (names.size() == 1) return Error(fmt::format("no def has a {} '{}'; there is '{}'", what, name, names[0]));
  return Error(fmt::format("no def has a {} '{}'; there are {}", what, name, fmt::join(names, ", ")));
}

/// Every size and scalar that is given belongs to a def, and scalars that are compiled in are integers. Nothing is
/// known of defs with errors.
Result<void> check_names(const api::CheckedText& checked, const api::CheckOptions& options, const Numbers& scalars) {
  if (checked.error) return {};
  std::vector<std::string> size_names, scalar_names;
  for (const api::CheckedDefinition& all : checked.definitions) {
    for (const api::CheckedDef& def : all.instances) {
      if (!def.compilation.typed) return {};
      for (const lang::TypedDefinition& typed : def.compilation.typed->definitions) {
        for (const lang::Size& size : typed.sizes) add_new(size_names, size.name);
        for (const lang::Scalar& scalar : typed.scalars) {
          add_new(scalar_names, scalar.name);
          const auto given = scalars.find(scalar.name);
          if (given == scalars.end() || !scalar.compiled_in || integer_of(given->second)) continue;
          return fail("scalar '{}' of '{}' must be an integer, not {}", scalar.name, typed.name,
                      given->second.to_string());
        }
      }
    }
  }
  for (const auto& [name, value] : options.sizes) {
    if (std::ranges::find(size_names, name) == size_names.end()) {
      return tl::unexpected(unknown("size", name, size_names));
    }
  }
  for (const auto& [name, value] : scalars) {
    if (std::ranges::find(scalar_names, name) == scalar_names.end()) {
      return tl::unexpected(unknown("scalar", name, scalar_names));
    }
  }
  return {};
}

/// The error of a def, by the names of the flags where sizes are left open.
Error error_of(const api::CheckedDef& checked) {
  const compile::Compilation& c = checked.compilation;
  if (checked.done.error().kind() != ErrorKind::kUser || !c.program || FLAGS_sizes.empty()) return checked.done.error();
  std::vector<std::string> open;
  for (const std::string& size : c.program->sizes) {
    if (!checked.sizes.contains(size)) open.push_back(size);
  }
  return open.empty() ? checked.done.error() : no_sizes(c.program->name, open);
}

Result<std::string> text_of(const api::CheckedDef& checked) {
  if (!checked.done) return tl::unexpected(error_of(checked));
  const compile::Compilation& c = checked.compilation;
  return ir::report(c.specialised ? *c.specialised : c.concrete());
}

/// Of the instance of --types; else of the first without errors, with a list of the others (T7).
Result<std::string> text_of_generic(const api::CheckedText& text, const api::CheckedDefinition& checked) {
  if (!checked.unchecked.empty()) return tl::unexpected(checked.out_of_time(text.source, text.time_limit_ms));
  if (checked.wanted == 1) return text_of(checked.instances.at(0));
  std::vector<std::string> good, bad;
  const api::CheckedDef* first = nullptr;
  for (const api::CheckedDef& instance : checked.instances) {
    if (!instance.done && !first) first = &instance;
    (instance.done ? good : bad).push_back(instance.name);
  }
  if (good.empty()) return tl::unexpected(error_of(*first));
  TC_TRY(report, text_of(*checked.good()));
  report += fmt::format("  instances of {} without errors: {}\n", lang::header_name(*checked.definition),
                        fmt::join(good, ", "));
  if (!bad.empty()) {
    report += fmt::format("  instances with errors: {}; the first has: {}\n", fmt::join(bad, ", "),
                          error_of(*first).diagnostics().at(0).message);
  }
  return report;
}

/// What is said of all defs. Errors of all of them are reported together.
Result<std::string> text_of(const api::CheckedText& checked) {
  std::string report;
  std::vector<Diagnostic> diagnostics;
  if (checked.error) {
    if (checked.error->kind() != ErrorKind::kUser) return tl::unexpected(*checked.error);
    diagnostics = checked.error->diagnostics();
  }
  for (const api::CheckedDefinition& definition : checked.definitions) {
    const bool is_generic = lang::is_generic(*definition.definition);
    const Result<std::string> one =
        is_generic ? text_of_generic(checked, definition) : text_of(definition.instances.at(0));
    if (one) {
      if (!report.empty()) report += '\n';
      report += *one;
    } else if (one.error().kind() == ErrorKind::kInternal) {
      return one;
    } else {
      diagnostics.insert(diagnostics.end(), one.error().diagnostics().begin(), one.error().diagnostics().end());
    }
  }
  if (diagnostics.empty()) return report;
  std::ranges::stable_sort(diagnostics, {}, [](const Diagnostic& d) { return d.range ? d.range->begin : 0; });
  return tl::unexpected(Error(checked.source, std::move(diagnostics)));
}

/// What is told of defs that mean something else than they may seem to.
std::string remarks_of(const api::CheckedText& checked) {
  std::string remarks;
  for (const api::CheckedDefinition& definition : checked.definitions) {
    if (lang::is_generic(*definition.definition)) continue;
    for (const lang::TypedDefinition& typed : definition.instances.at(0).compilation.typed->definitions) {
      if (typed.name == definition.definition->name.text) remarks += to_string(checked.source, typed.remarks);
    }
  }
  return remarks;
}

}  // namespace

Result<void> run_check(const std::vector<std::string>& files) {
  TC_TRY(scalars, scalars_of_flags());
  TC_TRY(options, options_of_flags(scalars));
  TC_TRY(source, read_source(files[0]));
  TC_TRY(checked, api::check_text(source, options));
  TC_TRY_VOID(check_names(checked, options, scalars));
  if (FLAGS_json) {
    const std::string json = api::to_json(checked);
    std::fwrite(json.data(), 1, json.size(), stdout);
  }
  TC_TRY(report, text_of(checked));
  if (!FLAGS_json) std::fwrite(report.data(), 1, report.size(), stdout);
  const std::string remarks = remarks_of(checked);
  std::fwrite(remarks.data(), 1, remarks.size(), stderr);
  return {};
}

}  // namespace tc::cli
