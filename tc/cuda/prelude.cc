#include "tc/cuda/prelude.h"

#include <string_view>
#include <vector>

#include "tc/cuda/atomic_text.h"
#include "tc/cuda/pair_text.h"
#include "tc/cuda/tensor_core_text.h"
#include "tc/cuda/warpgroup_text.h"

namespace tc::cuda {
namespace {

struct Definition {
  Helper helper;
  std::vector<Helper> needs;
  std::vector<std::string_view> names;
  std::string_view text;
};

constexpr std::string_view kTypesText = R"(typedef signed char int8;
typedef short int16;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;
)";

constexpr std::string_view kFloat16Text = R"(struct float16 {
  uint16 bits;
};
__device__ __forceinline__ float16 __ldg(const float16* p) { return {__ldg(&p->bits)}; }
__device__ __forceinline__ float to_float(float16 x) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
}
__device__ __forceinline__ float16 to_float16(float x) {
  float16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}
__device__ __forceinline__ float round_float16(float x) { return to_float(to_float16(x)); }
)";

constexpr std::string_view kBFloat16Text = R"(struct bfloat16 {
  uint16 bits;
};
__device__ __forceinline__ bfloat16 __ldg(const bfloat16* p) { return {__ldg(&p->bits)}; }
__device__ __forceinline__ float to_float(bfloat16 x) { return __uint_as_float(uint32(x.bits) << 16); }
__device__ __forceinline__ bfloat16 to_bfloat16(float x) {
  bfloat16 result;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
#else
  const uint32 bits = __float_as_uint(x);
  result.bits = uint16(x != x ? 0x7fffu : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
  return result;
}
__device__ __forceinline__ float round_bfloat16(float x) { return to_float(to_bfloat16(x)); }
)";

constexpr std::string_view kFloat8Text =
    R"(// 8-bit floats by their bits. To nearest; what is too large becomes the largest finite number, a NaN stays one.
__device__ __forceinline__ float float_from_half_bits(uint16 bits) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
  return result;
}
__device__ __forceinline__ float float_from_e5m2(uint8 x) { return float_from_half_bits(uint16(x << 8)); }
#if __CUDA_ARCH__ >= 890
__device__ __forceinline__ float float_from_e4m3(uint8 x) {
  uint32 halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(uint16(x)));
  return float_from_half_bits(uint16(halves));
}
__device__ __forceinline__ uint8 e4m3_from_float(float x) {
  uint16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return uint8(pair);
}
__device__ __forceinline__ uint8 e5m2_from_float(float x) {
  uint16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return uint8(pair);
}
#else
__device__ __forceinline__ float float_from_e4m3(uint8 x) {
  const uint32 size = x & 127u;
  const float scaled = __uint_as_float(size << 20) * __uint_as_float(0x7b800000u);
  return __uint_as_float((x & 128u) << 24 | (size == 127u ? 0x7fc00000u : __float_as_uint(scaled)));
}
template <uint32 kFraction, uint32 kBias, uint32 kLargest>
__device__ __forceinline__ uint8 float8_from_float(float x) {
  constexpr uint32 dropped = 23 - kFraction;
  constexpr uint32 rebias = (127 - kBias) << 23;
  const uint32 bits = __float_as_uint(x);
  const uint32 size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return 127;
  uint32 result = (size + ((size >> dropped) & 1u) + ((1u << (dropped - 1)) - 1u) - rebias) >> dropped;
  // An addition whose last place is that of the subnormals rounds them.
  const uint32 base = (151 - kBias - kFraction) << 23;
  if (size < rebias + (1u << 23)) {
    result = __float_as_uint(__fadd_rn(__uint_as_float(size), __uint_as_float(base))) - base;
  }
  if (size >= rebias + (kLargest << dropped)) result = kLargest;
  return uint8(result | (bits >> 24 & 128u));
}
__device__ __forceinline__ uint8 e4m3_from_float(float x) { return float8_from_float<3, 7, 0x7e>(x); }
__device__ __forceinline__ uint8 e5m2_from_float(float x) { return float8_from_float<2, 15, 0x7b>(x); }
#endif
)";

constexpr std::string_view kTf32Text = R"(// To 11 significant bits, ties away from zero.
__device__ __forceinline__ float round_tf32(float x) {
  return x != x ? x : __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}
)";

constexpr std::string_view kFloatOddText =
    R"(// To float by rounding to odd: a second rounding, to 16 bits, is then as if there had been only one.
__device__ __forceinline__ float float_odd(double x) {
  const float nearest = __double2float_rz(x);
  return double(nearest) == x || x != x ? nearest : __uint_as_float(__float_as_uint(nearest) | 1u);
}
__device__ __forceinline__ float float_odd(int x) { return float_odd(double(x)); }
__device__ __forceinline__ float float_odd(uint32 x) { return float_odd(double(x)); }
__device__ __forceinline__ float float_odd(int64 x) {
  const double nearest = __ll2double_rz(x);
  const uint64 lost = __double2ll_rz(nearest) != x;
  return float_odd(__longlong_as_double(int64(uint64(__double_as_longlong(nearest)) | lost)));
}
__device__ __forceinline__ float float_odd(uint64 x) {
  const double nearest = __ull2double_rz(x);
  const uint64 lost = __double2ull_rz(nearest) != x;
  return float_odd(__longlong_as_double(int64(uint64(__double_as_longlong(nearest)) | lost)));
}
)";

constexpr std::string_view kConvertText =
    R"(// Toward zero; what does not fit becomes the nearest value of the type, a NaN becomes 0.
__device__ __forceinline__ int convert_int32(float x) { return x != x ? 0 : __float2int_rz(x); }
__device__ __forceinline__ int convert_int32(double x) { return x != x ? 0 : __double2int_rz(x); }
__device__ __forceinline__ uint32 convert_uint32(float x) { return x != x ? 0 : __float2uint_rz(x); }
__device__ __forceinline__ uint32 convert_uint32(double x) { return x != x ? 0 : __double2uint_rz(x); }
__device__ __forceinline__ int64 convert_int64(float x) { return x != x ? 0 : __float2ll_rz(x); }
__device__ __forceinline__ int64 convert_int64(double x) { return x != x ? 0 : __double2ll_rz(x); }
__device__ __forceinline__ uint64 convert_uint64(float x) { return x != x ? 0 : __float2ull_rz(x); }
__device__ __forceinline__ uint64 convert_uint64(double x) { return x != x ? 0 : __double2ull_rz(x); }
template <typename F>
__device__ __forceinline__ int8 convert_int8(F x) {
  return int8(min(max(convert_int32(x), -128), 127));
}
template <typename F>
__device__ __forceinline__ int16 convert_int16(F x) {
  return int16(min(max(convert_int32(x), -32768), 32767));
}
template <typename F>
__device__ __forceinline__ uint8 convert_uint8(F x) {
  return uint8(min(max(convert_int32(x), 0), 255));
}
template <typename F>
__device__ __forceinline__ uint16 convert_uint16(F x) {
  return uint16(min(max(convert_int32(x), 0), 65535));
}
)";

constexpr std::string_view kWrapText = R"(// Signed arithmetic modulo 2^32 or 2^64.
__device__ __forceinline__ int wrap_add(int a, int b) { return int(uint32(a) + uint32(b)); }
__device__ __forceinline__ int wrap_sub(int a, int b) { return int(uint32(a) - uint32(b)); }
__device__ __forceinline__ int wrap_mul(int a, int b) { return int(uint32(a) * uint32(b)); }
__device__ __forceinline__ int wrap_abs(int a) { return a < 0 ? wrap_sub(0, a) : a; }
__device__ __forceinline__ int64 wrap_add(int64 a, int64 b) { return int64(uint64(a) + uint64(b)); }
__device__ __forceinline__ int64 wrap_sub(int64 a, int64 b) { return int64(uint64(a) - uint64(b)); }
__device__ __forceinline__ int64 wrap_mul(int64 a, int64 b) { return int64(uint64(a) * uint64(b)); }
__device__ __forceinline__ int64 wrap_abs(int64 a) { return a < 0 ? wrap_sub(int64(0), a) : a; }
)";

constexpr std::string_view kFloorDivText = R"(// Toward minus infinity; a zero divisor gives 0.
template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  constexpr bool is_signed = T(-1) < T(1);
  if (b == T(0)) return T(0);
  if (is_signed && b == T(-1)) return negate(a);
  const T quotient = T(a / b);
  return is_signed && a % b != 0 && (a % b > 0) != (b > 0) ? T(quotient - 1) : quotient;
}
template <typename T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  constexpr bool is_signed = T(-1) < T(1);
  if (b == T(0) || (is_signed && b == T(-1))) return T(0);
  const T remainder_ = T(a % b);
  return is_signed && remainder_ != 0 && (remainder_ > 0) != (b > 0) ? T(remainder_ + b) : remainder_;
}
)";

constexpr std::string_view kShiftText =
    R"(// A negative count shifts the other way; counts from the width on shift everything out.
template <typename T>
__device__ __forceinline__ T shift_by(T a, bool left, uint64 count) {
  constexpr uint64 width = 8 * sizeof(T);
  if (left) return count >= width ? T(0) : T(uint64(a) << count);
  return count < width ? T(a >> count) : a < T(0) ? T(-1) : T(0);
}
template <typename T, typename Count>
__device__ __forceinline__ T shift_left(T a, Count count) {
  return count < Count(0) ? shift_by(a, false, uint64(0) - uint64(count)) : shift_by(a, true, uint64(count));
}
template <typename T, typename Count>
__device__ __forceinline__ T shift_right(T a, Count count) {
  return count < Count(0) ? shift_by(a, true, uint64(0) - uint64(count)) : shift_by(a, false, uint64(count));
}
)";

constexpr std::string_view kNegateText =
    R"(template <typename T>
__device__ __forceinline__ T negate(T x) {
  return T(uint64(0) - uint64(x));
}
// ptxas 13.0 makes one 32-bit negation of a 16-bit one and the extension of its sign, which is wrong for -32768.
__device__ __forceinline__ int16 negate(int16 x) {
  int result;
  asm("neg.s32 %0, %1;" : "=r"(result) : "r"(int(x)));
  return int16(result);
}
)";

constexpr std::string_view kSignText = R"(template <typename T>
__device__ __forceinline__ T sign_of(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}
)";

constexpr std::string_view kReciprocalText =
    R"(// 1 / x within an ULP, as the hardware has it (PTX ISA, "rcp"). A division has a way of its own for extreme operands.
// That branch keeps threads from working on several values at once.
__device__ __forceinline__ float reciprocal_near(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
)";

constexpr std::string_view kSigmoidText =
    R"(// The quotient is corrected by its remainder: it is as near as a division's.
__device__ __forceinline__ float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  const float dividend = x >= 0 ? 1.0f : e;
  const float divisor = 1.0f + e;
  const float reciprocal = reciprocal_near(divisor);
  const float nearly = dividend * reciprocal;
  return fmaf(fmaf(-divisor, nearly, dividend), reciprocal, nearly);
}
__device__ __forceinline__ double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x >= 0 ? 1.0 : e) / (1.0 + e);
}
)";

constexpr std::string_view kSameInWarpText =
    R"(// An integer that all threads of a warp have. The compiler knows it of what comes from one lane, so that it computes
// what follows from it once for the warp.
__device__ __forceinline__ int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }
)";

constexpr std::string_view kExp2OfFloat16Text =
    R"(// 2 to the x, which becomes a float16: it is 0 long before the instruction makes 0 of what float32 could hold.
__device__ __forceinline__ float exp2_for_float16(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
)";

constexpr std::string_view kOpaqueText =
    R"(// The integer itself, but compilers cannot tell how it was computed. From sm_90 on, ptxas 12.9 to 13.2 make one
// instruction of max(max(a, -b), c) and lose the minus. They don't where the inner maximum is opaque.
// It reads one register and writes another: where it does both to one, NVVM 12.9 to 13.5 lose what a choice
// put there.
__device__ __forceinline__ int opaque(int x) {
#if __CUDA_ARCH__ >= 900
  int same;
  asm("prmt.b32 %0, %1, 0, 0x3210;" : "=r"(same) : "r"(x));
  return same;
#else
  return x;
#endif
}
__device__ __forceinline__ int64 opaque(int64 x) {
#if __CUDA_ARCH__ >= 900
  int64 same;
  asm("mov.b64 %0, %1;" : "=l"(same) : "l"(x));
  return same;
#else
  return x;
#endif
}
__device__ __forceinline__ uint32 opaque(uint32 x) { return uint32(opaque(int(x))); }
__device__ __forceinline__ uint64 opaque(uint64 x) { return uint64(opaque(int64(x))); }
)";

constexpr std::string_view kWidenedText =
    R"(// The integer itself, but NVVM cannot tell that it had at most 16 bits. It makes sums of products of such numbers by
// instructions of 32 bits (dp2a, dp4a), and extends a negative one with zeros (13.0).
__device__ __forceinline__ int64 widened(int64 x) {
  int64 same;
  asm("mov.b64 %0, %1;" : "=l"(same) : "l"(x));
  return same;
}
__device__ __forceinline__ uint64 widened(uint64 x) { return uint64(widened(int64(x))); }
)";

constexpr std::string_view kMinMaxText = R"(// A NaN wins.
__device__ __forceinline__ float min_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a || b != b ? a + b : fminf(a, b);
#endif
}
__device__ __forceinline__ float max_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a || b != b ? a + b : fmaxf(a, b);
#endif
}
__device__ __forceinline__ double min_nan(double a, double b) { return a != a || b != b ? a + b : fmin(a, b); }
__device__ __forceinline__ double max_nan(double a, double b) { return a != a || b != b ? a + b : fmax(a, b); }
)";

constexpr std::string_view kMinMaxFloat16Text =
    R"(__device__ __forceinline__ float16 min_nan(float16 a, float16 b) {
#if __CUDA_ARCH__ >= 800
  float16 result;
  asm("min.NaN.f16 %0, %1, %2;" : "=h"(result.bits) : "h"(a.bits), "h"(b.bits));
  return result;
#else
  return to_float16(min_nan(to_float(a), to_float(b)));
#endif
}
__device__ __forceinline__ float16 max_nan(float16 a, float16 b) {
#if __CUDA_ARCH__ >= 800
  float16 result;
  asm("max.NaN.f16 %0, %1, %2;" : "=h"(result.bits) : "h"(a.bits), "h"(b.bits));
  return result;
#else
  return to_float16(max_nan(to_float(a), to_float(b)));
#endif
}
)";

constexpr std::string_view kMinMaxBFloat16Text =
    R"(__device__ __forceinline__ bfloat16 min_nan(bfloat16 a, bfloat16 b) {
#if __CUDA_ARCH__ >= 800
  bfloat16 result;
  asm("min.NaN.bf16 %0, %1, %2;" : "=h"(result.bits) : "h"(a.bits), "h"(b.bits));
  return result;
#else
  return to_bfloat16(min_nan(to_float(a), to_float(b)));
#endif
}
__device__ __forceinline__ bfloat16 max_nan(bfloat16 a, bfloat16 b) {
#if __CUDA_ARCH__ >= 800
  bfloat16 result;
  asm("max.NaN.bf16 %0, %1, %2;" : "=h"(result.bits) : "h"(a.bits), "h"(b.bits));
  return result;
#else
  return to_bfloat16(max_nan(to_float(a), to_float(b)));
#endif
}
)";

constexpr std::string_view kQuotientText =
    R"(// a / b, rounded as a / b is, by the reciprocal of b, which the compiler computes once for all a, and two corrections
// by the remainder: the first leaves less than an ULP, then the second rounds correctly (Markstein 1990). Both
// are scaled so that the divisor is about 1: nothing leaves the range that a / b does not leave. Where a remainder
// is not exact, small or zero, infinite or close to it, or NaN, there is a division.
__device__ __forceinline__ float quotient(float a, float b) {
  const int exponent = int((__float_as_uint(b) >> 23) & 255u);
  const float scale = __uint_as_float(uint32(exponent < 252 ? 253 - exponent : 1) << 23);
  const float dividend = a * scale;
  const float divisor = b * scale;
  const float reciprocal = 1.0f / divisor;
  const float nearly = dividend * reciprocal;
  const float close = fmaf(fmaf(-divisor, nearly, dividend), reciprocal, nearly);
  const float result = fmaf(fmaf(-divisor, close, dividend), reciprocal, close);
  return fabsf(result) >= 0x1p-100f && fabsf(result) <= 0x1.fffffep127f ? result : a / b;
}
)";

constexpr std::string_view kNarrowQuotientText =
    R"(// a / b, which becomes a float of 16 bits, by the reciprocal of b, which the compiler computes once for all a. One
// correction by the remainder leaves 0.5 + 2^-20 ULP. Both are scaled so that the divisor is between 0.5 and 1: nothing
// leaves the range that a / b does not leave. A corrected infinity is NaN, and a corrected 0 may have another sign: then
// the first quotient is right.
__device__ __forceinline__ float narrow_quotient(float a, float b) {
  const int exponent = int((__float_as_uint(b) >> 23) & 255u);
  const float scale = __uint_as_float(uint32(exponent < 252 ? 252 - exponent : 1) << 23);
  const float dividend = a * scale;
  const float divisor = b * scale;
  const float reciprocal = reciprocal_near(divisor);
  const float nearly = dividend * reciprocal;
  const float close = fmaf(fmaf(-divisor, nearly, dividend), reciprocal, nearly);
  return fabsf(close) > 0 ? close : nearly;
}
)";

constexpr std::string_view kNextText = R"(// The next value of a 16-bit float after x toward y.
template <typename Half>
__device__ __forceinline__ float next_half(Half x, Half y) {
  const float from = to_float(x);
  const float to = to_float(y);
  if (from != from || to != to) return from + to;
  if (from == to) return to;
  Half result;
  if (from == 0) {
    result.bits = uint16((y.bits & 0x8000) | 1);
  } else {
    result.bits = uint16((to > from) == (from > 0) ? x.bits + 1 : x.bits - 1);
  }
  return to_float(result);
}
__device__ __forceinline__ float next_float16(float x, float y) { return next_half(to_float16(x), to_float16(y)); }
__device__ __forceinline__ float next_bfloat16(float x, float y) { return next_half(to_bfloat16(x), to_bfloat16(y)); }
)";

constexpr std::string_view kOverlapText =
    R"(// A kernel may start while those before it run: until they have ended it touches nothing that they do.
__device__ __forceinline__ void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
)";

constexpr std::string_view kUnpromisedText =
    R"(// The tensor at an address whose origin the compiler does not know. Beside a restricted tensor it takes others for
// restricted, too: it loads from them before a barrier, or before the wait for the kernel that writes them.
template <typename T>
__device__ __forceinline__ T* unpromised(T* tensor) {
  uint64 address;
  asm volatile("mov.u64 %0, %1;" : "=l"(address) : "l"(__cvta_generic_to_global(tensor)) : "memory");
  return (T*)__cvta_global_to_generic(address);
}
)";

constexpr std::string_view kCopyAsyncText =
    R"(// Global to shared memory without a register between, where the hardware can.
template <int bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const uint32 address = uint32(__cvta_generic_to_shared(to));
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  } else if (bytes == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
  }
#else
  if (bytes == 16) {
    *(uint4*)to = *(const uint4*)from;
  } else if (bytes == 8) {
    *(uint2*)to = *(const uint2*)from;
  } else {
    *(uint32*)to = *(const uint32*)from;
  }
#endif
}
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}
)";

constexpr std::string_view kCopyAsyncIfText =
    R"(// The same under a predicate, so that what surrounds it stays one piece for the assembler.
template <int bytes>
__device__ __forceinline__ void copy_async_if(bool condition, void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const uint32 address = uint32(__cvta_generic_to_shared(to)), predicate = condition;
  if (bytes == 16) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }"
                 ::"r"(address), "l"(from), "r"(predicate) : "memory");
  } else if (bytes == 8) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], 8; }"
                 ::"r"(address), "l"(from), "r"(predicate) : "memory");
  } else {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], 4; }"
                 ::"r"(address), "l"(from), "r"(predicate) : "memory");
  }
#else
  if (condition) copy_async<bytes>(to, from);
#endif
}
)";

constexpr std::string_view kCopyAsyncOrZeroText =
    R"(// The same; where nothing is read, zeros arrive.
template <int bytes>
__device__ __forceinline__ void copy_async_or_zero(bool condition, bool is_read, void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const uint32 address = uint32(__cvta_generic_to_shared(to)), predicate = condition, read = is_read ? bytes : 0;
  if (bytes == 16) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16, %3; }"
                 ::"r"(address), "l"(from), "r"(predicate), "r"(read) : "memory");
  } else if (bytes == 8) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], 8, %3; }"
                 ::"r"(address), "l"(from), "r"(predicate), "r"(read) : "memory");
  } else {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], 4, %3; }"
                 ::"r"(address), "l"(from), "r"(predicate), "r"(read) : "memory");
  }
#else
  if (!condition) return;
  for (int i = 0; i < bytes / 4; ++i) ((uint32*)to)[i] = is_read ? ((const uint32*)from)[i] : 0;
#endif
}
)";

constexpr std::string_view kTensorMapText = R"(// A CUtensorMap, as the driver encodes it.
struct alignas(64) TensorMap {
  uint64 opaque[16];
};
// The first copy of the map's boxes need not wait for the map.
__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  if (threadIdx.x == 0) asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
)";

/// Each after all that it needs.
const std::vector<Definition>& definitions() {
  using enum Helper;
  static const std::vector<Definition> all = {
      {kTypes, {}, {"int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"}, kTypesText},
      {kFloat16, {}, {"float16", "to_float", "to_float16", "round_float16"}, kFloat16Text},
      {kBFloat16, {}, {"bfloat16", "to_float", "to_bfloat16", "round_bfloat16"}, kBFloat16Text},
      {kFloat8,
       {},
       {"float_from_half_bits", "float_from_e4m3", "float_from_e5m2", "e4m3_from_float", "e5m2_from_float",
        "float8_from_float"},
       kFloat8Text},
      {kTf32, {}, {"round_tf32"}, kTf32Text},
      {kFloatOdd, {}, {"float_odd"}, kFloatOddText},
      {kConvert,
       {},
       {"convert_int8", "convert_int16", "convert_int32", "convert_int64", "convert_uint8", "convert_uint16",
        "convert_uint32", "convert_uint64"},
       kConvertText},
      {kWrap, {}, {"wrap_add", "wrap_sub", "wrap_mul", "wrap_abs"}, kWrapText},
      {kNegate, {}, {"negate"}, kNegateText},
      {kFloorDiv, {kNegate}, {"floor_div", "floor_mod"}, kFloorDivText},
      {kShift, {}, {"shift_by", "shift_left", "shift_right"}, kShiftText},
      {kSign, {}, {"sign_of"}, kSignText},
      {kReciprocal, {}, {"reciprocal_near"}, kReciprocalText},
      {kSigmoid, {kReciprocal}, {"sigmoid"}, kSigmoidText},
      {kExp2OfFloat16, {}, {"exp2_for_float16"}, kExp2OfFloat16Text},
      {kMinMax, {}, {"min_nan", "max_nan"}, kMinMaxText},
      {kSameInWarp, {}, {"same_in_warp"}, kSameInWarpText},
      {kOpaque, {}, {"opaque"}, kOpaqueText},
      {kWidened, {}, {"widened"}, kWidenedText},
      {kMinMaxFloat16, {kFloat16, kMinMax}, {}, kMinMaxFloat16Text},
      {kMinMaxBFloat16, {kBFloat16, kMinMax}, {}, kMinMaxBFloat16Text},
      {kQuotient, {}, {"quotient"}, kQuotientText},
      {kNarrowQuotient, {kReciprocal}, {"narrow_quotient"}, kNarrowQuotientText},
      {kNext, {kFloat16, kBFloat16}, {"next_half", "next_float16", "next_bfloat16"}, kNextText},
      {kTensorMap, {}, {"TensorMap", "prefetch_map"}, kTensorMapText},
      {kRing, {}, {"make_ring", "wait_for_phase", "acquire", "commit", "await", "release"}, ring_text()},
      {kHandOver, {kRing}, {"make_hand_overs", "take", "pass"}, hand_over_text()},
      {kBoxStore,
       {kTensorMap},
       {"store_box", "fence_boxes", "commit_boxes", "wait_boxes_read", "wait_boxes"},
       box_store_text()},
      {kGroupBarrier, {}, {"sync_warpgroup"}, group_barrier_text()},
      {kRegisters, {}, {"take_registers", "give_registers"}, registers_text()},
      {kBoxCopy, {kTensorMap}, {"copy_box"}, box_copy_text()},
      {kSharedRing, {kRing}, {"wait_for_rings", "release_in", "drain"}, shared_ring_text()},
      {kSharedBoxCopy, {kTensorMap}, {"copy_box_to"}, shared_box_copy_text()},
      {kClusterStep, {}, {"arrive_in_cluster", "wait_for_cluster"}, cluster_step_text()},
      {kClusterLoad, {}, {"place_in_block", "load_of_block"}, cluster_load_text()},
      {kProducts, {}, {"wait_products", "receive"}, products_text()},
      {kIntegerSums, {}, {"receive_integers"}, integer_sums_text()},
      {kOverlap, {}, {"wait_for_kernels_before", "let_next_kernel_start"}, kOverlapText},
      {kUnpromised, {}, {"unpromised"}, kUnpromisedText},
      {kCopyAsync, {}, {"copy_async", "commit_copies", "wait_copies"}, kCopyAsyncText},
      {kCopyAsyncIf, {kCopyAsync}, {"copy_async_if"}, kCopyAsyncIfText},
      {kCopyAsyncOrZero, {}, {"copy_async_or_zero"}, kCopyAsyncOrZeroText},
      {kPair, {}, {"pair_of", "split"}, pair_text()},
      {kHeld, {}, {"receive_held"}, held_text()},
      {kRenewed, {kHeld}, {"renew_held"}, renewed_text()},
      {kRoundedFloat16, {kFloat16, kPair}, {"float16_pair"}, rounded_float16_text()},
      {kRoundedBFloat16, {kBFloat16, kPair}, {"bfloat16_pair"}, rounded_bfloat16_text()},
      {kFloat16Pair,
       {kFloat16, kPair},
       {"both_of", "add_pair", "sub_pair", "mul_pair", "pair_from"},
       float16_pair_text()},
      {kMatrixLoad, {kPair}, {"load_matrices"}, matrix_load_text()},
      {kMatrixStore, {kPair}, {"store_matrices"}, matrix_store_text()},
      {kMatMulFloat16, {kPair, kFloat16}, {"mma_m16n8k16"}, matmul_text(ScalarType::kFloat16)},
      {kMatMulTf32, {}, {"mma_m16n8k8"}, matmul_text(ScalarType::kFloat32)},
      {kMatMulBFloat16, {kPair, kBFloat16}, {"mma_m16n8k16"}, matmul_text(ScalarType::kBFloat16)},
      {kAtomicInteger, {}, {"atomic_add", "atomic_min", "atomic_max"}, atomic_integer_text()},
      {kAtomicFloat, {}, {}, atomic_float_text()},
      {kAtomicVector, {}, {"atomic_add_vector"}, atomic_vector_text()},
      {kAtomicUpdate, {}, {"atomic_update"}, atomic_update_text()},
      {kAtomicNarrow,
       {kAtomicUpdate},
       {"atomic_narrow_add", "atomic_narrow_min", "atomic_narrow_max"},
       atomic_narrow_text()},
      {kAtomicFloat16, {kFloat16, kMinMax, kAtomicUpdate}, {}, atomic_float16_text()},
      {kAtomicBFloat16, {kBFloat16, kMinMax, kAtomicUpdate}, {}, atomic_bfloat16_text()},
  };
  return all;
}

}  // namespace

std::string prelude_text(const std::set<Helper>& helpers) {
  std::set<Helper> needed = helpers;
  needed.insert(Helper::kTypes);
  // What a definition needs stands before it, so one walk from the end finds everything.
  for (auto d = definitions().rbegin(); d != definitions().rend(); ++d) {
    if (needed.count(d->helper)) needed.insert(d->needs.begin(), d->needs.end());
  }
  std::string text;
  for (const Definition& definition : definitions()) {
    if (!needed.count(definition.helper)) continue;
    if (!text.empty()) text += '\n';
    text += definition.text;
  }
  return text;
}

bool is_prelude_name(const std::string& name) {
  for (const Definition& definition : definitions()) {
    for (const std::string_view defined : definition.names) {
      if (defined == name) return true;
    }
  }
  return false;
}

}  // namespace tc::cuda
