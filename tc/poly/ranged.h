#pragma once

#include <Halide.h>

#include <cstdint>

namespace tc::poly {

/// An integer expression with the interval that its values lie in. The expression is Int(32) exactly if the
/// interval fits int32, and Int(64) otherwise: address arithmetic is narrow where that is proved safe.
struct Ranged {
  Halide::Expr expr;
  int64_t min = INT64_MIN;
  int64_t max = INT64_MAX;

  bool is_constant() const { return min == max; }
  bool is_narrow() const { return expr.type().bits() == 32; }
};

/// An expression of Int(32) or Int(64) known to lie in [min, max], brought to the width that this allows.
Ranged ranged(Halide::Expr expr, int64_t min, int64_t max);
Ranged ranged(int64_t value);
/// An Int(32) or Int(64) expression of which nothing is known.
Ranged unranged(Halide::Expr expr);

Ranged operator+(const Ranged& a, const Ranged& b);
Ranged operator-(const Ranged& a, const Ranged& b);
Ranged operator*(const Ranged& a, const Ranged& b);
Ranged min(const Ranged& a, const Ranged& b);
Ranged max(const Ranged& a, const Ranged& b);
/// Rounds toward minus infinity; `divisor` > 0.
Ranged floor_div(const Ranged& a, int64_t divisor);
Ranged floor_mod(const Ranged& a, int64_t divisor);

/// Both expressions in one width: narrow if both are.
std::pair<Halide::Expr, Halide::Expr> matched(const Ranged& a, const Ranged& b);

Halide::Expr as_int32(const Ranged& a);  ///< the caller knows that the value fits
Halide::Expr as_int64(const Ranged& a);

/// Comparisons, folded to a constant where the intervals decide.
Halide::Expr less_equal(const Ranged& a, const Ranged& b);
Halide::Expr less(const Ranged& a, const Ranged& b);
Halide::Expr equal(const Ranged& a, const Ranged& b);

}  // namespace tc::poly
