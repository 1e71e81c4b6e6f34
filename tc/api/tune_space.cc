#include "tc/api/tune_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "tc/compile/strategy_options.h"
#include "tc/cpu/tunables.h"
#include "tc/gpu/strategy/tunables.h"
#include "tc/support/check.h"
#include "tc/support/digest.h"
#include "tc/support/result.h"
#include "tc/tile/print.h"

namespace tc::api {
namespace {

using options::CpuOptions;
using tune::Parameter;

/// "" and the powers of two from `first` that an extent has room for, at most `last`.
std::vector<std::string> sizes_up_to(int64_t extent, int64_t first, int64_t last) {
  std::vector<std::string> values = {""};
  for (int64_t size = first; size <= std::min(extent, last); size *= 2) values.push_back(std::to_string(size));
  return values;
}

/// Turns down options whose kernels are those of options before, which would only be measured again.
class Distinct {
 public:
  /// Why options with this text of what is made of them are not worth a measurement; empty if they are.
  std::string complaint(const std::string& made) {
    return digests_.insert(Digest::of(made).to_string()).second ? "" : "the same kernels as those of other options";
  }

 private:
  std::set<std::string> digests_;
};

/// What `work` says is wrong with options; nothing where a fault of ours gets in its way, which a worker will report.
template <typename Work>
std::string complaint_of(Work work) {
  try {
    return work();
  } catch (const InternalError&) {
    return {};
  }
}

/// The schedule that options lead to, as text. Errors: the compiler's.
Result<std::string> schedule_of(compile::Settings settings, compile::Compilation compilation, const CpuOptions& cpu) {
  settings.options = cpu;
  TC_TRY_VOID(compile::run_passes(settings, compilation, "schedule"));
  return compile::dump(settings, compilation, "schedule");
}

std::function<std::string(const std::string&)> cpu_infeasible(const TuneSetup& setup) {
  return [settings = setup.settings, compilation = setup.compilation,
          distinct = std::make_shared<Distinct>()](const std::string& text) -> std::string {
    const Result<CpuOptions> options = options::cpu_options_from_text(text);
    if (!options) return options.error().diagnostics().at(0).message;
    const bool is_shaped = !options->tile.empty() || options->vector_width || options->unroll || options->promote;
    if (options->scheduler.allow_skewing && is_shaped) {
      return "a skewed schedule takes neither tiles, vectors, unrolling nor promotion";
    }
    return complaint_of([&]() -> std::string {
      const Result<std::string> schedule = schedule_of(settings, compilation, *options);
      return schedule ? distinct->complaint(*schedule) : schedule.error().diagnostics().at(0).message;
    });
  };
}

/// One step away from what the compiler chooses: what it weighs by estimates that may be wrong, threads first. Of a
/// def that sums up no products, where rows are done one by one, also several at a time.
std::vector<std::string> single_steps(const tune::Space& space, const cpu::Tunables& tunables) {
  using Step = std::vector<std::pair<std::string, std::string>>;
  std::vector<Step> steps = {{{"parallel", "true"}}};
  if (tunables.register_tiles.empty()) {
    for (const char* rows : {"2", "8"}) {
      steps.push_back({{"tile", rows}, {"parallel", "true"}});
      steps.push_back({{"tile", rows}});
    }
  }
  for (const Step& step : std::vector<Step>{{{"unroll", "4"}},
                                            {{"unroll", "2"}},
                                            {{"promote", "false"}},
                                            {{"scheduler.fusion_strategy", "MIN"}},
                                            {{"scheduler.fusion_strategy", "MAX"}},
                                            {{"vector_width", "32"}},
                                            {{"vector_width", "8"}},
                                            {{"parallel", "false"}},
                                            {{"unroll", "1"}}}) {
    steps.push_back(step);
  }
  std::vector<std::string> texts;
  for (const Step& step : steps) {
    tune::Candidate candidate = first_candidate(space);
    bool exists = true;
    for (const auto& [field, value] : step) {
      // Of a tile, the outermost size.
      const auto parameter = std::ranges::find(space.parameters, field, &Parameter::field);
      exists = exists && parameter != space.parameters.end() && std::ranges::count(parameter->values, value) > 0;
      if (!exists) break;
      const auto at = std::ranges::find(parameter->values, value) - parameter->values.begin();
      candidate[static_cast<size_t>(parameter - space.parameters.begin())] = static_cast<uint16_t>(at);
    }
    const Result<std::string> text = text_of(space, candidate);
    if (exists && text) texts.push_back(*text);
  }
  return texts;
}

/// The tile's sizes, of the band and then of its register tile.
std::vector<Parameter> tile_parameters(const cpu::Tunables& tunables) {
  std::vector<Parameter> parameters;
  const auto add_value = [](Parameter& parameter, int64_t size) {
    const std::string value = std::to_string(size);
    if (std::ranges::find(parameter.values, value) == parameter.values.end()) parameter.values.push_back(value);
  };
  for (const int64_t extent : tunables.extents) {
    add_value(parameters.emplace_back(Parameter{"tile", sizes_up_to(extent, 1, 1024)}), extent);
  }
  for (size_t d = 0; d < tunables.extents.size(); ++d) {
    Parameter points{"tile", {""}};
    for (const std::vector<int64_t>& tile : tunables.register_tiles) {
      if (d < tile.size()) add_value(points, tile[d]);
    }
    if (points.values.size() > 1) parameters.push_back(std::move(points));
  }
  if (parameters.size() > options::kMaxTiles) parameters.resize(options::kMaxTiles);
  return parameters;
}

Result<TuneSpace> cpu_space(const TuneSetup& setup, size_t count) {
  const CpuOptions base{.strict = setup.problem.program.request.options.strict,
                        .check_bounds = setup.problem.program.request.options.check_bounds};
  compile::Settings settings = setup.settings;
  settings.options = base;
  compile::Compilation compilation = setup.compilation;
  TC_TRY_VOID(compile::run_passes(settings, compilation, "scop"));
  TC_TRY(strategy, compile::strategy_options(settings));
  TC_TRY(tunables, cpu::tunables(*compilation.scop, strategy));

  TuneSpace result;
  result.space.base = options::to_text(base);
  std::vector<Parameter>& parameters = result.space.parameters;
  for (const Parameter& tile : tile_parameters(tunables)) parameters.push_back(tile);
  parameters.push_back({"vector_width", {"", "4", "8", "16", "32"}});
  parameters.push_back({"unroll", {"", "1", "2", "3", "4", "6", "8"}});
  parameters.push_back({"parallel", {"", "true", "false"}});
  parameters.push_back({"promote", {"", "false"}});
  parameters.push_back({"scheduler.fusion_strategy", {"", "MAX", "PRESERVE_3_COINCIDENT", "MIN"}});
  parameters.push_back({"scheduler.allow_skewing", {"", "true"}});
  result.infeasible = cpu_infeasible(setup);
  (void)result.infeasible(result.space.base);  // nothing that makes what the compiler makes by itself

  TC_TRY(top, cpu::top(*compilation.scop, strategy, 2 * count));
  for (const cpu::Candidate& candidate : top) result.seeds.push_back(options::to_text(candidate.options));
  // Half of them, then what an estimate may be wrong about, then the others.
  const std::vector<std::string> steps = single_steps(result.space, tunables);
  result.seeds.insert(result.seeds.begin() + static_cast<std::ptrdiff_t>(std::min(count / 2, top.size())),
                      steps.begin(), steps.end());
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

/// A field as the space has it: schedulers are tuned by their fusion alone.
std::string path_of(const gpu::Tunable& tunable) {
  const std::string& field = tunable.field;
  if (!tunable.of.writes.empty()) {
    const std::string number = tunable.of.occurrence ? fmt::format(" {}", *tunable.of.occurrence) : "";
    return fmt::format("kernel[{}{}].{}", tunable.of.writes, number, field);
  }
  return field.ends_with("schedule_options") ? field + ".fusion_strategy" : field;
}

Result<TuneSpace> gpu_space(const TuneSetup& setup, size_t count) {
  const options::MappingOptions& asked = setup.problem.program.request.mapping;
  const options::MappingOptions base{.strict = asked.strict,
                                     .check_bounds = asked.check_bounds,
                                     .fast_accumulation = asked.fast_accumulation,
                                     .tf32 = asked.tf32};
  const auto program = setup.compilation.specialised;
  const gpu::Device& device = setup.settings.gpu.device;
  TuneSpace result;
  result.space.backend = setup.settings.backend;
  result.space.base = options::to_text(base);
  TC_TRY(tunables, gpu::tunables(*program, base, device));
  for (const gpu::Tunable& tunable : tunables) {
    std::vector<options::MappingOptions> examples;
    for (const auto& value : tunable.values) examples.push_back(gpu::with(base, tunable, value));
    result.space.parameters.push_back(parameter_of(path_of(tunable), examples));
  }
  result.infeasible = [program, device, distinct = std::make_shared<Distinct>()](const std::string& text) {
    return complaint_of([&]() -> std::string {
      const Result<options::MappingOptions> options = options::mapping_options_from_text(text);
      if (!options) return options.error().diagnostics().at(0).message;
      const Result<gpu::Mapping> mapping = gpu::map_program(*program, *options, device);
      if (!mapping) return mapping.error().diagnostics().at(0).message;
      return distinct->complaint(tile::to_text(mapping->program));
    });
  };
  (void)result.infeasible(result.space.base);  // nothing that makes what the compiler makes by itself
  TC_TRY(top, gpu::top(*program, base, device, count));
  for (const gpu::Candidate& candidate : top) result.seeds.push_back(options::to_text(candidate.options));
  return result;
}

}  // namespace

Result<TuneSpace> space_of(const TuneSetup& setup, size_t count) {
  return setup.settings.backend == Backend::kCpu ? cpu_space(setup, count) : gpu_space(setup, count);
}

}  // namespace tc::api
