#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "tc/tile/machine.h"

/// What the threads of a warp do together on tiles.
namespace tc::tile {

void Machine::matmul(Warp& warp, const CodeMatMul& n) {
  const MatMulAtom& atom = *n.atom;
  if (!is_together(warp, code_.accesses[n.d[0]].site, "product")) return;
  const auto gather = [&](const std::vector<int>& accesses, const Layout& layout, int elements) {
    std::vector<float> tile(static_cast<size_t>(elements));
    for (size_t v = 0; v < accesses.size(); ++v) {
      Lanes values;
      load_elements(warp, accesses[v], 0, warp.mask, values);
      for (int t = 0; t < kLanes; ++t) tile[static_cast<size_t>(layout({t, static_cast<int64_t>(v)}))] = values.f[t];
    }
    return tile;
  };
  const std::vector<float> a = gather(n.a, atom.a, atom.m * atom.k), b = gather(n.b, atom.b, atom.k * atom.n);
  std::vector<float> d = gather(n.d, atom.d, atom.m * atom.n);
  multiply(atom, a.data(), b.data(), d.data());
  for (size_t v = 0; v < n.d.size(); ++v) {
    Lanes values;
    for (int t = 0; t < kLanes; ++t) values.f[t] = d[static_cast<size_t>(atom.d({t, static_cast<int64_t>(v)}))];
    store_elements(warp, n.d[v], 0, values, warp.mask);
  }
}

namespace {

/// Threads of a warp that say where the rows of so many matrices are.
uint32_t naming_threads(int matrices) {
  constexpr int kWarp = 32;
  return matrices * kMatrixRow >= kWarp ? ~uint32_t{0} : (uint32_t{1} << matrices * kMatrixRow) - 1;
}

/// Where a matrix has the value of a thread: (row, element).
std::pair<int, int> place_of(int thread, int value, bool transposed) {
  const int first = 2 * (thread % 4) + value, second = thread / 4;
  return transposed ? std::pair(first, second) : std::pair(second, first);
}

}  // namespace

void Machine::matrix_load(Warp& warp, const CodeMatrixLoad& n) {
  const Access& from = code_.accesses[n.source];
  if (!is_together(warp, from.site, "load")) return;
  const uint32_t mask = in_bounds(warp, from, warp.mask, kMatrixRow, "reads");
  check_alignment(warp, from, mask, kMatrixRow);
  const auto matrices = static_cast<int>(n.destination.size()) / 2;
  const uint32_t naming = naming_threads(matrices);
  count(warp, from, mask & naming, kMatrixRow, false);
  std::array<Lanes, kMatrixRow> rows{};  // by element, then by the thread that names the row
  for (int e = 0; e < kMatrixRow; ++e) load_elements(warp, n.source, e, mask & naming, rows[static_cast<size_t>(e)]);
  for (int i = 0; i < matrices; ++i) {
    for (int j = 0; j < 2; ++j) {
      Lanes values;
      for (int t = 0; t < kLanes; ++t) {
        const auto [row, element] = place_of(t, j, n.transposed);
        values.f[t] = rows[static_cast<size_t>(element)].f[kMatrixRow * i + row];
      }
      store_elements(warp, n.destination[static_cast<size_t>(2 * i + j)], 0, values, warp.mask);
    }
  }
}

void Machine::matrix_store(Warp& warp, const CodeMatrixStore& n) {
  const Access& to = code_.accesses[n.destination];
  if (!is_together(warp, to.site, "store")) return;
  const auto matrices = static_cast<int>(n.source.size()) / 2;
  const uint32_t mask = in_bounds(warp, to, warp.mask & naming_threads(matrices), kMatrixRow, "writes");
  check_alignment(warp, to, mask, kMatrixRow);
  count(warp, to, mask, kMatrixRow, true);
  std::array<Lanes, kMatrixRow> rows{};  // by element, then by the thread that names the row
  for (int i = 0; i < matrices; ++i) {
    for (int j = 0; j < 2; ++j) {
      Lanes values;
      load_elements(warp, n.source[static_cast<size_t>(2 * i + j)], 0, warp.mask, values);
      for (int t = 0; t < kLanes; ++t) {
        const auto [row, element] = place_of(t, j, n.transposed);
        rows[static_cast<size_t>(element)].f[kMatrixRow * i + row] = values.f[t];
      }
    }
  }
  for (int e = 0; e < kMatrixRow; ++e) store_elements(warp, n.destination, e, rows[static_cast<size_t>(e)], mask);
}

}  // namespace tc::tile
