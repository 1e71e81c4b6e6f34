#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/tile/int_tuple.h"

namespace tc::tile {

/// A function from coordinates to offsets, written shape:stride with both nested alike, in the sense of CuTe.
/// A coordinate may be given mode by mode, or as one integer that counts colexicographically: the first mode
/// runs fastest. ((2,2),4):((1,8),2) maps 0,1,2,3,4,... to 0,1,8,9,2,...
class Layout {
 public:
  /// Offsets of the empty layout: the single coordinate () -> 0.
  Layout() = default;
  /// Throws InternalError unless shape and stride are congruent and all extents positive.
  Layout(IntTuple shape, IntTuple stride);
  /// The layout of `shape` whose offsets count 0, 1, 2, ... in colexicographic order.
  static Layout column_major(const IntTuple& shape);
  /// The layout of `shape` in which the last mode runs fastest.
  static Layout row_major(const IntTuple& shape);

  const IntTuple& shape() const { return shape_; }
  const IntTuple& stride() const { return stride_; }
  int rank() const { return shape_.rank(); }
  /// The i-th mode as a layout.
  Layout operator[](int i) const;
  /// The number of coordinates.
  int64_t size() const { return product(shape_); }
  /// One past the largest offset.
  int64_t cosize() const;
  /// The offset of the index-th coordinate; index may run past size() along the last mode.
  int64_t operator()(int64_t index) const;
  /// The offset of a coordinate; each of its leaves may stand for a whole sub-tuple of the shape.
  int64_t operator()(const IntTuple& coordinate) const;

  bool operator==(const Layout& other) const = default;

 private:
  IntTuple shape_;
  IntTuple stride_;
};

/// "((2,2),4):((1,8),2)".
std::string to_string(const Layout& layout);

/// A layout whose modes are the given ones.
Layout concatenate(const std::vector<Layout>& modes);

/// The same function of one integer with as few modes as possible: modes of extent 1 go, neighbours s0:d and
/// s1:s0*d become s0*s1:d.
Layout coalesce(const Layout& layout);

/// R(c) = A(B(c)), with the shape of B. None where the result is not a layout of this kind: a stride of B that
/// neither divides nor is divided by the extents of A which it crosses, an extent that does not fill them evenly, or
/// modes of B whose sum carries from one mode of A into the next.
std::optional<Layout> composition(const Layout& a, const Layout& b);

/// What `layout` leaves out of [0, size): the layout R with increasing strides such that (layout, R) reaches every
/// offset below `size` (rounded up to a multiple) exactly once. None if layout is not injective or its gaps are not
/// regular.
std::optional<Layout> complement(const Layout& layout, int64_t size);

/// A o (B, complement(B, size(A))): mode 0 runs within a tile of B, mode 1 over the tiles.
std::optional<Layout> logical_divide(const Layout& a, const Layout& tile);

/// (A, complement(A, size(A) * cosize(B)) o B): mode 0 is A, mode 1 lays copies of A out as B says.
std::optional<Layout> logical_product(const Layout& a, const Layout& b);

/// The layout R of largest size such that layout(R(i)) = i.
Layout right_inverse(const Layout& layout);
/// A layout R such that R(layout(i)) = i; none if layout is not injective or its gaps are not regular.
std::optional<Layout> left_inverse(const Layout& layout);

/// The layout over elements `factor` times as large: offsets divided. None if a stride or an extent does not divide.
std::optional<Layout> upcast(const Layout& layout, int64_t factor);
/// The layout over elements `factor` times smaller: the unit-stride mode grows.
Layout downcast(const Layout& layout, int64_t factor);

/// A permutation of offsets by xor: bits [base + shift, base + shift + bits) are xored into bits [base, base + bits).
struct Swizzle {
  int bits = 0;
  int base = 0;
  int shift = 0;  ///< at least `bits`

  int64_t operator()(int64_t offset) const;
  bool operator==(const Swizzle&) const = default;
};

/// "Sw<3,4,3>".
std::string to_string(const Swizzle& swizzle);

}  // namespace tc::tile
