#pragma once

#include <Halide.h>

#include <string>
#include <vector>

#include "tc/cpu/object.h"

namespace tc::cpu {

/// The functions that a kernel becomes: the bodies of its parallel loops, innermost first, and last the kernel.
struct LoweredKernel {
  std::vector<Halide::Internal::LoweredFunc> functions;
};

/// Takes a kernel's Stmt to what the code generator accepts: serial loops only, vectors explicit, values opaque to
/// Halide (opaque_values.h), parallel loops outlined into functions of their own.
LoweredKernel lower_kernel(const Kernel& kernel, const Halide::Target& target, bool strict);

}  // namespace tc::cpu
