#pragma once

#include <Halide.h>

#include <span>

#include "tc/cpu/object.h"

namespace tc::cpu {

/// Tells Halide's code generator what it needs to know of the loads and stores of a function:
///   - how the arguments are aligned, by a Parameter at each access. Without one they pass for aligned to a vector.
///   - nothing of accesses at constant places that it cannot describe (finish_accesses.cc).
///
/// After all other passes: to the simplifier, a load with a Parameter has the same value before and after a store.
Halide::Internal::Stmt finish_accesses(const Halide::Internal::Stmt& stmt, std::span<const KernelArgument> arguments);

}  // namespace tc::cpu
