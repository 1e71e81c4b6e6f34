#pragma once

#include <cstdint>
#include <vector>

#include "tc/support/scalar_type.h"
#include "tc/tile/layout.h"

namespace tc::tile {

/// An instruction by which the 32 threads of a warp multiply tiles that their registers hold:
///     d(m, n) += sum over k of a(m, k) * b(k, n)
/// PTX ISA, "Matrix Fragments for mma.m16n8k16" and "... for mma.m16n8k8". A layout maps (thread, value) to an element
/// of the tile. Elements count down the columns of the tile.
struct MatMulAtom {
  const char* name;  ///< unique
  const char* ptx;
  int architecture;  ///< the first that has it, as 80 for sm_80
  int m, n, k;
  ScalarType operand;  ///< of a and b; of a float32 its TF32 part counts
  ScalarType sum;      ///< of d
  Layout a, b, d;
  bool accelerated = false;  ///< only that one architecture has it: sm_90a
};

/// All of them.
const std::vector<MatMulAtom>& matmul_atoms();

/// The one for operands of a type, on an architecture; null: there is none.
const MatMulAtom* find_matmul_atom(ScalarType operand, ScalarType sum, int architecture);

/// An instruction by which the 4 warps of a warpgroup multiply tiles of 16-bit floats, 8-bit floats, 8-bit integers or
/// the TF32 parts of float32 in shared memory, and add to a tile that their registers hold, while they go on (PTX ISA,
/// "wgmma.mma_async"; sm_90a). Sums of integers wrap around:
///     d(m, n) += sum over k of a(m, k) * b(k, n)
/// Thread t has the values 4 j + 2 h + p of d: row 16 (t / 32) + t mod 32 / 4 + 8 h, column 8 j + 2 (t mod 4) + p.
struct WarpgroupAtom {
  static constexpr int kM = 64, kThreads = 128;
  static constexpr int kSliceBytes = 32;          ///< along k
  static constexpr int kMostN = 256, kStepN = 8;  ///< n is any multiple of 8 up to 256; of integers see step_n()
  ScalarType a = ScalarType::kFloat16, b = ScalarType::kFloat16;
  int n = 8;
  /// Of what n is a multiple, where operands have a type. Products of integers have 8 or 24 columns too, or 16 times
  /// any number.
  static int step_n(ScalarType operand) { return is_integer(operand) ? 2 * kStepN : kStepN; }
  ScalarType sum() const { return is_integer(a) ? ScalarType::kInt32 : ScalarType::kFloat32; }
  int k() const { return kSliceBytes / bytes_of(a); }
  int values() const { return n / 2; }                     ///< of d, per thread
  int values_of_a() const { return kM * k() / kThreads; }  ///< of a slice that registers hold, per thread
};

/// Whether wgmma multiplies operands of two types: a 16-bit float or a float32 by its own type, any two 8-bit floats,
/// any two 8-bit integers.
bool has_warpgroup_atom(ScalarType a, ScalarType b);

/// What tensor cores take of a float32: its sign, its exponent and the first 10 bits of its fraction. PTX leaves the
/// other 13 bits unused.
float tf32_part(float value);

/// The bits that an instruction keeps of sums, behind the leading one: of all terms, that of the largest.
struct SumPlaces {
  int terms = 25;
  int sum = 23;
  bool operator==(const SumPlaces&) const = default;
};
SumPlaces sum_places(ScalarType operand);

/// What the instruction computes, on tiles that count down columns. PTX leaves the rounding of sums open. This is what
/// GPUs of compute capability 9.0 do (Khattak and Mikaitis, arXiv 2512.07004): products are exact; they and the old sum
/// are cut to 2 bits below the last place of the largest of them; their sum is cut to a float32. Of 8-bit floats 13
/// bits are left behind the leading one, of the terms and of the sum.
void multiply(const MatMulAtom& atom, const float* a, const float* b, float* d);
/// The same for one element: the products of up to 32 values of a and b, and the old sum.
float add_products(const float* a, const float* b, int count, float sum, SumPlaces places = {});

}  // namespace tc::tile
