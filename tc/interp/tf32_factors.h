#pragma once

#include "tc/ir/program.h"

namespace tc::interp {

/// A function of its own, of float32: its argument, of which a backend may have lost what TF32 does not hold.
inline constexpr const char* kAboutTf32 = "about_tf32";

/// The program whose bounds (run_bounded) are those of kernels that the option `tf32` is given: both factors of a
/// product of float32 may be rounded to TF32, or cut to it.
ir::Program with_tf32_factors(ir::Program program);

}  // namespace tc::interp
