#pragma once

#include <optional>
#include <vector>

#include "tc/cpu/strategy_groups.h"
#include "tc/cpu/strategy_unit.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

struct ContractionOptions {
  UnitOptions unit;
  int threads = 1;
  bool parallel = true;  ///< blocks of rows run in parallel
};

/// The recipe for a large contraction: both operands are packed into the order in which the register tile reads them.
///
///     other dimensions
///       pack B(k, n) as [n / tile][k][n % tile]
///         parallel: blocks of rows m
///           pack A(m, k) as [m / tile][k][m % tile]
///             tiles of n, tiles of m: the unit's register tile, over all of k
///
/// Nothing if the unit is not one, or too small for packing to pay.
std::optional<Tree> contraction_tree(const Analysis& analysis, const Unit& unit, const ContractionOptions& options,
                                     std::vector<poly::Promotion>& promotions);

}  // namespace tc::cpu
