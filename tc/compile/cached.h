#pragma once

#include <string>

#include "tc/cache/entry.h"
#include "tc/compile/pipeline.h"
#include "tc/ir/specialise.h"

/// Between compilations and the cache: what a compilation is called there, and what is kept of it.
namespace tc::compile {

/// The problem that the settings pose, for the symbolic Program of this digest.
/// Errors: as ir::bind(); a target that is none.
Result<cache::Problem> problem_of(const Settings& settings, const ir::Program& program, const std::string& digest);
/// The same for a Program that may have no statements, as an interface gives it.
Result<cache::Problem> problem_of(const Settings& settings, const ir::Program& program, const std::string& digest,
                                  bool has_run_time_checks);

/// The options of the settings' backend as a key has them: without `strict`, `check_bounds`, `tf32` and
/// `fast_accumulation`, which belong to the problem. "" if all is left to the compiler.
std::string options_text(const Settings& settings);

/// The settings with other options, in a key's form; those four stay. Errors: not such a text.
Result<Settings> with_options(Settings settings, const std::string& text);

/// What the compiler's choices depend on beyond the target: "132 processors, 232448 bytes of shared memory",
/// "8 threads".
std::string machine_text(const Settings& settings);

/// The device that the settings are for, as measurements name it: the GPU's name by its driver, the CPU's by itself.
Result<std::string> device_name(const Settings& settings);

/// The key of what this compiler makes for a problem and the settings' options.
cache::Key key_of(const Settings& settings, const cache::Problem& problem);

/// Of a compilation that has run all passes of the CPU or, up to cubin, of CUDA. `keep_text` keeps the CUDA text.
cache::Entry entry_of(const Settings& settings, const Compilation& compilation, bool keep_text = false);

/// Proves the schedule of an entry again: runs the pipeline with its options and all verifiers, up to where text for
/// LLVM or NVRTC stands, and compares that. True if it is the same text: then the entry's code is that of a schedule
/// which this compiler has proved legal. `compilation` has its Program. Errors: what the pipeline refuses.
Result<bool> reprove(const Settings& settings, const Compilation& compilation, const cache::Entry& entry);

}  // namespace tc::compile
