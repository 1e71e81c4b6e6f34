#include "tc/poly/ranged.h"

#include <algorithm>

#include "tc/support/check.h"

namespace tc::poly {

using Halide::Expr;
using Wide = __int128;

namespace {

bool fits_int32(int64_t min, int64_t max) { return min >= INT32_MIN && max <= INT32_MAX; }

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

bool is_value(const Ranged& a, int64_t value) { return a.min == value && a.max == value; }

/// The result of an operation on `a` and `b` whose values lie in [min, max], or anywhere if they may wrap.
template <typename Operation>
Ranged combine(const Ranged& a, const Ranged& b, Wide min, Wide max, Operation operation) {
  const bool wraps = min < INT64_MIN || max > INT64_MAX;
  const int64_t low = wraps ? INT64_MIN : static_cast<int64_t>(min);
  const int64_t high = wraps ? INT64_MAX : static_cast<int64_t>(max);
  if (low == high) return ranged(low);
  if (a.is_narrow() && b.is_narrow() && fits_int32(low, high)) {
    return {operation(a.expr, b.expr), low, high};
  }
  return ranged(operation(as_int64(a), as_int64(b)), low, high);
}

}  // namespace

Ranged ranged(Expr expr, int64_t min, int64_t max) {
  Halide::Type type = fits_int32(min, max) ? Halide::Int(32) : Halide::Int(64);
  if (expr.type() != type) expr = Halide::cast(type, expr);
  return {expr, min, max};
}

Ranged ranged(int64_t value) {
  Halide::Type type = fits_int32(value, value) ? Halide::Int(32) : Halide::Int(64);
  return {Halide::Internal::IntImm::make(type, value), value, value};
}

Ranged unranged(Expr expr) {
  if (expr.type() == Halide::Int(32)) return {expr, INT32_MIN, INT32_MAX};
  TC_CHECK(expr.type() == Halide::Int(64), "an index expression has a type other than an integer");
  return {expr, INT64_MIN, INT64_MAX};
}

Ranged operator+(const Ranged& a, const Ranged& b) {
  if (is_value(a, 0)) return b;
  if (is_value(b, 0)) return a;
  return combine(a, b, Wide(a.min) + b.min, Wide(a.max) + b.max, [](Expr x, Expr y) { return x + y; });
}

Ranged operator-(const Ranged& a, const Ranged& b) {
  if (is_value(b, 0)) return a;
  if (a.expr.same_as(b.expr)) return ranged(0);
  return combine(a, b, Wide(a.min) - b.max, Wide(a.max) - b.min, [](Expr x, Expr y) { return x - y; });
}

Ranged operator*(const Ranged& a, const Ranged& b) {
  if (is_value(a, 1)) return b;
  if (is_value(b, 1)) return a;
  const Wide corners[] = {Wide(a.min) * b.min, Wide(a.min) * b.max, Wide(a.max) * b.min, Wide(a.max) * b.max};
  auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return combine(a, b, *low, *high, [](Expr x, Expr y) { return x * y; });
}

Ranged min(const Ranged& a, const Ranged& b) {
  if (a.max <= b.min) return a;
  if (b.max <= a.min) return b;
  return combine(a, b, std::min(a.min, b.min), std::min(a.max, b.max),
                 [](Expr x, Expr y) { return Halide::min(x, y); });
}

Ranged max(const Ranged& a, const Ranged& b) {
  if (a.min >= b.max) return a;
  if (b.min >= a.max) return b;
  return combine(a, b, std::max(a.min, b.min), std::max(a.max, b.max),
                 [](Expr x, Expr y) { return Halide::max(x, y); });
}

Ranged floor_div(const Ranged& a, int64_t divisor) {
  TC_CHECK(divisor > 0, "division of an index by {}", divisor);
  if (divisor == 1) return a;
  return combine(a, ranged(divisor), floor_div(a.min, divisor), floor_div(a.max, divisor),
                 [](Expr x, Expr y) { return x / y; });
}

Ranged floor_mod(const Ranged& a, int64_t divisor) {
  TC_CHECK(divisor > 0, "remainder of an index by {}", divisor);
  if (a.min >= 0 && a.max < divisor) return a;
  return combine(a, ranged(divisor), 0, divisor - 1, [](Expr x, Expr y) { return x % y; });
}

std::pair<Expr, Expr> matched(const Ranged& a, const Ranged& b) {
  if (a.is_narrow() && b.is_narrow()) return {a.expr, b.expr};
  return {as_int64(a), as_int64(b)};
}

Expr as_int32(const Ranged& a) { return a.is_narrow() ? a.expr : Halide::cast(Halide::Int(32), a.expr); }

Expr as_int64(const Ranged& a) { return a.is_narrow() ? Halide::cast(Halide::Int(64), a.expr) : a.expr; }

Expr less_equal(const Ranged& a, const Ranged& b) {
  if (a.max <= b.min) return Halide::Internal::const_true();
  if (a.min > b.max) return Halide::Internal::const_false();
  auto [x, y] = matched(a, b);
  return x <= y;
}

Expr less(const Ranged& a, const Ranged& b) {
  if (a.max < b.min) return Halide::Internal::const_true();
  if (a.min >= b.max) return Halide::Internal::const_false();
  auto [x, y] = matched(a, b);
  return x < y;
}

Expr equal(const Ranged& a, const Ranged& b) {
  if (a.max < b.min || b.max < a.min) return Halide::Internal::const_false();
  if (a.is_constant() && b.is_constant()) return Halide::Internal::const_true();
  auto [x, y] = matched(a, b);
  return x == y;
}

}  // namespace tc::poly
