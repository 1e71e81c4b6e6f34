#include "tc/cli/oracle_check.h"

#include <fmt/format.h>

#include "tc/api/call.h"
#include "tc/api/oracle.h"
#include "tc/interp/compare.h"
#include "tc/interp/tf32_factors.h"
#include "tc/support/result.h"

namespace tc::cli {

interp::Environment environment_of(const Arguments& arguments, const ir::Program& specialised) {
  interp::Environment environment;
  for (size_t i = 0; i < arguments.inputs.size(); ++i) {
    environment[arguments.input_names[i]] = api::to_value(arguments.inputs[i]);
  }
  for (size_t o = 0; o < arguments.outputs.size(); ++o) {
    environment[arguments.output_names[o]] = api::to_value(arguments.outputs[o]);
  }
  for (size_t s = 0; s < arguments.scalars.size(); ++s) {
    const ir::Scalar* scalar = specialised.find_scalar(arguments.scalar_names[s]);
    if (!scalar || scalar->specialised) continue;
    const ScalarType type = ir::from_halide(scalar->type);
    environment[scalar->name] = api::scalar_value(type, *api::scalar_bits(arguments.scalars[s], type));
  }
  return environment;
}

Result<std::string> check_results(const ir::Program& specialised, const interp::Environment& environment,
                                  const Arguments& arguments, bool tf32) {
  TC_TRY(oracle, interp::run_bounded(tf32 ? interp::with_tf32_factors(specialised) : specialised, environment));
  interp::Environment results;
  for (size_t o = 0; o < arguments.outputs.size(); ++o) {
    results[arguments.output_names[o]] = api::to_value(arguments.outputs[o]);
  }
  std::string report;
  std::vector<Diagnostic> mismatches;
  for (const interp::Comparison& comparison : interp::compare(results, oracle)) {
    if (comparison.agrees) {
      report += fmt::format("check: {}\n", comparison.sentence);
    } else {
      mismatches.push_back({std::nullopt, fmt::format("check: {}", comparison.sentence), {}});
    }
  }
  if (!mismatches.empty()) return tl::unexpected(Error(nullptr, std::move(mismatches)));
  return report;
}

}  // namespace tc::cli
