#include "tc/gpu/rewrite/tf32_parts.h"

#include <algorithm>
#include <cmath>

#include "tc/ir/factors.h"
#include "tc/ir/tf32_values.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr size_t kFactors = 3;

/// The value, or 0 where it is an infinity or a NaN. `exponent`: finite values have less than 2^exponent.
Expr finite_or_zero(const Expr& e, const Expr& value, int exponent) {
  const Expr limit = hi::make_const(Halide::Float(32), std::ldexp(1.0, exponent));
  const Expr is_finite = hi::LT::make(e, limit) && hi::LT::make(hi::make_zero(limit.type()) - limit, e);
  return hi::Select::make(is_finite, value, hi::make_zero(value.type()));
}

}  // namespace

std::vector<Tf32Parts> tf32_parts(const std::vector<Expr>& factors) {
  constexpr int kExponent = 16;  // of float16: all are less than 2^16
  if (factors.size() != kFactors || !std::all_of(factors.begin(), factors.end(), ir::is_narrow_factor)) return {};
  std::vector<Tf32Parts> result;
  for (size_t alone = kFactors; alone-- > 0;) {
    const Expr &x = factors[alone == 0 ? 1 : 0], &y = factors[alone == 2 ? 1 : 2], &z = factors[alone];
    const Expr product = hi::Mul::make(x, y), leading = ir::tf32_of(product);
    result.push_back({.leading = leading,
                      .rest = ir::tf32_of(finite_or_zero(product, product - leading, 2 * kExponent)),
                      .z = z,
                      .finite = ir::tf32_of(finite_or_zero(z, z, kExponent))});
  }
  return result;
}

}  // namespace tc::gpu
