#include <cstdio>

#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/compile/pipeline.h"
#include "tc/ir/print.h"

namespace tc::cli {

Result<void> run_check(const std::vector<std::string>& files) {
  if (FLAGS_time_limit_ms <= 0) return fail("'--time_limit_ms' is {}; it must be at least 1", FLAGS_time_limit_ms);
  compile::Compilation front;
  TC_TRY(source, read_source(files[0]));
  front.source = source;
  TC_TRY_VOID(compile::run_passes(compile::Settings(), front, "analyse"));
  // Errors of all defs are reported together.
  std::string report;
  std::vector<Diagnostic> diagnostics;
  for (const lang::TypedDefinition& definition : front.typed->definitions) {
    compile::Settings settings;
    settings.entry = definition.name;
    settings.budget.wall_clock_ms = FLAGS_time_limit_ms;
    compile::Compilation compilation = front;
    const Result<void> done = compile::run_passes(settings, compilation, "program");
    if (done) {
      if (!report.empty()) report += '\n';
      report += ir::report(*compilation.program);
    } else {
      diagnostics.insert(diagnostics.end(), done.error().diagnostics().begin(), done.error().diagnostics().end());
    }
  }
  if (!diagnostics.empty()) return tl::unexpected(Error(source, std::move(diagnostics)));
  std::fwrite(report.data(), 1, report.size(), stdout);
  return {};
}

}  // namespace tc::cli
