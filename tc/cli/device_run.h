#pragma once

#include <string>

#include "tc/api/tc.h"
#include "tc/cli/arguments.h"

namespace tc::cli {

/// Runs a kernel of a GPU on copies of the arguments in its memory, `repeat` times, the first for the results, which it
/// copies back. What to print of the time, as the GPU's own clock has it. Errors: the run's; too little memory there.
Result<std::string> run_on_device(const api::CompiledKernel& kernel, Arguments& arguments, uint32_t repeat);

}  // namespace tc::cli
