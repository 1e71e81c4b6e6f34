#pragma once

#include <isl/cpp.h>

#include <optional>
#include <vector>

#include "tc/gpu/strategy/contraction/contraction.h"

namespace tc::gpu {

/// Points of a streamed chain's first product that count for nothing, as those that a mask hides:
///     S(m,n) = n <= m ? S(m,n) : -inf          all n > m, spelled in one of many ways
///     P(m,n) = n <= m ? exp(S(m,n) - top(m)) : 0
/// What the second product adds up is zero there, and what each reduction takes in is its identity. A product with such
/// a zero counts as zero whatever its other factor is (T5).
struct IdlePoints {
  /// Where a maximum R takes in a number, as -1e30: points count for nothing where R is far enough from it. Elsewhere
  /// they are made one by one, from R alone.
  struct Mask {
    Halide::Expr extreme;                  ///< the number that R takes in
    Halide::Expr operand;                  ///< the second product's, over kExtremeVariable
    std::vector<Halide::Expr> reductions;  ///< likewise, of each that corrections are for; undefined: of others
  };
  isl::set points;  ///< over the first product's parallel axes
  std::optional<Mask> mask = {};
};

/// Nothing if all points count. `second` may be any product that such a chain could have.
std::optional<IdlePoints> idle_points(const poly::Scop& scop, const Contraction& first, const Contraction& second);

}  // namespace tc::gpu
