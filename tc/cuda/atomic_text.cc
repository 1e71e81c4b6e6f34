#include "tc/cuda/atomic_text.h"

namespace tc::cuda {
namespace {

constexpr std::string_view kAtomicIntegerText =
    R"(__device__ __forceinline__ void atomic_add(int* p, int x) { atomicAdd(p, x); }
__device__ __forceinline__ void atomic_min(int* p, int x) { atomicMin(p, x); }
__device__ __forceinline__ void atomic_max(int* p, int x) { atomicMax(p, x); }
__device__ __forceinline__ void atomic_add(uint32* p, uint32 x) { atomicAdd(p, x); }
__device__ __forceinline__ void atomic_min(uint32* p, uint32 x) { atomicMin(p, x); }
__device__ __forceinline__ void atomic_max(uint32* p, uint32 x) { atomicMax(p, x); }
__device__ __forceinline__ void atomic_add(int64* p, int64 x) { atomicAdd((uint64*)p, uint64(x)); }
__device__ __forceinline__ void atomic_min(int64* p, int64 x) { atomicMin(p, x); }
__device__ __forceinline__ void atomic_max(int64* p, int64 x) { atomicMax(p, x); }
__device__ __forceinline__ void atomic_add(uint64* p, uint64 x) { atomicAdd(p, x); }
__device__ __forceinline__ void atomic_min(uint64* p, uint64 x) { atomicMin(p, x); }
__device__ __forceinline__ void atomic_max(uint64* p, uint64 x) { atomicMax(p, x); }
)";

constexpr std::string_view kAtomicFloatText =
    R"(// Floats of one sign are ordered as their bits are, negative ones the other way round. A NaN wins and stays: it is
// written with the sign that makes it the extreme, and one that is there already is left alone.
__device__ __forceinline__ void atomic_add(float* p, float x) { atomicAdd(p, x); }
__device__ __forceinline__ void atomic_min(float* p, float x) {
  const float old = *(volatile float*)p;
  if (old != old) return;
  const int bits = x != x ? int(0xffffffffu) : __float_as_int(x);
  if (bits >= 0) {
    atomicMin((int*)p, bits);
  } else {
    atomicMax((uint32*)p, uint32(bits));
  }
}
__device__ __forceinline__ void atomic_max(float* p, float x) {
  const float old = *(volatile float*)p;
  if (old != old) return;
  const int bits = x != x ? 0x7fffffff : __float_as_int(x);
  if (bits >= 0) {
    atomicMax((int*)p, bits);
  } else {
    atomicMin((uint32*)p, uint32(bits));
  }
}
__device__ __forceinline__ void atomic_add(double* p, double x) { atomicAdd(p, x); }
__device__ __forceinline__ void atomic_min(double* p, double x) {
  const double old = *(volatile double*)p;
  if (old != old) return;
  const int64 bits = x != x ? int64(-1) : __double_as_longlong(x);
  if (bits >= 0) {
    atomicMin((int64*)p, bits);
  } else {
    atomicMax((uint64*)p, uint64(bits));
  }
}
__device__ __forceinline__ void atomic_max(double* p, double x) {
  const double old = *(volatile double*)p;
  if (old != old) return;
  const int64 bits = x != x ? 0x7fffffffffffffffll : __double_as_longlong(x);
  if (bits >= 0) {
    atomicMax((int64*)p, bits);
  } else {
    atomicMin((uint64*)p, uint64(bits));
  }
}
)";

constexpr std::string_view kAtomicVectorText =
    R"(// To p[0] ... p[elements - 1], each by itself; p is aligned to all of them.
template <int elements>
__device__ __forceinline__ void atomic_add_vector(float* p, const float* x) {
#if __CUDA_ARCH__ >= 900 && (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 1))
  if (elements == 4) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "f"(x[0]),
                 "f"(x[1]), "f"(x[elements / 2]), "f"(x[elements - 1]) : "memory");
  } else {
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "f"(x[0]), "f"(x[1])
                 : "memory");
  }
#else
  #pragma unroll
  for (int i = 0; i < elements; ++i) atomicAdd(p + i, x[i]);
#endif
}
)";

constexpr std::string_view kAtomicUpdateText = R"(// *p = update(*p), by compare and swap.
template <typename Update>
__device__ __forceinline__ void atomic_update(uint16* p, Update update) {
  uint16 old = *(volatile uint16*)p;
  for (;;) {
    const uint16 next = update(old);
    if (next == old) return;
    const uint16 seen = atomicCAS((unsigned short*)p, old, next);
    if (seen == old) return;
    old = seen;
  }
}
template <typename Update>
__device__ __forceinline__ void atomic_update(uint8* p, Update update) {
  uint32* const word = (uint32*)((uint64)p & ~uint64(3));
  const uint32 shift = 8 * uint32((uint64)p & 3);
  uint32 old = *(volatile uint32*)word;
  for (;;) {
    const uint8 byte = uint8(old >> shift);
    const uint8 next = update(byte);
    if (next == byte) return;
    const uint32 seen = atomicCAS(word, old, (old & ~(0xffu << shift)) | (uint32(next) << shift));
    if (seen == old) return;
    old = seen;
  }
}
)";

constexpr std::string_view kAtomicNarrowText = R"(template <typename T, typename Bits>
__device__ __forceinline__ void atomic_narrow_add(T* p, T x) {
  atomic_update((Bits*)p, [=](Bits old) { return Bits(old + Bits(x)); });
}
template <typename T, typename Bits>
__device__ __forceinline__ void atomic_narrow_min(T* p, T x) {
  atomic_update((Bits*)p, [=](Bits old) { return T(old) < x ? old : Bits(x); });
}
template <typename T, typename Bits>
__device__ __forceinline__ void atomic_narrow_max(T* p, T x) {
  atomic_update((Bits*)p, [=](Bits old) { return T(old) > x ? old : Bits(x); });
}
__device__ __forceinline__ void atomic_add(int8* p, int8 x) { atomic_narrow_add<int8, uint8>(p, x); }
__device__ __forceinline__ void atomic_min(int8* p, int8 x) { atomic_narrow_min<int8, uint8>(p, x); }
__device__ __forceinline__ void atomic_max(int8* p, int8 x) { atomic_narrow_max<int8, uint8>(p, x); }
__device__ __forceinline__ void atomic_add(uint8* p, uint8 x) { atomic_narrow_add<uint8, uint8>(p, x); }
__device__ __forceinline__ void atomic_min(uint8* p, uint8 x) { atomic_narrow_min<uint8, uint8>(p, x); }
__device__ __forceinline__ void atomic_max(uint8* p, uint8 x) { atomic_narrow_max<uint8, uint8>(p, x); }
__device__ __forceinline__ void atomic_add(int16* p, int16 x) { atomic_narrow_add<int16, uint16>(p, x); }
__device__ __forceinline__ void atomic_min(int16* p, int16 x) { atomic_narrow_min<int16, uint16>(p, x); }
__device__ __forceinline__ void atomic_max(int16* p, int16 x) { atomic_narrow_max<int16, uint16>(p, x); }
__device__ __forceinline__ void atomic_add(uint16* p, uint16 x) { atomic_narrow_add<uint16, uint16>(p, x); }
__device__ __forceinline__ void atomic_min(uint16* p, uint16 x) { atomic_narrow_min<uint16, uint16>(p, x); }
__device__ __forceinline__ void atomic_max(uint16* p, uint16 x) { atomic_narrow_max<uint16, uint16>(p, x); }
)";

constexpr std::string_view kAtomicFloat16Text = R"(__device__ __forceinline__ void atomic_add(float16* p, float x) {
  atomic_update(&p->bits, [=](uint16 old) { return to_float16(to_float(float16{old}) + x).bits; });
}
__device__ __forceinline__ void atomic_min(float16* p, float x) {
  atomic_update(&p->bits, [=](uint16 old) { return to_float16(min_nan(to_float(float16{old}), x)).bits; });
}
__device__ __forceinline__ void atomic_max(float16* p, float x) {
  atomic_update(&p->bits, [=](uint16 old) { return to_float16(max_nan(to_float(float16{old}), x)).bits; });
}
)";

constexpr std::string_view kAtomicBFloat16Text = R"(__device__ __forceinline__ void atomic_add(bfloat16* p, float x) {
  atomic_update(&p->bits, [=](uint16 old) { return to_bfloat16(to_float(bfloat16{old}) + x).bits; });
}
__device__ __forceinline__ void atomic_min(bfloat16* p, float x) {
  atomic_update(&p->bits, [=](uint16 old) { return to_bfloat16(min_nan(to_float(bfloat16{old}), x)).bits; });
}
__device__ __forceinline__ void atomic_max(bfloat16* p, float x) {
  atomic_update(&p->bits, [=](uint16 old) { return to_bfloat16(max_nan(to_float(bfloat16{old}), x)).bits; });
}
)";

}  // namespace

std::string_view atomic_integer_text() { return kAtomicIntegerText; }
std::string_view atomic_float_text() { return kAtomicFloatText; }
std::string_view atomic_vector_text() { return kAtomicVectorText; }
std::string_view atomic_update_text() { return kAtomicUpdateText; }
std::string_view atomic_narrow_text() { return kAtomicNarrowText; }
std::string_view atomic_float16_text() { return kAtomicFloat16Text; }
std::string_view atomic_bfloat16_text() { return kAtomicBFloat16Text; }

}  // namespace tc::cuda
