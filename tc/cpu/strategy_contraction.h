#pragma once

#include <optional>
#include <vector>

#include "tc/cpu/strategy_groups.h"
#include "tc/cpu/strategy_unit.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

struct ContractionOptions {
  UnitOptions unit;
  std::vector<int64_t> tile = {};  ///< of blocks, by dimension of the unit; empty: chosen
  int threads = 1;
  bool parallel = true;  ///< blocks of rows run in parallel
};

/// The recipe for a large contraction: both operands are packed into the order in which the register tile reads them.
///
///     other dimensions
///       blocks of columns n: all, unless a tile is asked for
///         pack B(k, n) as [n / tile][k][n % tile]
///           parallel: blocks of rows m
///             pack A(m, k) as [m / tile][k][m % tile]
///               tiles of n, tiles of m: the unit's register tile, over all of k
///
/// Nothing if the unit is not one, or too small for packing to pay.
std::optional<Tree> contraction_tree(const Analysis& analysis, const Unit& unit, const ContractionOptions& options,
                                     std::vector<poly::Promotion>& promotions);

/// What contraction_tree() makes of a unit, without making it.
struct ContractionShape {
  int rows = 0, columns = 0;  ///< numbers of the unit's dimensions
  int64_t block_rows = 0, block_columns = 0;
};
std::optional<ContractionShape> contraction_shape(const Analysis& analysis, const Unit& unit,
                                                  const ContractionOptions& options);

}  // namespace tc::cpu
