#pragma once

#include <cstdint>
#include <optional>

#include "tc/tile/program.h"

namespace tc::tile {

/// How a matrix descriptor finds the elements of a tile in shared memory (PTX ISA, "Matrix descriptor" of
/// wgmma.mma_async, and "Strides"). Rows of 128 bytes lie 128 bytes apart, 8 of them make an atom of 1024 bytes, and
/// the address bits [7, 10) are xored into the bits [4, 7).
///     k in a row (K-major): element (mn, k) is at mn / 8 * stride + mn % 8 * 128 + k * 2, for k below 64
///     mn in a row:          element (mn, k) is at mn / 64 * leading + k / 8 * stride + k % 8 * 128 + mn % 64 * 2
struct MatrixDescriptor {
  bool mn_major = false;
  int64_t leading = 16;   ///< bytes; not used where k lies in a row
  int64_t stride = 1024;  ///< bytes
  int64_t slice = 32;     ///< bytes from one slice of 16 along k to the next

  /// The descriptor's bits for a start address in shared memory, a multiple of 16 bytes.
  uint64_t bits(uint64_t address) const;
};

/// The descriptor of a tile of so many elements along mn, if it lies as one can say.
std::optional<MatrixDescriptor> descriptor_of(const Tensor& tensor, const MatrixTile& tile, int64_t mn, int64_t k);

/// The swizzle of 128-byte rows of 16-bit elements, over offsets in elements.
inline constexpr Swizzle kRowSwizzle = {.bits = 3, .base = 3, .shift = 3};
inline constexpr int64_t kRowElements = 64;

}  // namespace tc::tile
