#pragma once

#include <cstdint>
#include <optional>

#include "tc/tile/program.h"

namespace tc::tile {

/// How a matrix descriptor finds the elements of a tile in shared memory (PTX ISA, "Matrix descriptor" of
/// wgmma.mma_async, and "Strides"). Rows of 128 bytes lie 128 bytes apart, 8 of them make an atom of 1024 bytes, and
/// the address bits [7, 10) are xored into the bits [4, 7).
///     k in a row (K-major): element (mn, k) is at mn / 8 * stride + mn % 8 * 128 + k * bytes, within a row
///     mn in a row:          element (mn, k) is at mn / 64 * leading + k / 8 * stride + k % 8 * 128 + mn % 64 * 2
/// Only 16-bit elements may lie with mn in a row.
struct MatrixDescriptor {
  bool mn_major = false;
  int64_t leading = 16;   ///< bytes; not used where k lies in a row
  int64_t stride = 1024;  ///< bytes
  int64_t slice = 32;     ///< bytes from one slice along k, of one instruction, to the next

  /// The descriptor's bits for a start address in shared memory, a multiple of 16 bytes.
  uint64_t bits(uint64_t address) const;
};

/// The descriptor of a tile of so many elements along mn, if it lies as one can say.
std::optional<MatrixDescriptor> descriptor_of(const Tensor& tensor, const MatrixTile& tile, int64_t mn, int64_t k);

/// Rows of 128 bytes, of elements of so many bytes: how many they have, and their swizzle over offsets in elements.
constexpr int64_t row_elements(int64_t bytes) { return 128 / bytes; }
constexpr Swizzle row_swizzle(int64_t bytes) {
  return {.bits = 3, .base = bytes == 1 ? 4 : bytes == 2 ? 3 : 2, .shift = 3};
}

}  // namespace tc::tile
