#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/strategy/contraction/contraction.h"

namespace tc::gpu {

/// A maximum R, or minimum, over the columns of a product, which other statements on its points read while it goes on.
/// What has been made with an earlier R is multiplied by a correction, when a later slab of columns changes R:
///     top(m) max=! S(m,n)                       R, over the columns so far
///     P(m,n) = exp(c * (S(m,n) - top(m)))       is exp(-c * R) times something that R is no part of
///     total(m) +=! P(m,n)                       times exp(-c * (R' - R)) when R becomes R'
///     A(m,e) +=! P(m,n) * V(n,e)                likewise
/// (Online normalizer calculation for softmax, arXiv 1805.02867.) Corrections and values are bounded.
struct OnlineReduction {
  size_t reduction = 0;           ///< R, among the first product's reductions
  double factor = 0;              ///< -c
  size_t points_before = 0;       ///< of `after`: made before R is known for a slab
  std::string kept;               ///< of what those make, or the product itself, all that others read
  std::vector<bool> before;       ///< per reduction: likewise
  std::vector<bool> rescaled;     ///< per reduction: a sum that corrections are for
  bool rescales_product = false;  ///< the second one's sums
  bool is_subtracted = false;     ///< points behind multiply `kept` and R, and read them in kept - R alone
};

/// A product with all statements up to the one that sums over its columns.
struct ReducedProduct {
  Contraction product;                         ///< with the reductions, in order
  std::optional<OnlineReduction> online = {};  ///< absent: points read no reduction
};

/// The product `first`, whose points the product `second` reads in its operand `operand`, with all that stands between
/// them, as one kernel may do it in slabs. Reductions go along the axis `columns`.
std::optional<ReducedProduct> reduced_product(const poly::Scop& scop, const Contraction& first,
                                              const Contraction& second);

}  // namespace tc::gpu
