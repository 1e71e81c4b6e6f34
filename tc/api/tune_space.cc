#include "tc/api/tune_space.h"

#include <algorithm>

#include "tc/gpu/tunables.h"
#include "tc/support/check.h"
#include "tc/support/result.h"

namespace tc::api {
namespace {

using tune::Parameter;

/// The extents of a statement's loops, of the largest statement.
std::vector<int64_t> extents_of(const ir::Program& specialised) {
  std::vector<int64_t> result;
  double most = 0;
  for (const ir::Statement& statement : specialised.statements) {
    std::vector<int64_t> extents;
    double instances = 1;
    for (const ir::Index& index : statement.indices) {
      const int64_t* begin = Halide::Internal::as_const_int(index.begin);
      const int64_t* end = Halide::Internal::as_const_int(index.end);
      extents.push_back(begin && end ? *end - *begin : 1);
      instances *= static_cast<double>(std::max<int64_t>(extents.back(), 1));
    }
    if (instances > most) most = instances, result = extents;
  }
  return result;
}

/// "" and the powers of two from `first` that an extent has room for, at most `last`.
std::vector<std::string> sizes_up_to(int64_t extent, int64_t first, int64_t last) {
  std::vector<std::string> values = {""};
  for (int64_t size = first; size <= std::min(extent, last); size *= 2) values.push_back(std::to_string(size));
  return values;
}

TuneSpace cpu_space(const TuneSetup& setup) {
  TuneSpace result;
  result.space.base = options::to_text(options::CpuOptions{
      .strict = setup.problem.program.request.options.strict,
      .check_bounds = setup.problem.program.request.options.check_bounds,
  });
  std::vector<Parameter>& parameters = result.space.parameters;
  const std::vector<int64_t> extents = extents_of(*setup.compilation.specialised);
  for (size_t d = 0; d < std::min<size_t>(extents.size(), 3); ++d) {
    parameters.push_back({"tile", sizes_up_to(extents[d], 1, 256)});
  }
  parameters.push_back({"vector_width", {"", "4", "8", "16", "32"}});
  parameters.push_back({"unroll", {"", "1", "2", "3", "4", "6", "8"}});
  parameters.push_back({"parallel", {"", "true", "false"}});
  parameters.push_back({"promote", {"", "false"}});
  parameters.push_back({"scheduler.fusion_strategy", {"", "MAX", "PRESERVE_3_COINCIDENT", "MIN"}});
  parameters.push_back({"scheduler.allow_skewing", {"", "true"}});
  result.infeasible = [](const std::string& text) -> std::string {
    const Result<options::CpuOptions> options = options::cpu_options_from_text(text);
    if (!options) return options.error().diagnostics().at(0).message;
    const bool is_shaped = !options->tile.empty() || options->vector_width || options->unroll || options->promote;
    if (options->scheduler.allow_skewing && is_shaped) {
      return "a skewed schedule takes neither tiles, vectors, unrolling nor promotion";
    }
    return {};
  };
  // One step away from what the compiler chooses.
  const tune::Candidate chosen = first_candidate(result.space);
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, std::string>>{{"unroll", "4"},
                                                        {"unroll", "2"},
                                                        {"promote", "false"},
                                                        {"scheduler.fusion_strategy", "MIN"},
                                                        {"scheduler.fusion_strategy", "MAX"},
                                                        {"vector_width", "8"},
                                                        {"parallel", "false"},
                                                        {"unroll", "1"}}) {
    for (size_t p = 0; p < parameters.size(); ++p) {
      const auto at = std::ranges::find(parameters[p].values, value);
      if (parameters[p].field != field || at == parameters[p].values.end()) continue;
      tune::Candidate step = chosen;
      step[p] = static_cast<uint16_t>(at - parameters[p].values.begin());
      if (const Result<std::string> text = text_of(result.space, step)) result.seeds.push_back(*text);
    }
  }
  return result;
}

/// A parameter whose values are those of a field in some options.
Parameter parameter_of(const std::string& field, const std::vector<options::MappingOptions>& examples) {
  Parameter parameter{field, {""}};
  for (const options::MappingOptions& example : examples) {
    const Result<std::string> value = tune::value_in(Backend::kCuda, options::to_text(example), field);
    TC_CHECK(value, "{}", value.error().to_string());
    if (std::ranges::find(parameter.values, *value) == parameter.values.end()) parameter.values.push_back(*value);
  }
  return parameter;
}

/// A field as the message has it: schedulers are tuned by their fusion alone.
std::string path_of(const std::string& field) {
  return field.ends_with("schedule_options") ? field + ".fusion_strategy" : field;
}

Result<TuneSpace> gpu_space(const TuneSetup& setup, size_t count) {
  const options::MappingOptions base{.strict = setup.problem.program.request.mapping.strict};
  const auto program = setup.compilation.specialised;
  const gpu::Device& device = setup.settings.gpu.device;
  TuneSpace result;
  result.space.backend = setup.settings.backend;
  result.space.base = options::to_text(base);
  TC_TRY(tunables, gpu::tunables(*program, base, device));
  for (const gpu::Tunable& tunable : tunables) {
    std::vector<options::MappingOptions> examples;
    for (const auto& value : tunable.values) examples.push_back(gpu::with(base, tunable.field, value));
    result.space.parameters.push_back(parameter_of(path_of(tunable.field), examples));
  }
  result.infeasible = [program, device](const std::string& text) -> std::string {
    const Result<options::MappingOptions> options = options::mapping_options_from_text(text);
    if (!options) return options.error().diagnostics().at(0).message;
    const Result<gpu::Mapping> mapping = gpu::map_program(*program, *options, device);
    return mapping ? "" : mapping.error().diagnostics().at(0).message;
  };
  TC_TRY(top, gpu::top(*program, base, device, count));
  for (const gpu::Candidate& candidate : top) result.seeds.push_back(options::to_text(candidate.options));
  return result;
}

}  // namespace

Result<TuneSpace> space_of(const TuneSetup& setup, size_t count) {
  Result<TuneSpace> result = setup.settings.backend == Backend::kCpu ? cpu_space(setup) : gpu_space(setup, count);
  if (result && result->seeds.size() > count) result->seeds.resize(count);
  return result;
}

}  // namespace tc::api
