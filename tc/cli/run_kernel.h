#pragma once

#include <string>

#include "tc/cli/arguments.h"
#include "tc/compile/pipeline.h"

/// What `tensorc run` does with a kernel, wherever it comes from.
namespace tc::cli {

/// A result that would replace a file that it was computed from is refused.
Result<void> check_output_files(const InputFiles& files, const Arguments& arguments);

/// Runs a kernel as often as --repeat says; the results are those of the first run. The line about the time.
Result<std::string> run_kernel(const api::CompiledKernel& kernel, api::Backend backend, Arguments& arguments);

/// A line for each result.
std::string result_lines(const Arguments& arguments);

/// Writes the results to --output_dir, unless that is empty, and prints a report; neither, if either fails.
Result<void> write_results(const Arguments& arguments, const std::string& report);

/// A kernel by way of the cache of --cache, and a line about where it comes from.
struct CachedKernel {
  api::CompiledKernel kernel;
  std::string line;
};
Result<CachedKernel> kernel_of_cache(const compile::Settings& settings, const compile::Compilation& def,
                                     const api::Request& request);

/// `tensorc run --production`: of the text nothing is used but which defs it has; all else comes from the cache.
Result<void> run_production(const std::string& path, api::Backend backend);

}  // namespace tc::cli
