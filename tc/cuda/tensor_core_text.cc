#include "tc/cuda/tensor_core_text.h"

#include <fmt/format.h>

#include <map>

#include "tc/tile/atoms.h"

namespace tc::cuda {
namespace {

constexpr std::string_view kPairText = R"(template <typename Half>
__device__ __forceinline__ uint32 pair_of(Half low, Half high) {
  return uint32(low.bits) | uint32(high.bits) << 16;
}
template <typename Half>
__device__ __forceinline__ void split(uint32 pair, Half& low, Half& high) {
  low.bits = uint16(pair);
  high.bits = uint16(pair >> 16);
}
)";

constexpr std::string_view kMatrixLoadText =
    R"(// Matrices of 8 rows of 8 elements: each thread names a row, and gets two elements of each matrix.
template <bool transposed, typename Half>
__device__ __forceinline__ void load_matrices(const Half* row, Half& a0, Half& a1) {
  uint32 p;
  const uint32 address = uint32(__cvta_generic_to_shared(row));
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(p) : "r"(address) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(p) : "r"(address) : "memory");
  }
  split(p, a0, a1);
}
template <bool transposed, typename Half>
__device__ __forceinline__ void load_matrices(const Half* row, Half& a0, Half& a1, Half& a2, Half& a3) {
  uint32 p, q;
  const uint32 address = uint32(__cvta_generic_to_shared(row));
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(p), "=r"(q) : "r"(address) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(p), "=r"(q) : "r"(address) : "memory");
  }
  split(p, a0, a1);
  split(q, a2, a3);
}
template <bool transposed, typename Half>
__device__ __forceinline__ void load_matrices(const Half* row, Half& a0, Half& a1, Half& a2, Half& a3, Half& a4,
                                              Half& a5, Half& a6, Half& a7) {
  uint32 p, q, r, s;
  const uint32 address = uint32(__cvta_generic_to_shared(row));
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(p), "=r"(q), "=r"(r), "=r"(s) : "r"(address) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(p), "=r"(q), "=r"(r), "=r"(s) : "r"(address) : "memory");
  }
  split(p, a0, a1);
  split(q, a2, a3);
  split(r, a4, a5);
  split(s, a6, a7);
}
)";

constexpr std::string_view kMatrixStoreText =
    R"(// Matrices of 8 rows of 8 elements: each thread names a row, and has two elements of each matrix.
template <bool transposed, typename Half>
__device__ __forceinline__ void store_matrices(Half* row, Half a0, Half a1) {
  const uint32 address = uint32(__cvta_generic_to_shared(row)), p = pair_of(a0, a1);
  if (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" :: "r"(address), "r"(p) : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(address), "r"(p) : "memory");
  }
}
template <bool transposed, typename Half>
__device__ __forceinline__ void store_matrices(Half* row, Half a0, Half a1, Half a2, Half a3) {
  const uint32 address = uint32(__cvta_generic_to_shared(row)), p = pair_of(a0, a1), q = pair_of(a2, a3);
  if (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"(address), "r"(p), "r"(q) : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 :: "r"(address), "r"(p), "r"(q) : "memory");
  }
}
template <bool transposed, typename Half>
__device__ __forceinline__ void store_matrices(Half* row, Half a0, Half a1, Half a2, Half a3, Half a4, Half a5, Half a6,
                                               Half a7) {
  const uint32 address = uint32(__cvta_generic_to_shared(row));
  const uint32 p = pair_of(a0, a1), q = pair_of(a2, a3), r = pair_of(a4, a5), s = pair_of(a6, a7);
  if (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(address), "r"(p), "r"(q), "r"(r), "r"(s) : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(address), "r"(p), "r"(q), "r"(r), "r"(s) : "memory");
  }
}
)";

/// "x0, x1" with a format for each number.
std::string listed(const char* format, int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) text += (i == first ? "" : ", ") + fmt::format(fmt::runtime(format), i);
  return text;
}

/// A function that overloads on the type of the operands. None of the instruction's operands is both read and written:
/// NVVM has lost copies into such.
std::string matmul_text(const tile::MatMulAtom& atom) {
  const auto values = [](const tile::Layout& layout) { return static_cast<int>(layout[1].size()); };
  const int in_register = 4 / bytes_of(atom.operand);  // values
  const std::string type(in_register == 1 ? "float" : name_of(atom.operand));
  const int d = values(atom.d), a = values(atom.a) / in_register, b = values(atom.b) / in_register;
  const auto registers = [&](char name, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const std::string value = in_register == 1 ? fmt::format("__float_as_uint({}{})", name, i)
                                                 : fmt::format("pair_of({}{}, {}{})", name, 2 * i, name, 2 * i + 1);
      text += fmt::format("{}\"r\"({})", i == 0 ? "" : ", ", value);
    }
    return text;
  };
  return fmt::format(
      "// d += a * b on tiles of {0} x {1}, {0} x {2} and {2} x {1} that a warp holds.\n"
      "#if __CUDA_ARCH__ < {16}\n#error \"this kernel has instructions of sm_{17}\"\n#endif\n"
      "__device__ __forceinline__ void mma_m{0}n{1}k{2}({3},\n    {4},\n    {5}) {{\n"
      "  const float {6};\n"
      "  asm volatile(\"{7} {{{8}}}, {{{9}}}, {{{10}}}, {{{11}}};\"\n"
      "               : {12}\n               : {13},\n                 {14}, {15});\n}}\n",
      atom.m, atom.n, atom.k, listed("float& d{}", 0, d), listed((type + " a{}").c_str(), 0, in_register * a),
      listed((type + " b{}").c_str(), 0, in_register * b), listed("c{0} = d{0}", 0, d), atom.ptx, listed("%{}", 0, d),
      listed("%{}", d, a), listed("%{}", d + a, b), listed("%{}", d + a + b, d), listed("\"=f\"(d{})", 0, d),
      registers('a', a), registers('b', b), listed("\"f\"(c{})", 0, d), 10 * atom.architecture, atom.architecture);
}

}  // namespace

std::string_view pair_text() { return kPairText; }
std::string_view matrix_load_text() { return kMatrixLoadText; }
std::string_view matrix_store_text() { return kMatrixStoreText; }

const std::string& matmul_text(ScalarType operand) {
  static const std::map<ScalarType, std::string> texts = [] {
    std::map<ScalarType, std::string> result;
    for (const tile::MatMulAtom& atom : tile::matmul_atoms()) result[atom.operand] += matmul_text(atom);
    return result;
  }();
  return texts.at(operand);
}

}  // namespace tc::cuda
