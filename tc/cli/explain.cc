#include <cstdio>

#include "tc/api/explain.h"
#include "tc/api/explain_of.h"
#include "tc/api/request.h"
#include "tc/cache/cache.h"
#include "tc/cli/backend.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/history.h"
#include "tc/cli/job.h"
#include "tc/compile/cached.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

using Renderer = std::string (*)(const api::Explanation&);

Result<Renderer> renderer_of_flags() {
  std::string format = FLAGS_format;
  if (format.empty()) {
    format = FLAGS_output.ends_with(".html") ? "html" : FLAGS_output.ends_with(".json") ? "json" : "text";
  }
  if (format == "text") return &api::to_text;
  if (format == "json") return &api::to_json;
  if (format == "html") return &api::to_html;
  return fail("there is no format '{}'; there are text, json and html", format);
}

Result<api::Backend> compiled_backend() {
  TC_TRY(backend, backend_of_flags());
  if (!backend) return fail("the backend interp compiles nothing that could be explained");
  if (!FLAGS_cache.empty() && *backend == api::Backend::kSimulator) {
    return fail("'--cache' is for the backends cpu and cuda");
  }
  if (!FLAGS_cache.empty() && !FLAGS_history.empty()) return fail("'--cache' and '--history' exclude each other");
  return *backend;
}

/// With what the file of --cache knows, if there is one. Measurements count that are of this machine's device, or of
/// any where it has none.
Result<api::Explanation> explained(const compile::Settings& settings, const compile::Compilation& compilation) {
  if (FLAGS_cache.empty()) return api::explain(settings, compilation);
  TC_TRY(file, cache::Cache::open(FLAGS_cache, {.mode = cache::Mode::kReadOnly}));
  const std::string device = compile::device_name(settings).value_or("");
  return api::explain_with(*file, settings, compilation, device);
}

}  // namespace

Result<void> run_explain(const std::vector<std::string>& files) {
  if (!FLAGS_output.empty() && is_same_file(FLAGS_output, files[0])) {
    return fail("'--output={}' would replace the program that is read", FLAGS_output);
  }
  TC_TRY(render, renderer_of_flags());
  TC_TRY(backend, compiled_backend());
  TC_TRY(compilation, open_def(files[0]));
  TC_TRY(request, request_of_flags(*compilation.program, backend));
  TC_TRY(settings, api::settings_of(request, *compilation.program));
  TC_TRY_VOID(check_sizes(settings, *compilation.program));
  TC_TRY(processor, processor_of_flags(settings.backend));
  settings.target = processor;
  settings.threads = static_cast<int>(FLAGS_threads);
  TC_TRY(gpu, compile::target_of_arch(FLAGS_arch));
  settings.gpu = gpu;
  TC_TRY(explanation, explained(settings, compilation));
  if (!FLAGS_history.empty()) {
    std::string problem = request.entry;
    for (const std::string& given : {FLAGS_sizes, FLAGS_scalars}) problem += given.empty() ? "" : " " + given;
    TC_TRY(measurements, read_history(FLAGS_history, problem));
    explanation.measurements = std::move(measurements);
  }
  const std::string text = render(explanation);
  if (!FLAGS_output.empty()) return replace_file(FLAGS_output, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace tc::cli
