#pragma once

#include <Halide.h>

#include <optional>
#include <string>
#include <vector>

#include "tc/cpu/object.h"

namespace tc::cpu {

/// The functions that a kernel becomes: the bodies of its parallel loops, innermost first, and last the kernel.
struct LoweredKernel {
  std::vector<Halide::Internal::LoweredFunc> functions;
};

/// A step of the lowering, and why it is right for our Stmts.
struct LoweringStep {
  const char* name;
  const char* reason;
};
/// All of them in order. docs/design/0010-checks-behind-the-proof.md has the same list.
std::vector<LoweringStep> lowering_steps();

/// Takes a kernel's Stmt to what the code generator accepts: serial loops only, vectors explicit, values opaque to
/// Halide (opaque_values.h), parallel loops outlined into functions of their own. Asks `stop` between steps; none if it
/// says yes.
std::optional<LoweredKernel> lower_kernel(const Kernel& kernel, const Halide::Target& target, bool strict,
                                          const Stop& stop = nullptr);

}  // namespace tc::cpu
