#pragma once

#include <Halide.h>

#include <functional>
#include <optional>

namespace tc::gpu {

/// What a caller knows of a call: a read of a tensor, say. None: it is an intrinsic, and counts as one.
using InstructionsOfCall = std::function<std::optional<double>(const Halide::Internal::Call*)>;

/// About how many instructions a value takes, its operations counted as those of float32. Of calls that `of_call` knows
/// the arguments do not count. What constants alone decide takes none.
double instructions_of(const Halide::Expr& value, const InstructionsOfCall& of_call);

}  // namespace tc::gpu
