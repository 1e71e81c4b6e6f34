#include "tc/cpu/value_ops.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tc/cpu/conversions.h"
#include "tc/cpu/math.h"
#include "tc/cpu/vector_math.h"
#include "tc/support/check.h"

namespace tc::cpu {
namespace {

using V = Emit::V;
using Id = llvm::Intrinsic::ID;
namespace intrinsic = llvm::Intrinsic;

/// One operation to emit: its operands, the type of the first, and of the result.
struct Site {
  Emit& e;
  const std::vector<Operand>& operands;
  Halide::Type type;

  V operator[](size_t i) const { return operands[i].value; }
  Halide::Type of(size_t i) const { return operands[i].type; }
  bool floats() const { return of(0).is_float(); }
};
using Emitter = V (*)(const Site&);

// Arithmetic. Integers wrap.
V add(const Site& s) { return s.floats() ? s.e.b.CreateFAdd(s[0], s[1]) : s.e.b.CreateAdd(s[0], s[1]); }
V sub(const Site& s) { return s.floats() ? s.e.b.CreateFSub(s[0], s[1]) : s.e.b.CreateSub(s[0], s[1]); }
V mul(const Site& s) { return s.floats() ? s.e.b.CreateFMul(s[0], s[1]) : s.e.b.CreateMul(s[0], s[1]); }
V divide(const Site& s) { return s.e.b.CreateFDiv(s[0], s[1]); }
V negate(const Site& s) { return s.floats() ? s.e.b.CreateFNeg(s[0]) : s.e.b.CreateNeg(s[0]); }

/// The processor's own instruction for whole registers of `x86` intrinsics' widths; it gives its second operand when
/// either is a NaN or both are zero. Written as a comparison, LLVM would take it apart again beside the NaN's test.
V extremum(Emit& e, bool is_max, V a, V c) {
  bool is_double = a->getType()->getScalarSizeInBits() == 64;
  int bits = Emit::lanes(a) * static_cast<int>(a->getType()->getScalarSizeInBits());
  int width = e.target.vector_bits;
  while (width >= 128 && bits % width != 0) width /= 2;
  if (width < 128) {
    return e.select(is_max ? e.b.CreateFCmpOGT(a, c) : e.b.CreateFCmpOLT(a, c), a, c);
  }
  using namespace llvm::Intrinsic;
  const Id ids[2][2][3] = {{{x86_sse_min_ps, x86_avx_min_ps_256, x86_avx512_min_ps_512},
                            {x86_sse2_min_pd, x86_avx_min_pd_256, x86_avx512_min_pd_512}},
                           {{x86_sse_max_ps, x86_avx_max_ps_256, x86_avx512_max_ps_512},
                            {x86_sse2_max_pd, x86_avx_max_pd_256, x86_avx512_max_pd_512}}};
  Id id = ids[is_max][is_double][width / 256];
  int piece = width / (is_double ? 64 : 32);
  std::vector<V> parts;
  for (int i = 0; i < Emit::lanes(a); i += piece) {
    std::vector<V> arguments = {e.slice(a, i, piece), e.slice(c, i, piece)};
    if (width == 512) arguments.push_back(e.b.getInt32(4));  // no rounding mode, exceptions as they are
    parts.push_back(e.b.CreateIntrinsic(id, {}, arguments));
  }
  return e.concatenate(parts);
}

/// What the instruction leaves out is a NaN in the first operand.
V larger(Emit& e, Halide::Type type, V a, V c) {
  if (type.is_int()) return e.b.CreateBinaryIntrinsic(intrinsic::smax, a, c);
  if (!type.is_float()) return e.b.CreateBinaryIntrinsic(intrinsic::umax, a, c);
  return e.select(e.is_nan(a), a, extremum(e, true, a, c));
}
V smaller(Emit& e, Halide::Type type, V a, V c) {
  if (type.is_int()) return e.b.CreateBinaryIntrinsic(intrinsic::smin, a, c);
  if (!type.is_float()) return e.b.CreateBinaryIntrinsic(intrinsic::umin, a, c);
  return e.select(e.is_nan(a), a, extremum(e, false, a, c));
}
V max(const Site& s) {
  V result = s[0];
  for (size_t i = 1; i < s.operands.size(); i++) result = larger(s.e, s.of(0), result, s[i]);
  return result;
}
V min(const Site& s) {
  V result = s[0];
  for (size_t i = 1; i < s.operands.size(); i++) result = smaller(s.e, s.of(0), result, s[i]);
  return result;
}
V clamp(const Site& s) { return smaller(s.e, s.of(0), larger(s.e, s.of(0), s[0], s[1]), s[2]); }
V relu(const Site& s) { return larger(s.e, s.of(0), s[0], llvm::Constant::getNullValue(s[0]->getType())); }
V fmax(const Site& s) { return s.e.select(s.e.is_nan(s[1]), s[0], extremum(s.e, true, s[0], s[1])); }
V fmin(const Site& s) { return s.e.select(s.e.is_nan(s[1]), s[0], extremum(s.e, false, s[0], s[1])); }
V fdim(const Site& s) {
  V difference = s.e.b.CreateFSub(s[0], s[1]);
  return s.e.select(s.e.b.CreateFCmpOLE(s[0], s[1]), s.e.real(0, s[0]), difference);
}

V absolute(const Site& s) {
  if (s.floats()) return s.e.absolute(s[0]);
  if (s.of(0).is_uint()) return s[0];
  return s.e.b.CreateIntrinsic(intrinsic::abs, {s[0]->getType()}, {s[0], s.e.b.getFalse()});
}
V sign(const Site& s) {
  llvm::Type* type = s[0]->getType();
  if (!s.floats()) {
    V zero = s.e.integer(0, s[0]);
    V positive = s.e.b.CreateZExtOrBitCast(s.e.b.CreateICmpNE(s[0], zero), type);
    return s.of(0).is_uint() ? positive : s.e.select(s.e.b.CreateICmpSLT(s[0], zero), s.e.integer(-1, s[0]), positive);
  }
  V zero = s.e.real(0, s[0]);
  V negative = s.e.select(s.e.b.CreateFCmpOLT(s[0], zero), s.e.real(-1, s[0]), s[0]);
  return s.e.select(s.e.b.CreateFCmpOGT(s[0], zero), s.e.real(1, s[0]), negative);
}

// Integer division with the quotient rounded down. A zero divisor gives 0; the least number divided by -1, itself.
struct Quotient {
  V quotient, remainder;
};
Quotient floor_divide(const Site& s) {
  llvm::IRBuilder<>& b = s.e.b;
  V a = s[0], d = s[1], zero = s.e.integer(0, d), one = s.e.integer(1, d);
  V by_zero = b.CreateICmpEQ(d, zero);
  if (s.type.is_uint()) {
    V safe = s.e.select(by_zero, one, d);
    return {s.e.select(by_zero, zero, b.CreateUDiv(a, safe)), b.CreateURem(a, safe)};
  }
  V minus_one = b.CreateICmpEQ(d, s.e.integer(-1, d));
  V safe = s.e.select(b.CreateOr(by_zero, minus_one), one, d);
  V quotient = b.CreateSDiv(a, safe);
  V remainder = b.CreateSub(a, b.CreateMul(quotient, safe));
  V is_above = b.CreateAnd(b.CreateICmpNE(remainder, zero), b.CreateICmpSLT(b.CreateXor(remainder, safe), zero));
  quotient = s.e.select(is_above, b.CreateSub(quotient, one), quotient);
  remainder = s.e.select(is_above, b.CreateAdd(remainder, safe), remainder);
  quotient = s.e.select(minus_one, b.CreateNeg(a), s.e.select(by_zero, zero, quotient));
  return {quotient, remainder};
}
V floor_div(const Site& s) { return floor_divide(s).quotient; }
V floor_mod(const Site& s) {
  if (!s.floats()) return floor_divide(s).remainder;
  bool is_double = s.type.bits() == 64;
  V arguments[] = {s[0], s[1]};
  return s.e.call_lanes(is_double ? "tc_f64_floor_mod" : "tc_f32_floor_mod", s[0]->getType()->getScalarType(),
                        arguments);
}

// Bits.
V bitwise_and(const Site& s) { return s.e.b.CreateAnd(s[0], s[1]); }
V bitwise_or(const Site& s) { return s.e.b.CreateOr(s[0], s[1]); }
V bitwise_xor(const Site& s) { return s.e.b.CreateXor(s[0], s[1]); }
V bitwise_not(const Site& s) { return s.e.b.CreateNot(s[0]); }
/// The distance as a number of the value's type, at most its width; a negative one counts as beyond the width.
V shift_distance(const Site& s, int most) {
  V distance = s[1];
  V bounded = s.e.b.CreateBinaryIntrinsic(intrinsic::umin, distance, s.e.integer(most, distance));
  return s.e.b.CreateIntCast(bounded, s[0]->getType(), false);
}
V shift_left(const Site& s) {
  V distance = shift_distance(s, s.type.bits());
  V beyond = s.e.b.CreateICmpEQ(distance, s.e.integer(s.type.bits(), distance));
  V masked = s.e.select(beyond, s.e.integer(0, distance), distance);
  return s.e.select(beyond, s.e.integer(0, s[0]), s.e.b.CreateShl(s[0], masked));
}
V shift_right(const Site& s) {
  if (s.type.is_int()) return s.e.b.CreateAShr(s[0], shift_distance(s, s.type.bits() - 1));
  V distance = shift_distance(s, s.type.bits());
  V beyond = s.e.b.CreateICmpEQ(distance, s.e.integer(s.type.bits(), distance));
  V masked = s.e.select(beyond, s.e.integer(0, distance), distance);
  return s.e.select(beyond, s.e.integer(0, s[0]), s.e.b.CreateLShr(s[0], masked));
}
V popcount(const Site& s) {
  V count = s.e.unary(intrinsic::ctpop, s[0]);
  return s.e.b.CreateIntCast(count, Emit::shaped(s.e.b.getInt32Ty(), count), false);
}

// Comparisons: false where an operand is a NaN, but for `ne`.
template <llvm::CmpInst::Predicate kFloat, llvm::CmpInst::Predicate kSigned, llvm::CmpInst::Predicate kUnsigned>
V compare(const Site& s) {
  if (s.floats()) return s.e.b.CreateFCmp(kFloat, s[0], s[1]);
  return s.e.b.CreateICmp(s.of(0).is_int() ? kSigned : kUnsigned, s[0], s[1]);
}
V is_nan(const Site& s) { return s.e.is_nan(s[0]); }
V is_inf(const Site& s) {
  V size = s.e.absolute(s[0]);
  return s.e.b.CreateFCmpOEQ(size, s.e.real(std::numeric_limits<double>::infinity(), size));
}
V is_finite(const Site& s) {
  V size = s.e.absolute(s[0]);
  return s.e.b.CreateFCmpOLT(size, s.e.real(std::numeric_limits<double>::infinity(), size));
}
V sign_bit(const Site& s) {
  V bits = s.e.as_integer(s[0]);
  return s.e.b.CreateICmpSLT(bits, s.e.integer(0, bits));
}

// Conversions.
V cast(const Site& s) { return convert(s.e, s[0], s.of(0), s.type); }
V constant(const Site& s) {
  uint64_t bits = llvm::cast<llvm::ConstantInt>(s[0])->getZExtValue();
  return s.e.real(std::bit_cast<double>(bits),
                  llvm::UndefValue::get(s.type.bits() == 64 ? s.e.b.getDoubleTy() : s.e.b.getFloatTy()));
}
V load_half(const Site& s) { return from_half(s.e, s[0]); }
V load_bfloat(const Site& s) { return from_bfloat(s.e, s[0]); }
V store_half(const Site& s) { return to_half(s.e, s[0]); }
V store_bfloat(const Site& s) { return to_bfloat(s.e, s[0]); }
V load_e4m3(const Site& s) { return from_float8(s.e, s[0], kE4M3); }
V load_e5m2(const Site& s) { return from_float8(s.e, s[0], kE5M2); }
V store_e4m3(const Site& s) { return to_float8(s.e, s[0], kE4M3); }
V store_e5m2(const Site& s) { return to_float8(s.e, s[0], kE5M2); }
V round_half(const Site& s) { return from_half(s.e, to_half(s.e, s[0])); }
V round_bfloat(const Site& s) { return from_bfloat(s.e, to_bfloat(s.e, s[0])); }

/// On the bits: half of the last place that is kept carries over, and away from zero where it is a tie. A NaN keeps a
/// bit of its fraction.
V tf32(const Site& s) {
  Emit& e = s.e;
  V bits = e.as_integer(s[0]);
  V rounded = e.b.CreateAnd(e.b.CreateAdd(bits, e.integer(0x1000, bits)), e.integer(0xffffe000LL, bits));
  return e.select(e.is_nan(s[0]), s[0], e.as_float(rounded));
}

// What processors have an instruction for.
template <Id kId>
V instruction(const Site& s) {
  return s.e.unary(kId, s[0]);
}
V copy_sign(const Site& s) { return s.e.copysign(s[0], s[1]); }
V round_half_away(const Site& s) {
  // Adding the number just below one half never carries a smaller fraction over.
  V x = s[0];
  double below_half = s.type.bits() == 64 ? std::nextafter(0.5, 0) : std::nextafterf(0.5f, 0);
  V moved = s.e.b.CreateFAdd(x, s.e.copysign(s.e.real(below_half, x), x));
  return s.e.copysign(s.e.unary(intrinsic::trunc, moved), x);
}
V fused_multiply_add(const Site& s) {
  if (s.e.target.has_fma) return s.e.multiply_add(s[0], s[1], s[2]);
  V arguments[] = {s[0], s[1], s[2]};
  return s.e.call_lanes(s.type.bits() == 64 ? "fma" : "fmaf", s[0]->getType()->getScalarType(), arguments);
}
V rsqrt(const Site& s) { return s.e.b.CreateFDiv(s.e.real(1, s[0]), s.e.unary(intrinsic::sqrt, s[0])); }

using P = llvm::CmpInst::Predicate;
const std::unordered_map<std::string_view, Emitter>& emitters() {
  static const std::unordered_map<std::string_view, Emitter> table = {
      {"tc.add", add},
      {"tc.sub", sub},
      {"tc.mul", mul},
      {"tc.div", divide},
      {"tc.neg", negate},
      {"tc.min", min},
      {"tc.max", max},
      {"tc.floor_div", floor_div},
      {"tc.floor_mod", floor_mod},
      {"tc.eq", compare<P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ>},
      {"tc.ne", compare<P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE>},
      {"tc.lt", compare<P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT>},
      {"tc.le", compare<P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE>},
      {"tc.gt", compare<P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT>},
      {"tc.ge", compare<P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE>},
      {"tc.cast", cast},
      {"tc.constant", constant},
      {"tc.from_half", load_half},
      {"tc.from_bfloat", load_bfloat},
      {"tc.to_half", store_half},
      {"tc.to_bfloat", store_bfloat},
      {"tc.from_e4m3", load_e4m3},
      {"tc.from_e5m2", load_e5m2},
      {"tc.to_e4m3", store_e4m3},
      {"tc.to_e5m2", store_e5m2},
      {"tc.round_half", round_half},
      {"tc.round_bfloat", round_bfloat},
      {"abs", absolute},
      {"bitwise_and", bitwise_and},
      {"bitwise_not", bitwise_not},
      {"bitwise_or", bitwise_or},
      {"bitwise_xor", bitwise_xor},
      {"ceil", instruction<intrinsic::ceil>},
      {"clamp", clamp},
      {"copysign", copy_sign},
      {"fabs", absolute},
      {"fdim", fdim},
      {"fdivide", divide},
      {"floor", instruction<intrinsic::floor>},
      {"fma", fused_multiply_add},
      {"fmax", fmax},
      {"fmin", fmin},
      {"isfinite", is_finite},
      {"isinf", is_inf},
      {"isnan", is_nan},
      {"max", max},
      {"min", min},
      {"nearbyint", instruction<intrinsic::nearbyint>},
      {"popcount", popcount},
      {"relu", relu},
      {"rint", instruction<intrinsic::rint>},
      {"round", round_half_away},
      {"rsqrt", rsqrt},
      {"shift_left", shift_left},
      {"shift_right", shift_right},
      {"sign", sign},
      {"signbit", sign_bit},
      {"sqrt", instruction<intrinsic::sqrt>},
      {"tf32", tf32},
      {"trunc", instruction<intrinsic::trunc>},
  };
  return table;
}

llvm::Type* element_type(Emit& e, Halide::Type type) {
  if (type.is_float()) return type.bits() == 64 ? e.b.getDoubleTy() : e.b.getFloatTy();
  return e.b.getIntNTy(type.bits());
}

}  // namespace

V ValueOps::emit(const std::string& name, Halide::Type type, const std::vector<Operand>& operands) {
  Site site{emit_, operands, type};
  if (auto it = emitters().find(name); it != emitters().end()) return it->second(site);
  TC_CHECK(!operands.empty() && is_math_function(name), "no operation is called '{}'", name);
  std::vector<V> values;
  for (const Operand& operand : operands) values.push_back(operand.value);
  bool is_double = type.is_float() ? type.bits() == 64 : operands[0].type.bits() == 64;
  if (!is_double) {
    if (V inlined = inlined_math(name, values)) return inlined;
  }
  return emit_.call_lanes(math_symbol(name, is_double), element_type(emit_, type), values);
}

/// A float32 function's own instructions, here or in a function of the module; null where it has none.
V ValueOps::inlined_math(const std::string& name, const std::vector<V>& values) {
  const V x = values.front();
  if (shared_.count({name, Emit::lanes(x)}) == 0) return emit_vector_math(emit_, name, values);
  const std::string symbol = fmt::format("tc.{}.{}", name, Emit::lanes(x));
  llvm::Function* function = emit_.module.getFunction(symbol);
  if (function == nullptr) function = shared_function(symbol, name, x->getType());
  return function != nullptr ? emit_.b.CreateCall(function, values) : nullptr;
}

llvm::Function* ValueOps::shared_function(const std::string& symbol, const std::string& name, llvm::Type* type) {
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false), llvm::Function::InternalLinkage,
                                          symbol, emit_.module);
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->addFnAttr(llvm::Attribute::WillReturn);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr("reciprocal-estimates", "none");
  const llvm::IRBuilderBase::InsertPointGuard guard(emit_.b);
  emit_.b.SetInsertPoint(llvm::BasicBlock::Create(emit_.b.getContext(), "entry", function));
  const V argument = function->getArg(0);
  const V result = emit_vector_math(emit_, name, std::span(&argument, 1));
  if (result != nullptr) {
    emit_.b.CreateRet(result);
    return function;
  }
  function->eraseFromParent();
  return nullptr;
}

V ValueOps::reduce(const std::string& name, V vector, Halide::Type type) {
  Halide::Type element = type.element_of();
  int count = Emit::lanes(vector);
  while (count > 1) {
    int half = count / 2;
    V low = emit_.slice(vector, 0, half), high = emit_.slice(vector, half, half);
    V rest = count % 2 ? emit_.b.CreateExtractElement(vector, count - 1) : nullptr;
    Halide::Type halved = element.with_lanes(half);
    vector = emit(name, halved, {{low, halved}, {high, halved}});
    if (rest) {
      V first = emit_.b.CreateExtractElement(vector, uint64_t{0});
      V combined = emit(name, element, {{first, element}, {rest, element}});
      vector = emit_.b.CreateInsertElement(vector, combined, uint64_t{0});
    }
    count = half;
  }
  return vector->getType()->isVectorTy() ? emit_.b.CreateExtractElement(vector, uint64_t{0}) : vector;
}

}  // namespace tc::cpu
