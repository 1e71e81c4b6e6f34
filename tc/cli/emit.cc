#include <cstdio>

#include "tc/api/request.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

/// The pass whose dump a stage is. A Program is shown for concrete sizes as soon as there is a value for anything.
Result<std::string> pass_of_stage(const api::Request& request) {
  if (!FLAGS_stop_after.empty()) {
    if (!FLAGS_stage.empty()) return fail("'--stage' and '--stop_after' exclude each other");
    TC_TRY(found, compile::find_pass(FLAGS_stop_after));
    return std::string(compile::passes()[found].name);
  }
  if (FLAGS_stage == "ast") return "analyse";
  if (FLAGS_stage == "program") return request.sizes.empty() && request.scalars.empty() ? "program" : "specialise";
  if (FLAGS_stage == "schedule") return "schedule";
  if (FLAGS_stage == "stmt" || FLAGS_stage == "object") return FLAGS_stage;
  const std::vector<std::string> stages = {"ast", "program", "schedule", "stmt", "object"};
  if (FLAGS_stage.empty()) return fail("'--stage' is missing; the stages are {}", fmt::join(stages, ", "));
  const std::string meant = nearest(FLAGS_stage, stages);
  if (!meant.empty()) return fail("there is no stage '{}'; did you mean '{}'?", FLAGS_stage, meant);
  return fail("there is no stage '{}'; the stages are {}", FLAGS_stage, fmt::join(stages, ", "));
}

}  // namespace

Result<void> run_emit(const std::vector<std::string>& files) {
  TC_TRY(compilation, open_def(files[0]));
  TC_TRY(request, request_of_flags(*compilation.program));
  TC_TRY(pass, pass_of_stage(request));
  TC_TRY(settings, api::settings_of(request, *compilation.program));
  settings.target = FLAGS_target;
  settings.threads = static_cast<int>(FLAGS_threads);
  TC_TRY_VOID(run_to(settings, compilation, pass));
  TC_TRY(text, compile::dump(settings, compilation, pass));
  if (!FLAGS_output.empty()) return replace_file(FLAGS_output, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace tc::cli
