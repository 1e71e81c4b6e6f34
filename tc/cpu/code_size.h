#pragma once

#include <Halide.h>

namespace tc::cpu {

/// The expressions and statements that a Stmt has once its loops to be unrolled are: what later passes take time for.
double unrolled_size(const Halide::Internal::Stmt& body);

}  // namespace tc::cpu
