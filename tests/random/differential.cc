#include "tests/random/differential.h"

#include <fmt/format.h>

#include <exception>

#include "tc/interp/compare.h"
#include "tests/common/program.h"

namespace tc::testing {
namespace {

using Verdict = Outcome::Verdict;

const char* name_of(DataKind kind) {
  switch (kind) {
    case DataKind::kSmallIntegers:
      return "small integers";
    case DataKind::kReals:
      return "reals";
    case DataKind::kSpecials:
      break;
  }
  return "reals with infinities and NaNs";
}

Outcome failed(Verdict verdict, const RandomProgram& source, const Backend& backend, const std::string& what) {
  return {verdict, source.describe() + backend.description + what + "\n", 0, 0};
}

/// Compares one run; nothing if it agrees.
Result<std::string> run_data(const ir::Program& program, const Runner& runner, const interp::Environment& data,
                             Outcome& outcome) {
  TC_TRY(oracle, interp::run_bounded(program, data));
  TC_TRY(results, runner(data));
  std::string differences;
  for (const interp::Comparison& comparison : interp::compare(results, oracle)) {
    outcome.elements += comparison.elements;
    outcome.undecidable += comparison.undecidable;
    if (!comparison.agrees) differences += comparison.sentence + "\n";
  }
  return differences;
}

Outcome run_accepted(const RandomProgram& source, const ir::Program& program, const Backend& backend) {
  Result<Runner> runner = backend.compile(source, program);
  if (!runner) return failed(Verdict::kFails, source, backend, runner.error().to_string());
  Outcome outcome;
  for (DataKind kind : {DataKind::kSmallIntegers, DataKind::kReals, DataKind::kSpecials}) {
    interp::Environment data = generate_data(source, program, kind, source.seed);
    if (backend.held) data = backend.held(program, std::move(data));
    const Result<std::string> differences = run_data(program, *runner, data, outcome);
    if (!differences) return failed(Verdict::kFails, source, backend, differences.error().to_string());
    if (!differences->empty()) {
      return failed(Verdict::kDiffers, source, backend, fmt::format("data: {}\n{}", name_of(kind), *differences));
    }
  }
  return outcome;
}

/// With values for integer scalars in guards that bound a read (C11), which the generator takes for values of a run.
RandomProgram with_compiled_in(RandomProgram source) {
  const Result<ir::Program> program = try_program(source.source());
  if (!program) return source;
  for (const ir::Scalar& scalar : program->scalars) {
    if (scalar.specialised) source.compiled_in.emplace(scalar.name, 2);
  }
  return source;
}

}  // namespace

Outcome run_program(const RandomProgram& from, const Backend& backend) {
  try {
    const RandomProgram source = with_compiled_in(from);
    const Result<ir::Program> program = try_specialised(source.source(), source.sizes, source.compiled_in);
    if (!program) return failed(Verdict::kRejected, source, backend, program.error().to_string());
    return run_accepted(source, *program, backend);
  } catch (const std::exception& fault) {
    return failed(Verdict::kFails, from, backend, fault.what());
  }
}

RandomProgram shrink(const RandomProgram& source, const Backend& backend, Verdict verdict) {
  RandomProgram smallest = source;
  for (size_t n = smallest.statements.size(); n-- > 0 && smallest.statements.size() > 1;) {
    RandomProgram candidate = smallest;
    candidate.statements.erase(candidate.statements.begin() + static_cast<std::ptrdiff_t>(n));
    candidate.targets.erase(candidate.targets.begin() + static_cast<std::ptrdiff_t>(n));
    if (run_program(candidate, backend).verdict == verdict) smallest = std::move(candidate);
  }
  return smallest;
}

Outcome run_one(uint64_t seed, const Backend& backend) {
  const RandomProgram source = generate_program(seed);
  Outcome outcome = run_program(source, backend);
  if (outcome.verdict == Verdict::kFails || outcome.verdict == Verdict::kDiffers) {
    return run_program(shrink(source, backend, outcome.verdict), backend);
  }
  return outcome;
}

}  // namespace tc::testing
