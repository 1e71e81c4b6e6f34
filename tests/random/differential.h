#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tc/interp/interpreter.h"
#include "tc/options/options.h"
#include "tests/random/generator.h"

/// Random programs on a backend and on the oracle.
namespace tc::testing {

/// Runs a compiled program on inputs, in-outs, scalars and initial results; gives results and in-outs.
using Runner = std::function<Result<interp::Environment>(const interp::Environment& data)>;

struct Backend {
  /// Compiles a program for its sizes. The specialised Program says what the data must look like.
  std::function<Result<Runner>(const RandomProgram& source, const ir::Program& program)> compile;
  std::string description = {};  ///< for the reports: lines of text
  /// Data as the backend's tensors hold them, if elements share addresses there; absent: as they are.
  std::function<interp::Environment(const ir::Program& program, interp::Environment data)> held = nullptr;
};

struct Outcome {
  enum class Verdict {
    kAgrees,
    kRejected,  ///< the front end refuses the program: a fault of the generator
    kFails,     ///< the backend, or the oracle, gives an error
    kDiffers,
  };
  Verdict verdict = Verdict::kAgrees;
  std::string report;  ///< unless they agree: source, sizes, seed, options, kind of data, and what is wrong
  int64_t elements = 0;
  int64_t undecidable = 0;
};

/// One program on three kinds of data.
Outcome run_program(const RandomProgram& source, const Backend& backend);

/// The program of a seed. One that fails or differs is reported as small as dropping statements makes it.
Outcome run_one(uint64_t seed, const Backend& backend);

/// Programs as small as dropping statements makes them, for which run_program() gives the same verdict.
RandomProgram shrink(const RandomProgram& source, const Backend& backend, Outcome::Verdict verdict);

/// The CPU. Options that are absent are the compiler's own choices; with a seed for strides, some of the caller's
/// tensors are not dense.
Backend cpu_backend(const options::CpuOptions& options = {}, std::optional<uint64_t> strides = std::nullopt,
                    const std::string& target = "host");
/// The CPU, with code that LLVM optimises as for another processor and then translates for this one: what it decides
/// for AVX-512, say, runs on every machine. Errors of the backend: a target that is none.
Backend cpu_backend_optimised_for(const std::string& target, const options::CpuOptions& options = {});
options::CpuOptions random_cpu_options(uint64_t seed);

}  // namespace tc::testing
