#pragma once

#include <string>
#include <vector>

#include "tc/tile/build.h"
#include "tc/tile/simulate.h"

/// Kernels written by hand, with float32 data of small integers, so that results are exact.
namespace tc::tile {

struct Sample {
  Program program;
  std::map<std::string, std::vector<float>> inputs;
  std::string output;
  std::vector<float> expected;
};

/// C(i) = A(i) + B(i), 128 threads a block, the last block partial.
Sample vector_add(int n);
/// out(r) = sum over c of in(r, c): a block a row, strided loads, shuffles, then warps through shared memory.
Sample row_sums(int rows, int columns, int threads);
/// C = A B with 16 x 16 tiles in shared memory; sizes need not be multiples.
Sample tiled_matmul(int m, int n, int k);
/// C = A B, 32 x 32 tiles of which a thread computes 2 x 4, two stages filled by asynchronous copies of 16 bytes.
/// m and n multiples of 32, k of 16.
Sample pipelined_matmul(int m, int n, int k);
/// B(j, i) = A(i, j) by 32 x 32 tiles; the shared tile is padded, or swizzled, or neither.
enum class Spread { kNone, kPadded, kSwizzled };
Sample transpose(int n, Spread spread);
/// C = A B of float16 by tensor cores: m and n multiples of 16, k of 16; a block of one warp each 16 x 16. Operands are
/// loaded as matrices, along the reduction or across it.
struct TensorCoreProduct {
  int m = 32, n = 32, k = 48;
  bool a_transposed = false, b_transposed = false;  ///< where they are in shared memory
};
Sample tensor_core_product(const TensorCoreProduct& shape);
/// histogram(keys(i)) += 1 with atomics; keys are int32 in [0, bins).
Program histogram(int n, int bins);

struct Outcome {
  std::vector<float> output;
  Report report;
};
Outcome run(const Sample& sample, const SimulatorOptions& options = {});
/// "" if the output is as expected and there are no findings; otherwise what is wrong.
std::string complaint(const Sample& sample, const SimulatorOptions& options = {});

}  // namespace tc::tile
