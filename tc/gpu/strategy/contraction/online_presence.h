#pragma once

#include "tc/gpu/strategy/contraction/online_reduction.h"

namespace tc::gpu {

/// Of a streamed chain with an OnlineReduction R, where points are not zero whatever R is, over the first product's
/// parallel axes; undefined: everywhere. A row without such points has sums that are zero, even if R is the identity,
/// or NaN.
///     P(m,n) = keep(n) ? exp(S(m,n) - top(m)) : 0
Halide::Expr presence(const poly::Scop& scop, const Contraction& first, const Contraction& second);

/// Variables of PointValues: the product's result, and an OnlineReduction's R.
inline constexpr char kProductVariable[] = "product", kExtremeVariable[] = "extreme";

/// What is made of a product's result at a point: over the first product's parallel axes, variables and what is read.
struct PointValues {
  std::vector<Halide::Expr> reductions;  ///< each one's value
  Halide::Expr operand;                  ///< that the second product reads
  Halide::Expr term;                     ///< that it adds up, of this and placeholders for its other operands
};

/// A streamed chain's first product with what stands between the two.
struct PointsBetween {
  ReducedProduct product;
  PointValues values;
  Halide::Expr present;  ///< presence()
};
std::optional<PointsBetween> points_between(const poly::Scop& scop, const Contraction& first,
                                            const Contraction& second);

}  // namespace tc::gpu
