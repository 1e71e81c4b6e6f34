#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tc/compile/pipeline.h"

/// What a compilation shows of itself.
namespace tc::api {

using options::Backend;

/// A text to show: what a pass of a backend made.
struct Stage {
  std::string name;
  Backend backend = Backend::kCpu;
  std::string pass;
  bool ptx = false;          ///< of the pass that makes machine code, what it makes on the way
  bool certificate = false;  ///< of the pass that makes tile programs, what the verifiers prove of its kernels
};

/// "ast, program, schedule, ...".
std::string stage_names();

/// By name. `concrete`: a Program is shown for the sizes at hand, not for all. The schedule is that of `backend`.
/// Errors: no such stage, with the nearest.
Result<Stage> find_stage(std::string_view name, bool concrete, Backend backend = Backend::kCpu);

/// Its text, of a compilation that has run its pass.
Result<std::string> text_of(const Stage& stage, const compile::Settings& settings,
                            const compile::Compilation& compilation);

}  // namespace tc::api
