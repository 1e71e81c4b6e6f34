#pragma once

#include <cstdint>
#include <string>

#include "tc/tile/program.h"

/// Tile programs written by hand, for the printer's tests and for machines with a GPU.
namespace tc::cuda::hand_written {

/// C(i) = A(i) + B(i), four elements a thread in one vector; n is a multiple of 1024.
tile::Program vector_add(int64_t n);
/// S(m) = sum of A(m, k): one block a row, shuffles within warps, then through shared memory.
tile::Program row_sum(int64_t rows, int64_t columns);
/// C(m, n) = sum of A(m, k) B(k, n): tiles of 64 x 64 x 16 in two stages of asynchronous copies, 4 x 4 of C a thread.
/// All sizes are multiples of the tile's.
tile::Program matmul(int64_t m, int64_t n, int64_t k);
/// H(I(i)) += 1 and L(I(i)) max= X(i).
tile::Program scatter(int64_t n, int64_t bins);
/// Two launches through a workspace: T(i) = alpha X(i), then Y(i) = T(n - 1 - i).
tile::Program scale_and_reverse(int64_t n);
/// The same launches in the other order: what the first reads the second writes.
tile::Program scale_after_reverse(int64_t n);
/// More shared memory than may be static: Y = X through a buffer of 64 KiB.
tile::Program large_shared();
/// T = X, then Y = T, of m rows of n elements; 32 threads copy a row. The kernels take tensor maps of what they read:
/// of 64 x 32 elements of X from element 32 on, and of T. The second runs in clusters of 2 blocks. m is a multiple of
/// 2, n of 64.
tile::Program with_maps(int64_t m, int64_t n);
/// Y(i) = f(X(i), ...) for an intrinsic of so many arguments, all of one type, on n elements.
tile::Program intrinsic(const std::string& name, const std::vector<Halide::Type>& arguments, Halide::Type result,
                        int64_t n);

}  // namespace tc::cuda::hand_written
