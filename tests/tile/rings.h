#pragma once

#include <span>
#include <string>
#include <vector>

#include "tc/support/scalar_type.h"
#include "tc/tile/build.h"
#include "tc/tile/simulate.h"

/// Products by warpgroups that read a ring of shared buffers, written by hand.
namespace tc::tile {

/// C = A B of 16-bit or 8-bit floats, C float32: a block of 2 warpgroups and a thread that fills the ring each 128 x n.
struct RingProduct {
  int m = 128, n = 64, k = 192;
  int tile_n = 64;
  int stages = 3;
  bool a_transposed = false, b_transposed = false;  ///< in global memory: A is (k, m), B is (n, k)
  ScalarType a = ScalarType::kFloat16, b = ScalarType::kFloat16;
  bool two_levels = false;    ///< the products of a turn start a sum of their own, which is then added in float32
  bool releases_late = true;  ///< a turn when the products of the next one have been started
  bool releases_last = true;
  int tiles = 1;        ///< of a block, one after the other along n
  int first_turns = 0;  ///< if not 0: of a loop of its own before the other turns of a tile

  int row() const { return 128 / bytes_of(a); }  ///< elements of 128 bytes along k, those of a turn
  int turns() const { return (k + row() - 1) / row(); }
};

struct RingSample {
  Program program;
  std::vector<std::byte> a, b;
  std::vector<float> expected;
};
Program ring_product_program(const RingProduct& shape);
RingSample ring_product(const RingProduct& shape);

struct RingOutcome {
  std::vector<float> output;
  Report report;
};
RingOutcome run(const RingSample& sample, const SimulatorOptions& options = {});
/// "" if the output is as expected and there are no findings; otherwise what is wrong.
std::string complaint(const RingSample& sample, const SimulatorOptions& options = {});

}  // namespace tc::tile
