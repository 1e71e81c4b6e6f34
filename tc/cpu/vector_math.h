#pragma once

#include <span>
#include <string>

#include "tc/cpu/emit.h"

namespace tc::cpu {

/// Instructions of a float32 function that is worth computing in place, on vectors or scalars; null for any other.
/// NaN, infinities, signed zeros and subnormals are right. Accuracy: math.h.
llvm::Value* emit_vector_math(Emit& e, const std::string& name, std::span<llvm::Value* const> x);

}  // namespace tc::cpu
