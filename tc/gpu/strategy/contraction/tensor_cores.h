#pragma once

#include <optional>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/gpu/strategy/contraction/shapes.h"

/// Contractions by products of tiles. A block's rows and columns are dealt out as the atom deals out its own:
///     row    = register * threads + thread                  a warp's 8 neighbours are 8 threads
///     column = (high * threads + thread) * 2 + low          a warp's 8 neighbours are 4 threads with 2 registers each
/// with the threads of all warps along a side counted through. So sums are where those of any other plan are, and what
/// is done to them is the same.
namespace tc::gpu {

/// Whether the text rounds an operand of a product to TF32, and memory has other numbers.
bool needs_rounding(const Contraction& contraction, const Operand& operand);

/// Whether a contraction is the sum of products of two operands that an atom or warpgroups take, each of which has
/// parallel axes to itself; and by which atom. Float32 operands are rounded to TF32 by the text, or `may_cut`
/// says that the instruction may drop their low bits. The rest of the plan's
/// TensorCores is not set.
std::optional<TensorCores> tensor_cores_of(const Contraction& contraction, const Classes& classes, const Device& device,
                                           bool may_cut);

/// Tiles that are tried, those of a block by those of its warps.
struct AtomShape {
  int64_t row_threads = 8, row_registers = 2;        ///< of a block, and of a thread
  int64_t column_threads = 4, column_registers = 2;  ///< registers are neighbours by two
  int64_t groups = 1;
  int64_t chunk = 16;
  bool one_of_others = false;  ///< a step has one value of each other reduction axis, not all of a short one
  bool operator==(const AtomShape&) const = default;
};
/// `is_inner`: other reduction axes run around the main one.
std::vector<AtomShape> atom_shapes(const Contraction& contraction, size_t main, const tile::MatMulAtom& atom,
                                   bool is_inner);

/// Deals a side's threads and registers out to its axes, the fastest first, so that little of a tile lies outside.
/// `group` neighbours along the first axis stay together. False: they do not divide so.
bool deal_out(const Contraction& contraction, const std::vector<size_t>& axes, int64_t threads, int64_t registers,
              int64_t group, ContractionPlan& plan);

/// Why a plan's tiles and steps are none for its atom; empty: they are.
std::string atom_fault(const Contraction& contraction, const ContractionPlan& plan);

/// How threads read an operand whose box is known.
FragmentRead fragment_read(const Contraction& contraction, size_t operand, const ContractionPlan& plan);

/// A point of a side of a tile: the register of each of its axes, by number. Registers along the first axis are
/// neighbours.
std::vector<int64_t> registers_of_point(const std::vector<size_t>& axes, int64_t point, const ContractionPlan& plan);

/// Where the threads of the first warp read an operand at once, per thread and dimension of its box.
std::vector<std::vector<int64_t>> atom_reads(const Contraction& contraction, size_t operand,
                                             const ContractionPlan& plan);

/// What a thread of a warp reads by one instruction: values of the side's axes, and of the reduction.
template <typename Number>
struct SidePlace {
  Number thread;  ///< number along the side, in its warp
  Number low;     ///< register of the first column axis, of two
  Number point;   ///< 0 or 1: the first or the second row (pair of columns) of the two that are read at once
  Number k;       ///< of the atom's
};

/// The row that a thread names in a load of four matrices. They are the fragment of an atom's `a`, or of two atoms'
/// `b`.
///     a: rows 0-7, rows 8-15; then the same of the other half of k.
///     b: both halves of k; then the same of the second atom.
template <typename Number>
SidePlace<Number> matrix_place(const Number& lane, bool is_a, bool along) {
  const Number in_matrix = lane % 8, matrix = lane / 8;
  const Number point = is_a ? Number(matrix % 2) : Number(matrix / 2);
  const Number half = (is_a ? Number(matrix / 2) : Number(matrix % 2)) * 8;
  if (!along) return {Number(0), Number(0), point, half + in_matrix};
  if (is_a) return {in_matrix, Number(0), point, half};
  return {in_matrix / 2, in_matrix % 2, point, half};
}

/// The place of one value of a thread, read by itself.
template <typename Number>
SidePlace<Number> value_place(const tile::MatMulAtom& atom, const Number& lane, int value, bool is_a) {
  const tile::Layout& layout = is_a ? atom.a : atom.b;
  const int rows = is_a ? atom.m : atom.k;  // of the column-major tile
  const auto at = static_cast<int>(layout({0, value}));
  const std::vector<int64_t> strides = tile::flatten(layout.stride()[0]);
  Number first = 0, second = 0;  // no sum of the first carries into the second
  for (size_t digit = 0; digit < 2; ++digit) {
    const Number thread = digit == 0 ? Number(lane % 4) : Number(lane / 4);
    const auto stride = static_cast<int>(strides[digit]);
    if (stride < rows) first = first + thread * stride;
    if (stride >= rows) second = second + thread * (stride / rows);
  }
  if (is_a) return {first, Number(0), Number(at % rows / 8), second + at / rows};
  return {second / 2, second % 2, Number(0), first + at % rows};
}

}  // namespace tc::gpu
