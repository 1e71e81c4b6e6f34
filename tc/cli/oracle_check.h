#pragma once

#include <string>

#include "tc/cli/arguments.h"
#include "tc/interp/interpreter.h"

/// Results against the oracle's.
namespace tc::cli {

/// The oracle's view of the arguments, before they are changed by a run.
interp::Environment environment_of(const Arguments& arguments, const ir::Program& specialised);

/// Compares the results with the oracle's for an environment; what to print of it, a line for each result. Errors: a
/// mismatch, with the element where it is largest. `tf32`: products of float32 may have taken operands as TF32.
Result<std::string> check_results(const ir::Program& specialised, const interp::Environment& environment,
                                  const Arguments& arguments, bool tf32 = false);

}  // namespace tc::cli
