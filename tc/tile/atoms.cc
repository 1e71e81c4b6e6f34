#include "tc/tile/atoms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tc/support/check.h"

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

/// Of TF32: a thread has one value where it has two neighbours of 16 bits.
MatMulAtom m16n8k8() {
  return {.name = "mma.m16n8k8.tf32",
          .ptx = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
          .architecture = 80,
          .m = 16,
          .n = 8,
          .k = 8,
          .operand = ScalarType::kFloat32,
          .sum = ScalarType::kFloat32,
          .a = Layout({{4, 8}, {2, 2}}, {{16, 1}, {8, 64}}),
          .b = Layout({{4, 8}, 2}, {{1, 8}, 4}),
          .d = Layout({{4, 8}, {2, 2}}, {{32, 1}, {16, 8}})};
}

}  // namespace

const std::vector<MatMulAtom>& matmul_atoms() {
  static const std::vector<MatMulAtom> atoms = {
      m16n8k16("mma.m16n8k16.f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", ScalarType::kFloat16),
      m16n8k16("mma.m16n8k16.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", ScalarType::kBFloat16),
      m16n8k8()};
  return atoms;
}

const MatMulAtom* find_matmul_atom(ScalarType operand, ScalarType sum, int architecture) {
  for (const MatMulAtom& atom : matmul_atoms()) {
    if (atom.operand == operand && atom.sum == sum && atom.architecture <= architecture) return &atom;
  }
  return nullptr;
}

bool has_warpgroup_atom(ScalarType a, ScalarType b) {
  if (is_float8(a)) return is_float8(b);
  const auto is_byte = [](ScalarType type) { return is_integer(type) && bits_of(type) == 8; };
  if (is_byte(a)) return is_byte(b);
  return a == b && (a == ScalarType::kFloat16 || a == ScalarType::kBFloat16 || a == ScalarType::kFloat32);
}

float tf32_part(float value) {
  constexpr uint32_t kUnused = 13;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & ~uint32_t{0} << kUnused);
}

SumPlaces sum_places(ScalarType operand) { return is_float8(operand) ? SumPlaces{13, 13} : SumPlaces{}; }

float add_products(const float* a, const float* b, int count, float sum, SumPlaces places) {
  constexpr int kMost = 32;
  constexpr int kExponent = 52, kBias = 1023, kFraction = 23;
  TC_CHECK(count <= kMost, "{} products are more than {}", count, kMost);
  std::array<double, kMost> terms;
  double plain = sum, largest = std::abs(plain);
  for (int i = 0; i < count; ++i) {
    const double term = static_cast<double>(a[i]) * static_cast<double>(b[i]);
    terms[static_cast<size_t>(i)] = term;
    plain += term;
    largest = std::max(largest, std::abs(term));
  }
  if (!std::isfinite(plain) || largest == 0) return static_cast<float>(plain);
  // No product of two floats is as small as a double without its leading 1.
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(largest) >> kExponent) - kBias;
  const auto power = [](int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + kBias) << kExponent); };
  const double scale = power(places.terms - exponent);
  auto total = static_cast<int64_t>(static_cast<double>(sum) * scale);
  for (int i = 0; i < count; ++i) total += static_cast<int32_t>(terms[static_cast<size_t>(i)] * scale);
  const double exact = static_cast<double>(total) * power(exponent - places.terms);
  auto cut = static_cast<float>(exact);
  if (std::abs(static_cast<double>(cut)) > std::abs(exact)) cut = std::nextafter(cut, 0.0F);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(cut) & ~uint32_t{0} << (kFraction - places.sum));
}

void multiply(const MatMulAtom& atom, const float* a, const float* b, float* d) {
  std::array<float, 16> row{}, column{};
  const auto taken = [&](float value) { return atom.operand == ScalarType::kFloat32 ? tf32_part(value) : value; };
  TC_CHECK(atom.k <= static_cast<int>(row.size()), "{} has {} products for an element", atom.name, atom.k);
  for (int m = 0; m < atom.m; ++m) {
    for (int k = 0; k < atom.k; ++k) row[static_cast<size_t>(k)] = taken(a[m + atom.m * k]);
    for (int n = 0; n < atom.n; ++n) {
      for (int k = 0; k < atom.k; ++k) column[static_cast<size_t>(k)] = taken(b[k + atom.k * n]);
      float& sum = d[m + atom.m * n];
      sum = add_products(row.data(), column.data(), atom.k, sum);
    }
  }
}

}  // namespace tc::tile
