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
#include "tc/support/result.h"

namespace tc::cli {
namespace {

Result<std::map<std::string, int64_t>> numbers_of(const std::string& flag, const std::string& text) {
  TC_TRY(pairs, parse_assignments(flag, text));
  std::map<std::string, int64_t> numbers;
  for (const auto& [name, value] : pairs) {
    TC_TRY(number, parse_integer(fmt::format("'{}' in '--{}'", name, flag), value));
    numbers[name] = number;
  }
  return numbers;
}

Result<api::CheckOptions> options_of_flags() {
  if (FLAGS_time_limit_ms <= 0) return fail("'--time_limit_ms' is {}; it must be at least 1", FLAGS_time_limit_ms);
  TC_TRY(sizes, numbers_of("sizes", FLAGS_sizes));
  TC_TRY(scalars, numbers_of("scalars", FLAGS_scalars));
  TC_TRY(types, types_of_flags());
  return api::CheckOptions{.sizes = sizes, .scalars = scalars, .types = types, .time_limit_ms = FLAGS_time_limit_ms};
}

Result<std::string> text_of(const api::CheckedDef& checked) {
  if (!checked.done) return tl::unexpected(checked.done.error());
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
  if (good.empty()) return tl::unexpected(first->done.error());
  TC_TRY(report, text_of(*checked.good()));
  report += fmt::format("  instances of {} without errors: {}\n", lang::header_name(*checked.definition),
                        fmt::join(good, ", "));
  if (!bad.empty()) {
    report += fmt::format("  instances with errors: {}; the first has: {}\n", fmt::join(bad, ", "),
                          first->done.error().diagnostics().at(0).message);
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
  TC_TRY(options, options_of_flags());
  TC_TRY(source, read_source(files[0]));
  TC_TRY(checked, api::check_text(source, options));
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
