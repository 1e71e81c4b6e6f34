#include <cstdio>

#include "tc/api/request.h"
#include "tc/cli/backend.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

/// What is to be printed: a pass of a backend, and which of its texts.
struct Wanted {
  api::Backend backend = api::Backend::kCpu;
  std::string pass;
  bool ptx = false;  ///< of the pass that makes machine code, what it makes on the way
};

Result<Wanted> pass_of_flag() {
  if (!FLAGS_stage.empty()) return fail("'--stage' and '--stop_after' exclude each other");
  TC_TRY(chosen, backend_of_flags());
  Wanted wanted{.backend = chosen.value_or(api::Backend::kCpu), .pass = FLAGS_stop_after};
  // A pass that only a GPU has needs no --backend.
  const bool is_gpus = compile::find_pass(FLAGS_stop_after, api::Backend::kCuda).has_value();
  if (!compile::find_pass(FLAGS_stop_after, wanted.backend) && is_gpus) wanted.backend = api::Backend::kCuda;
  TC_TRY_VOID(compile::find_pass(FLAGS_stop_after, wanted.backend));
  return wanted;
}

Result<Wanted> wanted_of_flags() {
  if (!FLAGS_stop_after.empty()) return pass_of_flag();
  using api::Backend;
  // A Program is shown for concrete sizes as soon as there is a value for anything.
  const bool concrete = !FLAGS_sizes.empty() || !FLAGS_scalars.empty();
  const std::vector<std::pair<std::string, Wanted>> stages = {
      {"ast", {Backend::kCpu, "analyse"}},       {"program", {Backend::kCpu, concrete ? "specialise" : "program"}},
      {"schedule", {Backend::kCpu, "schedule"}}, {"stmt", {Backend::kCpu, "stmt"}},
      {"object", {Backend::kCpu, "object"}},     {"tile", {Backend::kCuda, "tile"}},
      {"cuda", {Backend::kCuda, "cuda"}},        {"ptx", {Backend::kCuda, "cubin", true}},
      {"cubin", {Backend::kCuda, "cubin"}}};
  std::vector<std::string> names;
  for (const auto& [name, wanted] : stages) {
    if (name == FLAGS_stage) return wanted;
    names.push_back(name);
  }
  if (FLAGS_stage.empty()) return fail("'--stage' is missing; the stages are {}", fmt::join(names, ", "));
  const std::string meant = nearest(FLAGS_stage, names);
  if (!meant.empty()) return fail("there is no stage '{}'; did you mean '{}'?", FLAGS_stage, meant);
  return fail("there is no stage '{}'; the stages are {}", FLAGS_stage, fmt::join(names, ", "));
}

}  // namespace

Result<void> run_emit(const std::vector<std::string>& files) {
  TC_TRY(compilation, open_def(files[0]));
  TC_TRY(wanted, wanted_of_flags());
  TC_TRY(request, request_of_flags(*compilation.program, wanted.backend));
  TC_TRY(settings, api::settings_of(request, *compilation.program));
  settings.target = FLAGS_target;
  settings.threads = static_cast<int>(FLAGS_threads);
  TC_TRY(gpu, compile::target_of_arch(FLAGS_arch));
  settings.gpu = gpu;
  TC_TRY_VOID(run_to(settings, compilation, wanted.pass));
  TC_TRY(text, wanted.ptx ? Result<std::string>(compilation.compiled->ptx)
                          : compile::dump(settings, compilation, wanted.pass));
  if (!FLAGS_output.empty()) return replace_file(FLAGS_output, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace tc::cli
