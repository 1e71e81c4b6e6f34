#pragma once

#include "tc/cpu/value_ops.h"

namespace tc::cpu {

/// Between numbers of any types but the floats of 8 and 16 bits. To an integer from a float: toward zero;
/// out of range to the nearest end, a NaN to 0; from an integer: the low bits. To float: to nearest, ties to even. To
/// bool: whether it differs from zero.
llvm::Value* convert(Emit& e, llvm::Value* x, Halide::Type from, Halide::Type to);

/// float32 from 16 bits in memory.
llvm::Value* from_half(Emit& e, llvm::Value* bits);
llvm::Value* from_bfloat(Emit& e, llvm::Value* bits);
/// 16 bits from float32 or float64: one rounding to nearest, ties to even; a NaN stays one.
llvm::Value* to_half(Emit& e, llvm::Value* x);
llvm::Value* to_bfloat(Emit& e, llvm::Value* x);

/// An 8-bit float: the bits of its fraction, and how far its exponent is biased.
struct Float8 {
  int fraction_bits;
  int bias;
  int largest_finite;  ///< its bits; above them are NaNs, and infinities in e5m2
};
inline constexpr Float8 kE4M3 = {3, 7, 0x7e};
inline constexpr Float8 kE5M2 = {2, 15, 0x7b};

/// float32 from 8 bits in memory.
llvm::Value* from_float8(Emit& e, llvm::Value* bits, const Float8& format);
/// 8 bits from float32 or float64: one rounding to nearest, ties to even. What is too large, infinities too, becomes
/// the largest finite number; a NaN becomes 0x7f.
llvm::Value* to_float8(Emit& e, llvm::Value* x, const Float8& format);

}  // namespace tc::cpu
