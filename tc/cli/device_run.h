#pragma once

#include <string>
#include <vector>

#include "tc/api/tc.h"
#include "tc/cli/arguments.h"

namespace tc::cli {

/// Times by the GPU's own clock.
struct DeviceTimes {
  std::string device;  ///< the GPU's name
  double first_us = 0;
  std::vector<double> runs_us;  ///< of the runs behind the first; none if there is one
};

/// Runs a kernel of a GPU on copies of the arguments in its memory, once for the results, which it copies back, and if
/// `repeat` is more than one so many times again. Errors: the run's; too little memory there.
Result<DeviceTimes> time_on_device(const api::CompiledKernel& kernel, Arguments& arguments, uint32_t repeat);

/// The same, and what to print of the times.
Result<std::string> run_on_device(const api::CompiledKernel& kernel, Arguments& arguments, uint32_t repeat);

}  // namespace tc::cli
