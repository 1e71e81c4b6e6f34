#pragma once

#include <functional>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// A sum of products of three factors, one of which moved out of the sum over the indices that it lacks:
///     Z(b,o) +=! X(b,i) * W(o,i,j) * Y(b,j)
///         ==>   Z_products(b,o,i) +=! W(o,i,j) * Y(b,j)          product
///               Z(b,o) +=! X(b,i) * Z_products(b,o,i)            sum
/// The product has the indices of its factors only, so that sums of chains are products too:
///     Z(m,n) +=! A(m,k) * B(k,l) * C(l,n)
///         ==>   Z_products(k,n) +=! B(k,l) * C(l,n)
///               Z(m,n) +=! A(m,k) * Z_products(k,n)
struct FactoredSum {
  ir::Tensor temporary;
  ir::Statement product, sum;
};

/// Of several ways to factor a statement of a program, the number of the best; nothing: it stays as it is.
using ChooseFactor =
    std::function<std::optional<size_t>(const ir::Program&, const ir::Statement&, const std::vector<FactoredSum>&)>;

/// Lets tensor cores multiply two of three factors. The product is a sum over fewer indices, which the other factor
/// goes through once; its results are reduced where they are made (tile_reductions.h), or stored if they are few. All
/// three factors are float16 by the text, or integers of 8 bits: no finite result overflows or underflows by that, and
/// the order of a sum is free (T5). On a specialised Program, before narrow_products().
ir::Program factor_sums(ir::Program program, const ChooseFactor& choose);

}  // namespace tc::gpu
