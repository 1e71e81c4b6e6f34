#pragma once

#include "tc/cpu/value_ops.h"

namespace tc::cpu {

/// Between numbers of any types but the 16-bit floats. To an integer: toward zero; out of range to the nearest end, a
/// NaN to 0. To float: to nearest, ties to even. To bool: whether it differs from zero.
llvm::Value* convert(Emit& e, llvm::Value* x, Halide::Type from, Halide::Type to);

/// float32 from 16 bits in memory.
llvm::Value* from_half(Emit& e, llvm::Value* bits);
llvm::Value* from_bfloat(Emit& e, llvm::Value* bits);
/// 16 bits from float32 or float64: one rounding to nearest, ties to even; a NaN stays one.
llvm::Value* to_half(Emit& e, llvm::Value* x);
llvm::Value* to_bfloat(Emit& e, llvm::Value* x);

}  // namespace tc::cpu
