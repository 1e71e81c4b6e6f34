#include "tc/cpu/vector_math.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>
#include <limits>
#include <unordered_map>

#include "tc/cpu/math.h"

// Polynomials are minimax fits for this use: each comment gives the function, the range and the relative error of
// the coefficients as rounded to float32.
namespace tc::cpu {
namespace {

using V = Emit::V;
namespace intrinsic = llvm::Intrinsic;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.693147180559945309417;
// Leading parts have few bits, so that products with an exponent are exact without a fused instruction.
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723212e-6;
constexpr double kLog10Of2High = 0.301025390625, kLog10Of2Low = 4.60503898119521373889e-6;
/// Adding this rounds to a whole number and leaves it in the low bits.
constexpr double kRoundF32 = 0x1.8p23, kRoundF64 = 0x1.8p52;

/// A whole number n, as float and as int32.
struct Whole {
  V real;
  V integer;
};

/// n = the whole number nearest to x * factor, for |n| < 2^22. Unlike a conversion, defined for NaNs.
Whole nearest_whole(Emit& e, V x, double factor) {
  V shifted = factor == 1 ? e.b.CreateFAdd(x, e.real(kRoundF32, x))
                          : e.multiply_add(x, e.real(factor, x), e.real(kRoundF32, x));
  V bits = e.as_integer(shifted);
  return {e.b.CreateFSub(shifted, e.real(kRoundF32, x)), e.b.CreateSub(bits, e.as_integer(e.real(kRoundF32, x)))};
}

/// 2^n for -126 <= n <= 127.
V power_of_two(Emit& e, V n) { return e.as_float(e.b.CreateShl(e.b.CreateAdd(n, e.integer(127, n)), 23)); }

/// x * 2^n with one rounding for |n| <= 252, also where the result is subnormal or too large.
V scale(Emit& e, V x, Whole n) {
  constexpr int kPiece = 16;
  if (e.target.vector_bits == 512 && Emit::lanes(x) % kPiece == 0) {
    std::vector<V> parts;
    for (int i = 0; i < Emit::lanes(x); i += kPiece) {
      V piece = e.slice(x, i, kPiece);
      parts.push_back(
          e.b.CreateIntrinsic(intrinsic::x86_avx512_mask_scalef_ps_512, {},
                              {piece, e.slice(n.real, i, kPiece), piece, e.b.getInt16(-1), e.b.getInt32(4)}));
    }
    return e.concatenate(parts);
  }
  V half = e.b.CreateAShr(n.integer, 1);
  V rest = e.b.CreateSub(n.integer, half);
  return e.b.CreateFMul(e.b.CreateFMul(x, power_of_two(e, half)), power_of_two(e, rest));
}

/// x - n * (high + low).
V reduce(Emit& e, V x, Whole n, double high, double low) {
  return e.multiply_add(n.real, e.real(-low, x), e.multiply_add(n.real, e.real(-high, x), x));
}

/// e^r for |r| <= ln(2)/2: (e^r - 1 - r) / r^2, 2^-27.8 of e^r.
V exp_reduced(Emit& e, V r) {
  V p = e.polynomial(r, {0.00138143252, 0.00836885162, 0.0416684002, 0.166665196, 0.49999994});
  return e.b.CreateFAdd(e.multiply_add(e.b.CreateFMul(r, r), p, r), e.real(1, r));
}

/// e^r - 1 for |r| <= ln(2)/2: the same quotient, 2^-28.7 of e^r - 1.
V expm1_reduced(Emit& e, V r) {
  V p = e.polynomial(r, {0.000198459165, 0.00139408233, 0.00833338965, 0.0416663587, 0.166666657, 0.5});
  return e.multiply_add(e.b.CreateFMul(r, r), p, r);
}

V emit_exp(Emit& e, V x) {
  V bounded = e.at_most(e.at_least(x, -104), 89);
  Whole n = nearest_whole(e, bounded, 1 / kLn2);
  return scale(e, exp_reduced(e, reduce(e, bounded, n, kLn2High, kLn2Low)), n);
}

V emit_exp2(Emit& e, V x) {
  V bounded = e.at_most(e.at_least(x, -151), 129);
  Whole n = nearest_whole(e, bounded, 1);
  V fraction = e.b.CreateFSub(bounded, n.real);
  return scale(e, exp_reduced(e, e.b.CreateFMul(fraction, e.real(kLn2, x))), n);
}

V emit_exp10(Emit& e, V x) {
  V bounded = e.at_most(e.at_least(x, -45.5), 38.75);
  Whole n = nearest_whole(e, bounded, 3.32192809488736234787);
  V fraction = reduce(e, bounded, n, kLog10Of2High, kLog10Of2Low);
  return scale(e, exp_reduced(e, e.b.CreateFMul(fraction, e.real(2.30258509299404568402, x))), n);
}

/// For -18 <= x <= 88.8 or a NaN, and |x| not tiny. 2^n is halved and the result doubled, for 2^128 is no float.
V expm1_bounded(Emit& e, V x) {
  Whole n = nearest_whole(e, x, 1 / kLn2);
  V q = expm1_reduced(e, reduce(e, x, n, kLn2High, kLn2Low));
  V half_power = power_of_two(e, e.b.CreateSub(n.integer, e.integer(1, n.integer)));
  V half = e.multiply_add(q, half_power, e.b.CreateFSub(half_power, e.real(0.5, x)));
  return e.b.CreateFAdd(half, half);
}

V emit_expm1(Emit& e, V x) {
  V is_tiny = e.b.CreateFCmpOLT(e.absolute(x), e.real(0x1p-25, x));
  return e.select(is_tiny, x, expm1_bounded(e, e.at_most(e.at_least(x, -18), 88.8)));
}

/// tanh(x) = t / (t + 2), t = e^(2x) - 1; 1 from 9.02 on.
V emit_tanh(Emit& e, V x) {
  V a = e.at_most(e.absolute(x), 9.1);
  V t = expm1_bounded(e, e.b.CreateFAdd(a, a));
  V result = e.b.CreateFDiv(t, e.b.CreateFAdd(t, e.real(2, t)));
  V is_tiny = e.b.CreateFCmpOLT(a, e.real(0x1p-12, x));  // x - x^3/3 is x
  return e.copysign(e.select(is_tiny, a, result), x);
}

/// By e^-|x|, so that neither end overflows and the lower one stays exact down to subnormals.
V emit_sigmoid(Emit& e, V x) {
  V z = emit_exp(e, e.b.CreateFNeg(e.absolute(x)));
  V numerator = e.select(e.b.CreateFCmpOLT(x, e.real(0, x)), z, e.real(1, x));
  return e.b.CreateFDiv(numerator, e.b.CreateFAdd(z, e.real(1, x)));
}

/// x = 2^exponent * (1 + fraction), sqrt(1/2) <= 1 + fraction < sqrt(2), for a positive normal x.
struct Parts {
  V exponent;  // int32
  V fraction;
};
Parts split(Emit& e, V x) {
  constexpr int kSqrtHalf = 0x3f3504f3;
  V bits = e.as_integer(x);
  V exponent = e.b.CreateAShr(e.b.CreateSub(bits, e.integer(kSqrtHalf, bits)), 23);
  V mantissa = e.as_float(e.b.CreateSub(bits, e.b.CreateShl(exponent, 23)));
  return {exponent, e.b.CreateFSub(mantissa, e.real(1, x))};
}

/// log(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2): the quotient by f^2, 2^-29.5 of log(1 + f).
V log1p_tail(Emit& e, V f) {
  V q = e.polynomial(f, {0.0673664957, -0.116947822, 0.119060025, -0.124047764, 0.142167136, -0.166677907, 0.200022668,
                         -0.250000238, 0.333333105, -0.5});
  return e.b.CreateFMul(e.b.CreateFMul(f, f), q);
}

/// What logarithms give where the formula does not hold: x outside (0, infinity).
V log_special(Emit& e, V x, V result) {
  V zero = e.real(0, x);
  V outside = e.select(e.b.CreateFCmpOEQ(x, zero), e.real(-kInfinity, x), e.real(std::nan(""), x));
  result = e.select(e.b.CreateFCmpOLE(x, zero), outside, result);
  return e.select(e.b.CreateFCmpULT(x, e.real(kInfinity, x)), e.select(e.is_nan(x), x, result), x);
}

/// A logarithm to the base whose log(2) is two_high + two_low and whose log(e) is e_high + e_low.
V emit_logarithm(Emit& e, V x, double two_high, double two_low, double e_high, double e_low) {
  V is_subnormal = e.b.CreateFCmpOLT(x, e.real(0x1p-126, x));
  Parts parts = split(e, e.select(is_subnormal, e.b.CreateFMul(x, e.real(0x1p23, x)), x));
  V exponent = e.b.CreateSub(parts.exponent,
                             e.select(is_subnormal, e.integer(23, parts.exponent), e.integer(0, parts.exponent)));
  V n = e.b.CreateSIToFP(exponent, x->getType());
  V f = parts.fraction, tail = log1p_tail(e, f);
  V low;
  if (e_high == 1) {
    low = e.b.CreateFAdd(f, tail);
  } else {
    V small = e.multiply_add(tail, e.real(e_high, x), e.b.CreateFMul(f, e.real(e_low, x)));
    low = e.multiply_add(f, e.real(e_high, x), small);
  }
  if (two_low != 0) low = e.multiply_add(n, e.real(two_low, x), low);
  return log_special(e, x, e.multiply_add(n, e.real(two_high, x), low));
}
V emit_log(Emit& e, V x) { return emit_logarithm(e, x, kLn2High, kLn2Low, 1, 0); }
V emit_log2(Emit& e, V x) { return emit_logarithm(e, x, 1, 0, 1.4426950216293335, 1.92596299112661747e-8); }
V emit_log10(Emit& e, V x) {
  return emit_logarithm(e, x, kLog10Of2High, kLog10Of2Low, 0.4342944920063019, -1.01030500522316836e-8);
}

/// log(u) + (1 + x - u) / u for u = 1 + x as rounded; the rounding error joins the fraction.
V emit_log1p(Emit& e, V x) {
  llvm::IRBuilder<>& b = e.b;
  V one = e.real(1, x);
  V u = b.CreateFAdd(x, one);
  V part = b.CreateFSub(u, one);
  V error = b.CreateFAdd(b.CreateFSub(one, b.CreateFSub(u, part)), b.CreateFSub(x, part));
  Parts parts = split(e, u);
  // From 2^126 on the error is nothing beside the fraction, and its power of two would be subnormal.
  V bounded = b.CreateBinaryIntrinsic(intrinsic::smin, parts.exponent, e.integer(126, parts.exponent));
  V inverse_power = power_of_two(e, b.CreateNeg(bounded));
  V f = e.multiply_add(error, inverse_power, parts.fraction);
  V n = b.CreateSIToFP(parts.exponent, x->getType());
  V low = b.CreateFAdd(f, e.multiply_add(n, e.real(kLn2Low, x), log1p_tail(e, f)));
  V result = log_special(e, u, e.multiply_add(n, e.real(kLn2High, x), low));
  return e.select(b.CreateFCmpOLT(e.absolute(x), e.real(0x1p-25, x)), x, result);
}

/// Below 1: erf(x)/x - 1 in x^2, 2^-27.3. Above: 1 - e^-(x p(x)), p = -log(erfc(x))/x, 2^-30.2; 1 from 3.93 on.
V emit_erf(Emit& e, V x) {
  V a = e.absolute(x);
  V t = e.b.CreateFMul(a, a);
  V p = e.polynomial(
      t, {7.85803495e-05, -0.000801156159, 0.00518850051, -0.0268539172, 0.112835884, -0.37612626, 0.128379166});
  V below = e.multiply_add(a, p, a);
  V bounded = e.at_most(a, 3.93);
  V h = e.polynomial(bounded, {2.05449714e-06, -1.07705273e-05, -0.000225872849, 0.0034157983, -0.0234604795,
                               0.106011443, 0.635236859, 1.12863648});
  V above = e.b.CreateFSub(e.real(1, x), emit_exp(e, e.b.CreateFNeg(e.b.CreateFMul(bounded, h))));
  return e.copysign(e.select(e.b.CreateFCmpOLT(a, e.real(1, x)), below, above), x);
}

/// sin(x) (quadrants 0) or cos(x) (quadrants 1) for |x| <= 10^6, reduced in float64.
V sine_moderate(Emit& e, V x, int quadrants) {
  llvm::IRBuilder<>& b = e.b;
  V wide = b.CreateFPExt(x, Emit::shaped(b.getDoubleTy(), x));
  V shifted = e.multiply_add(wide, e.real(0.636619772367581343076, wide), e.real(kRoundF64, wide));
  V n = b.CreateFSub(shifted, e.real(kRoundF64, wide));
  // The first part of pi/2 has 33 bits, so that its product with n is exact.
  V reduced = e.multiply_add(n, e.real(-1.57079632673412561417, wide), wide);
  reduced = e.multiply_add(n, e.real(-6.07710050650619224932e-11, wide), reduced);
  V r = b.CreateFPTrunc(reduced, x->getType());
  V quadrant = b.CreateTrunc(e.as_integer(shifted), Emit::shaped(b.getInt32Ty(), x));
  quadrant = b.CreateAdd(quadrant, e.integer(quadrants, quadrant));
  V t = b.CreateFMul(r, r);
  // For |r| <= pi/4: (sin r - r)/r^3, 2^-28 of sin r; (cos r - 1 + r^2/2)/r^4, 2^-30.4 of cos r.
  V s = e.polynomial(t, {2.71804652e-06, -0.000198393042, 0.00833332911, -0.166666672});
  V sine = e.multiply_add(b.CreateFMul(s, t), r, r);
  V c = e.polynomial(t, {-2.72050471e-07, 2.47994521e-05, -0.00138888834, 0.0416666679});
  V cosine = e.multiply_add(b.CreateFMul(t, t), c, e.multiply_add(t, e.real(-0.5, t), e.real(1, t)));
  V is_odd = b.CreateICmpNE(b.CreateAnd(quadrant, e.integer(1, quadrant)), e.integer(0, quadrant));
  V sign = b.CreateShl(b.CreateAnd(quadrant, e.integer(2, quadrant)), 30);
  V magnitude = e.select(is_odd, cosine, sine);
  return e.as_float(b.CreateXor(e.as_integer(magnitude), sign));
}

/// Larger arguments are rare and need hundreds of bits of pi: their lanes are left to the C library.
V emit_sine(Emit& e, V x, const char* name, int quadrants) {
  llvm::IRBuilder<>& b = e.b;
  V moderate = sine_moderate(e, x, quadrants);
  if (quadrants == 0) {
    V is_tiny = b.CreateFCmpOLT(e.absolute(x), e.real(0x1p-12, x));  // x - x^3/6 is x, and -0 stays
    moderate = e.select(is_tiny, x, moderate);
  }
  V is_large = b.CreateFCmpOGT(e.absolute(x), e.real(1e6, x));
  V any_large = is_large->getType()->isVectorTy() ? b.CreateOrReduce(is_large) : is_large;
  llvm::BasicBlock* here = b.GetInsertBlock();
  auto* large = llvm::BasicBlock::Create(b.getContext(), "large", here->getParent());
  auto* done = llvm::BasicBlock::Create(b.getContext(), "done", here->getParent());
  b.CreateCondBr(any_large, large, done);
  b.SetInsertPoint(large);
  V arguments[] = {x};
  V mixed = e.select(is_large, e.call_lanes(math_symbol(name, false), b.getFloatTy(), arguments), moderate);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* result = b.CreatePHI(x->getType(), 2);
  result->addIncoming(mixed, large);
  result->addIncoming(moderate, here);
  return result;
}
V emit_sin(Emit& e, V x) { return emit_sine(e, x, "sin", 0); }
V emit_cos(Emit& e, V x) { return emit_sine(e, x, "cos", 1); }

}  // namespace

V emit_vector_math(Emit& e, const std::string& name, std::span<const V> x) {
  static const std::unordered_map<std::string, V (*)(Emit&, V)> table = {
      {"cos", emit_cos},         {"erf", emit_erf}, {"exp", emit_exp},     {"exp10", emit_exp10}, {"exp2", emit_exp2},
      {"expm1", emit_expm1},     {"log", emit_log}, {"log10", emit_log10}, {"log1p", emit_log1p}, {"log2", emit_log2},
      {"sigmoid", emit_sigmoid}, {"sin", emit_sin}, {"tanh", emit_tanh},
  };
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second(e, x[0]);
}

}  // namespace tc::cpu
