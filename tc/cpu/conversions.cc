#include "tc/cpu/conversions.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>

namespace tc::cpu {
namespace {

using V = Emit::V;

V to_integer(Emit& e, V x, Halide::Type to) {
  llvm::Type* type = Emit::shaped(e.b.getIntNTy(to.bits()), x);
  auto id = to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return e.b.CreateIntrinsic(id, {type, x->getType()}, {x});
}

/// float32 from float64, rounded to odd: rounding that once more to a much shorter type is then right.
V narrow_to_odd(Emit& e, V x) {
  if (x->getType()->getScalarSizeInBits() == 32) return x;
  V nearest = e.b.CreateFPTrunc(x, Emit::shaped(e.b.getFloatTy(), x));
  V back = e.b.CreateFPExt(nearest, x->getType());
  V bits = e.as_integer(nearest);
  V is_even = e.b.CreateICmpEQ(e.b.CreateAnd(bits, e.integer(1, bits)), e.integer(0, bits));
  V is_inexact = e.b.CreateFCmpONE(back, x);
  V is_short = e.b.CreateFCmpOLT(e.absolute(back), e.absolute(x));
  V odd = e.b.CreateAdd(bits, e.select(is_short, e.integer(1, bits), e.integer(-1, bits)));
  return e.as_float(e.select(e.b.CreateAnd(is_even, is_inexact), odd, bits));
}

V widen_integers(Emit& e, V bits) { return e.b.CreateZExt(bits, Emit::shaped(e.b.getInt32Ty(), bits)); }
V narrow_integers(Emit& e, V bits) { return e.b.CreateTrunc(bits, Emit::shaped(e.b.getInt16Ty(), bits)); }

/// By integer arithmetic, for processors without the instruction.
V from_half_in_software(Emit& e, V narrow) {
  V bits = widen_integers(e, narrow);
  V sign = e.b.CreateShl(e.b.CreateAnd(bits, e.integer(0x8000, bits)), 16);
  V magnitude = e.b.CreateShl(e.b.CreateAnd(bits, e.integer(0x7fff, bits)), 13);
  // Scaling moves the exponent to its place, subnormals included; infinities and NaNs are beyond that.
  V scaled = e.as_integer(e.b.CreateFMul(e.as_float(magnitude), e.real(0x1p112, e.as_float(magnitude))));
  V special = e.b.CreateOr(magnitude, e.integer(0x7f800000, bits));
  V is_special = e.b.CreateICmpUGE(magnitude, e.integer(0x7c00 << 13, bits));
  return e.as_float(e.b.CreateOr(sign, e.select(is_special, special, scaled)));
}

V to_half_in_software(Emit& e, V x) {
  V bits = e.as_integer(x);
  V sign = e.b.CreateLShr(e.b.CreateAnd(bits, e.integer(0x80000000LL, bits)), 16);
  V magnitude = e.b.CreateAnd(bits, e.integer(0x7fffffff, bits));
  // Normal results: add half of the last place, ties to even, and drop 13 bits.
  V odd = e.b.CreateAnd(e.b.CreateLShr(magnitude, 13), e.integer(1, bits));
  V rounded = e.b.CreateAdd(e.b.CreateAdd(magnitude, odd), e.integer(0xfff - (112LL << 23), bits));
  V normal = e.b.CreateLShr(rounded, 13);
  // Subnormal results: an addition whose last place is that of float16 subnormals rounds them.
  V base = e.real(0.5, x);
  V shifted = e.b.CreateFAdd(e.as_float(magnitude), base);
  V subnormal = e.b.CreateSub(e.as_integer(shifted), e.as_integer(base));
  V result = e.select(e.b.CreateICmpULT(magnitude, e.integer(113LL << 23, bits)), subnormal, normal);
  result = e.select(e.b.CreateICmpUGE(magnitude, e.integer(0x477ff000, bits)), e.integer(0x7c00, bits), result);
  result = e.select(e.b.CreateICmpUGT(magnitude, e.integer(0x7f800000, bits)), e.integer(0x7e00, bits), result);
  return narrow_integers(e, e.b.CreateOr(sign, result));
}

V narrow_to_bytes(Emit& e, V bits) { return e.b.CreateTrunc(bits, Emit::shaped(e.b.getInt8Ty(), bits)); }

V pad_to(Emit& e, V x, int lanes) {
  std::vector<int> mask(lanes);
  for (int i = 0; i < lanes; i++) mask[i] = i < Emit::lanes(x) ? i : 0;
  return e.b.CreateShuffleVector(x, mask);
}

/// Runs `f`, which takes 8 lanes, on any number of them.
template <typename Function>
V in_eights(Emit& e, V x, Function&& f) {
  bool is_vector = x->getType()->isVectorTy();
  if (!is_vector) x = e.b.CreateVectorSplat(1, x);
  int lanes = Emit::lanes(x);
  int padded = (lanes + 7) / 8 * 8;
  V result = e.in_pieces(lanes == padded ? x : pad_to(e, x, padded), 8, f);
  return is_vector ? e.slice(result, 0, lanes) : e.b.CreateExtractElement(result, uint64_t{0});
}

}  // namespace

V convert(Emit& e, V x, Halide::Type from, Halide::Type to) {
  llvm::IRBuilder<>& b = e.b;
  if (to.is_float()) {
    llvm::Type* type = Emit::shaped(to.bits() == 64 ? b.getDoubleTy() : b.getFloatTy(), x);
    if (from.is_float()) return b.CreateFPCast(x, type);
    return from.is_int() ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  }
  if (to.is_bool()) return b.CreateFCmpUNE(x, e.real(0, x));
  if (!from.is_float()) return b.CreateIntCast(x, Emit::shaped(b.getIntNTy(to.bits()), x), from.is_int());
  return to_integer(e, x, to);
}

V from_half(Emit& e, V bits) {
  if (!e.target.has_f16c) return from_half_in_software(e, bits);
  return in_eights(e, bits, [&](V piece) {
    V halves = e.b.CreateBitCast(piece, Emit::shaped(e.b.getHalfTy(), piece));
    return e.b.CreateFPExt(halves, Emit::shaped(e.b.getFloatTy(), piece));
  });
}

V from_bfloat(Emit& e, V bits) { return e.as_float(e.b.CreateShl(widen_integers(e, bits), 16)); }

V to_half(Emit& e, V x) {
  x = narrow_to_odd(e, x);
  if (!e.target.has_f16c) return to_half_in_software(e, x);
  return in_eights(e, x, [&](V piece) {
    return e.b.CreateIntrinsic(llvm::Intrinsic::x86_vcvtps2ph_256, {}, {piece, e.b.getInt32(0)});
  });
}

V from_float8(Emit& e, V narrow, const Float8& format) {
  V bits = widen_integers(e, narrow);
  V sign = e.b.CreateShl(e.b.CreateAnd(bits, e.integer(0x80, bits)), 24);
  V size = e.b.CreateAnd(bits, e.integer(0x7f, bits));
  // As for float16: scaling moves the exponent to its place, subnormals included.
  V magnitude = e.b.CreateShl(size, 23 - format.fraction_bits);
  V scale = e.real(std::ldexp(1.0, 127 - format.bias), e.as_float(magnitude));
  V scaled = e.as_integer(e.b.CreateFMul(e.as_float(magnitude), scale));
  V special = e.b.CreateOr(magnitude, e.integer(0x7f800000, bits));
  V is_special = e.b.CreateICmpUGT(size, e.integer(format.largest_finite, bits));
  return e.as_float(e.b.CreateOr(sign, e.select(is_special, special, scaled)));
}

V to_float8(Emit& e, V x, const Float8& format) {
  x = narrow_to_odd(e, x);
  const int dropped = 23 - format.fraction_bits;
  V bits = e.as_integer(x);
  V sign = e.b.CreateAnd(e.b.CreateLShr(bits, 24), e.integer(0x80, bits));
  V magnitude = e.b.CreateAnd(bits, e.integer(0x7fffffff, bits));
  // Normal results: add half of the last place, ties to even, and drop the other bits.
  V odd = e.b.CreateAnd(e.b.CreateLShr(magnitude, dropped), e.integer(1, bits));
  const int64_t half = (int64_t{1} << (dropped - 1)) - 1;
  V rounded = e.b.CreateAdd(e.b.CreateAdd(magnitude, odd), e.integer(half - (int64_t{127 - format.bias} << 23), bits));
  V normal = e.b.CreateLShr(rounded, dropped);
  // Subnormal results: an addition whose last place is that of the subnormals rounds them.
  V base = e.real(std::ldexp(1.0, 24 - format.bias - format.fraction_bits), x);
  V subnormal = e.b.CreateSub(e.as_integer(e.b.CreateFAdd(e.as_float(magnitude), base)), e.as_integer(base));
  V smallest_normal = e.integer(int64_t{128 - format.bias} << 23, bits);
  V result = e.select(e.b.CreateICmpULT(magnitude, smallest_normal), subnormal, normal);
  // Too large: compared as numbers before rounding, whose carry might pass the end of the format.
  V limit = e.integer((int64_t{127 - format.bias} << 23) + (int64_t{format.largest_finite} << dropped), bits);
  result = e.select(e.b.CreateICmpUGE(magnitude, limit), e.integer(format.largest_finite, bits), result);
  result = e.b.CreateOr(sign, result);
  return narrow_to_bytes(e, e.select(e.is_nan(x), e.integer(0x7f, bits), result));
}

V to_bfloat(Emit& e, V x) {
  x = narrow_to_odd(e, x);
  V bits = e.as_integer(x);
  V high = e.b.CreateLShr(bits, 16);
  V odd = e.b.CreateAnd(high, e.integer(1, bits));
  V rounded = e.b.CreateLShr(e.b.CreateAdd(bits, e.b.CreateAdd(odd, e.integer(0x7fff, bits))), 16);
  V quiet = e.b.CreateOr(high, e.integer(0x40, bits));
  return narrow_integers(e, e.select(e.is_nan(x), quiet, rounded));
}

}  // namespace tc::cpu
