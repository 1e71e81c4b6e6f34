#pragma once

#include <string>

namespace tc::gpu {

/// Instructions that a call of an intrinsic takes on float32, on the way that most values go: as CUDA 13.0 compiles
/// them for sm_90, counted in machine code. A choice counts as a call, too.
double instructions_of_function(const std::string& name);

/// Of a division of float32, likewise.
inline constexpr double kDivisionInstructions = 10;

}  // namespace tc::gpu
