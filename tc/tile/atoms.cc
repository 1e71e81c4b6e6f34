#include "tc/tile/atoms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tc::tile {
namespace {

MatMulAtom m16n8k16(const char* name, const char* ptx, ScalarType operand) {
  return {.name = name,
          .ptx = ptx,
          .architecture = 80,
          .m = 16,
          .n = 8,
          .k = 16,
          .operand = operand,
          .sum = ScalarType::kFloat32,
          .a = Layout({{4, 8}, {2, 2, 2}}, {{32, 1}, {16, 8, 128}}),
          .b = Layout({{4, 8}, {2, 2}}, {{2, 16}, {1, 8}}),
          .d = Layout({{4, 8}, {2, 2}}, {{32, 1}, {16, 8}})};
}

/// A sum of products and an old sum, cut as multiply() says.
float cut_sum(const double* terms, int count) {
  constexpr int kPlaces = 23 + 2;  // of the largest term, behind its point
  double plain = 0;
  int largest = std::numeric_limits<int>::min();
  for (int i = 0; i < count; ++i) {
    plain += terms[i];
    if (terms[i] != 0 && std::isfinite(terms[i])) largest = std::max(largest, std::ilogb(terms[i]));
  }
  if (!std::isfinite(plain) || largest == std::numeric_limits<int>::min()) return static_cast<float>(plain);
  int64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<int64_t>(std::ldexp(terms[i], kPlaces - largest));
  const double exact = std::ldexp(static_cast<double>(sum), largest - kPlaces);
  const auto rounded = static_cast<float>(exact);
  return std::abs(static_cast<double>(rounded)) > std::abs(exact) ? std::nextafter(rounded, 0.0F) : rounded;
}

}  // namespace

const std::vector<MatMulAtom>& matmul_atoms() {
  static const std::vector<MatMulAtom> atoms = {
      m16n8k16("mma.m16n8k16.f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", ScalarType::kFloat16),
      m16n8k16("mma.m16n8k16.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", ScalarType::kBFloat16)};
  return atoms;
}

const MatMulAtom* find_matmul_atom(ScalarType operand, ScalarType sum, int architecture) {
  for (const MatMulAtom& atom : matmul_atoms()) {
    if (atom.operand == operand && atom.sum == sum && atom.architecture <= architecture) return &atom;
  }
  return nullptr;
}

void multiply(const MatMulAtom& atom, const float* a, const float* b, float* d) {
  constexpr int kMostTerms = 64;
  std::array<double, kMostTerms + 1> terms{};
  for (int n = 0; n < atom.n; ++n) {
    for (int m = 0; m < atom.m; ++m) {
      float& sum = d[m + atom.m * n];
      for (int k = 0; k < atom.k; ++k) {
        terms[static_cast<size_t>(k)] = static_cast<double>(a[m + atom.m * k]) * static_cast<double>(b[k + atom.k * n]);
      }
      terms[static_cast<size_t>(atom.k)] = static_cast<double>(sum);
      sum = cut_sum(terms.data(), atom.k + 1);
    }
  }
}

}  // namespace tc::tile
