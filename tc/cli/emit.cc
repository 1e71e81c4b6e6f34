#include <gflags/gflags.h>

#include <cstdio>

#include "tc/api/emit.h"
#include "tc/api/request.h"
#include "tc/cli/backend.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

Result<api::Stage> pass_of_flag() {
  if (!FLAGS_stage.empty()) return fail("'--stage' and '--stop_after' exclude each other");
  TC_TRY(chosen, backend_of_flags());
  api::Stage wanted{.name = FLAGS_stop_after, .backend = chosen.value_or(api::Backend::kCpu), .pass = FLAGS_stop_after};
  // A pass that only a GPU has needs no --backend.
  const bool is_gpus = compile::find_pass(FLAGS_stop_after, api::Backend::kCuda).has_value();
  if (!compile::find_pass(FLAGS_stop_after, wanted.backend) && is_gpus) wanted.backend = api::Backend::kCuda;
  TC_TRY_VOID(compile::find_pass(FLAGS_stop_after, wanted.backend));
  return wanted;
}

Result<api::Stage> wanted_of_flags() {
  if (!FLAGS_stop_after.empty()) return pass_of_flag();
  if (FLAGS_stage.empty()) return fail("'--stage' is missing; the stages are {}", api::stage_names());
  // A Program is shown for concrete sizes as soon as there is a value for anything.
  TC_TRY(chosen, backend_of_flags());
  const bool names_backend = !gflags::GetCommandLineFlagInfoOrDie("backend").is_default;
  if (FLAGS_stage == "certificate" && names_backend && chosen.value_or(api::Backend::kCpu) == api::Backend::kCpu &&
      FLAGS_backend != "auto") {
    return fail("the stage 'certificate' is of GPU kernels; '--backend={}' has none", FLAGS_backend);
  }
  return api::find_stage(FLAGS_stage, !FLAGS_sizes.empty() || !FLAGS_scalars.empty(),
                         chosen.value_or(api::Backend::kCpu));
}

}  // namespace

Result<void> run_emit(const std::vector<std::string>& files) {
  if (!FLAGS_output.empty() && is_same_file(FLAGS_output, files[0])) {
    return fail("'--output={}' would replace the program that is read", FLAGS_output);
  }
  TC_TRY(compilation, open_def(files[0]));
  TC_TRY(wanted, wanted_of_flags());
  TC_TRY(request, request_of_flags(*compilation.program, wanted.backend));
  TC_TRY(settings, api::settings_of(request, *compilation.program));
  TC_TRY(processor, processor_of_flags(settings.backend));
  settings.target = processor;
  settings.threads = static_cast<int>(FLAGS_threads);
  TC_TRY(gpu, compile::target_of_arch(FLAGS_arch));
  settings.gpu = gpu;
  TC_TRY_VOID(run_to(settings, compilation, wanted.pass));
  TC_TRY(text, api::text_of(wanted, settings, compilation));
  if (!FLAGS_output.empty()) return replace_file(FLAGS_output, text);
  TC_TRY_VOID(check_printable(text));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace tc::cli
