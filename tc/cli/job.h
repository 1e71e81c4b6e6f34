#pragma once

#include <map>
#include <string>

#include "tc/api/tc.h"
#include "tc/compile/pipeline.h"
#include "tc/lang/instantiate.h"

/// What run and emit have in common: a compilation as the flags ask for it.
namespace tc::cli {

/// A def of the file, as a symbolic Program.
/// Errors: the file's, no such entry (with the nearest), or several defs and no --entry.
Result<compile::Compilation> open_def(const std::string& path);

/// The types of --types, by variable. Errors: as parse_assignments; no such type.
Result<lang::TypeArguments> types_of_flags();

/// A request with what the flags say, but for tensors: entry, sizes, scalars, options, budget, verify.
/// Errors: a flag's value; a flag that the backend has no use for.
Result<api::Request> request_of_flags(const std::string& entry, const std::vector<std::string>& sizes,
                                      api::Backend backend);
Result<api::Request> request_of_flags(const ir::Program& program, api::Backend backend);

/// Holds if every size has a value, or a tensor that is given determines it. The error names the flag for all others.
Result<void> check_sizes(const compile::Settings& settings, const ir::Program& program);
/// That error, for sizes of a def.
Error no_sizes(const std::string& entry, const std::vector<std::string>& sizes);

/// A number as a Scalar: an integer if it is written as one. Errors quote the name.
Result<api::Scalar> parse_scalar(const std::string& name, const std::string& text);

/// Runs the pipeline as far as --stop_after says, or `last`. With --time_passes, prints how long each pass took to
/// standard error. Errors: the passes'; a size without a value.
Result<void> run_to(const compile::Settings& settings, compile::Compilation& compilation, const std::string& last);

}  // namespace tc::cli
