#pragma once

#include <Halide.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/strategy/contraction/chain.h"

namespace tc::gpu {

/// The slabs of a streamed chain in which a block has points that count: [first, first + count), one of them at least.
///     S(m,n) = n <= m ? S(m,n) : -inf    blocks of 128 rows, slabs of 64 columns:  first = 0, count = 2 * block + 2
struct SlabRange {
  Halide::Expr first, count;       ///< Int(32), over variables block_variable()
  std::vector<bool> depends;       ///< per parallel axis of the first product: on where the block's rows are along it
  std::vector<bool> is_ascending;  ///< likewise: blocks have more slabs, the further they are along it
  double share = 1;                ///< of all slabs, on average
};

/// A block's number along a parallel axis of the first product.
std::string block_variable(size_t axis);

/// Of a streamed chain, by the first product's plan. Nothing if all blocks need all slabs.
std::optional<SlabRange> slab_range(const Chain& chain, const ContractionPlan& plan);

/// The share of all slabs that blocks go through, on average, for plans of one chain.
class SlabShares {
 public:
  explicit SlabShares(const Chain& chain) : chain_(chain) {}
  double of(const ContractionPlan& plan);

 private:
  const Chain& chain_;
  std::map<std::vector<int64_t>, double> known_;  ///< by the tiles of all axes
};

}  // namespace tc::gpu
