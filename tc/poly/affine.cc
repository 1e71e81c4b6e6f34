#include "tc/poly/affine.h"

#include <algorithm>

#include "tc/ir/halide_compat.h"
#include "tc/poly/isl_ext.h"

namespace tc::poly {

using Halide::Expr;
using Halide::Type;
namespace hi = Halide::Internal;
using Range = AffineScope::Range;

namespace {

/// A range in 128 bits, or nothing if it leaves those of 64.
Range fit(__int128 low, __int128 high) {
  if (low < INT64_MIN || high > INT64_MAX) return std::nullopt;
  return std::pair(static_cast<int64_t>(low), static_cast<int64_t>(high));
}

Range product_range(const Range& a, const Range& b) {
  if (!a || !b) return std::nullopt;
  const __int128 corners[] = {__int128{a->first} * b->first, __int128{a->first} * b->second,
                              __int128{a->second} * b->first, __int128{a->second} * b->second};
  return fit(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

bool representable(const Type& type, const Range& range) {
  if (type.bits() == 64 && type.is_int()) return true;
  if (!range || (!type.is_int() && !type.is_uint())) return false;
  if (type.is_uint()) {
    if (range->first < 0) return false;
    return type.bits() == 64 || range->second <= (int64_t{1} << type.bits()) - 1;
  }
  const int64_t limit = int64_t{1} << (type.bits() - 1);
  return range->first >= -limit && range->second <= limit - 1;
}

std::optional<int64_t> constant_of(const Range& range) {
  if (range && range->first == range->second) return range->first;
  return std::nullopt;
}

}  // namespace

AffineScope::AffineScope(isl::space space, std::vector<std::string> indices, std::vector<Range> ranges)
    : space_(std::move(space)), indices_(std::move(indices)), ranges_(std::move(ranges)) {}

std::optional<isl::pw_aff> AffineScope::affine(const Expr& expr) {
  std::optional<Value> v = value(expr);
  if (!v) return std::nullopt;
  return v->function;
}

void AffineScope::with_let(const std::string& name, const Expr& bound, const std::function<void()>& body) {
  lets_.emplace_back(name, bound);
  body();
  lets_.pop_back();
}

std::optional<AffineScope::Value> AffineScope::checked(const Type& type, isl::pw_aff function, Range range) const {
  if (!representable(type, range)) return std::nullopt;
  return Value{std::move(function), range};
}

std::optional<AffineScope::Value> AffineScope::variable_value(const hi::Variable* variable) {
  for (size_t i = lets_.size(); i-- > 0;) {
    if (lets_[i].first != variable->name) continue;
    AffineScope outside(*this);  // a let's value sees only the lets around it
    outside.lets_.resize(i);
    return outside.value(lets_[i].second);
  }
  auto found = std::find(indices_.begin(), indices_.end(), variable->name);
  if (found != indices_.end()) {
    const size_t position = found - indices_.begin();
    return Value{poly::variable(space_, position), ranges_[position]};
  }
  return std::nullopt;  // a scalar of the caller's: sizes, and scalars in ranges and subscripts, are constants here
}

std::optional<AffineScope::Value> AffineScope::product(const Type& type, const Value& a, const Value& b) {
  if (auto factor = constant_of(b.range)) {
    return checked(type, a.function.scale(make_val(space_.ctx(), *factor)), product_range(a.range, b.range));
  }
  if (constant_of(a.range)) return product(type, b, a);
  return std::nullopt;
}

std::optional<AffineScope::Value> AffineScope::binary(const Expr& expr, const Expr& left, const Expr& right) {
  std::optional<Value> a = value(left);
  std::optional<Value> b = a ? value(right) : std::nullopt;
  if (!a || !b) return std::nullopt;
  const Type type = expr.type();
  const bool known = a->range && b->range;
  auto low = [&](const Value& v) { return __int128{v.range->first}; };
  auto high = [&](const Value& v) { return __int128{v.range->second}; };
  switch (expr.node_type()) {
    case hi::IRNodeType::Add:
      return checked(type, a->function.add(b->function),
                     known ? fit(low(*a) + low(*b), high(*a) + high(*b)) : std::nullopt);
    case hi::IRNodeType::Sub:
      return checked(type, a->function.sub(b->function),
                     known ? fit(low(*a) - high(*b), high(*a) - low(*b)) : std::nullopt);
    case hi::IRNodeType::Mul:
      return product(type, *a, *b);
    case hi::IRNodeType::Min:
      return checked(type, a->function.min(b->function),
                     known ? fit(std::min(low(*a), low(*b)), std::min(high(*a), high(*b))) : std::nullopt);
    case hi::IRNodeType::Max:
      return checked(type, a->function.max(b->function),
                     known ? fit(std::max(low(*a), low(*b)), std::max(high(*a), high(*b))) : std::nullopt);
    case hi::IRNodeType::Div:
    case hi::IRNodeType::Mod: {
      auto divisor = constant_of(b->range);
      if (!divisor || *divisor <= 0) return std::nullopt;
      const isl::val d = make_val(space_.ctx(), *divisor);
      if (expr.node_type() == hi::IRNodeType::Mod) {
        return Value{a->function.mod(d), fit(0, *divisor - 1)};
      }
      Range range;
      if (a->range) range = fit(floor_div(a->range->first, *divisor), floor_div(a->range->second, *divisor));
      return Value{a->function.scale_down(d).floor(), range};
    }
    default:
      return std::nullopt;
  }
}

std::optional<AffineScope::Value> AffineScope::value(const Expr& expr) {
  const Type type = expr.type();
  if (!type.is_int() && !type.is_uint()) return std::nullopt;
  if (const int64_t* literal = ir::constant_int(expr)) {
    return Value{poly::constant(space_, *literal), fit(*literal, *literal)};
  }
  if (const uint64_t* literal = ir::constant_uint(expr)) {
    if (*literal > INT64_MAX) return std::nullopt;
    return Value{poly::constant(space_, static_cast<int64_t>(*literal)), fit(*literal, *literal)};
  }
  if (const auto* cast = expr.as<hi::Cast>()) {
    std::optional<Value> inner = cast->value.type().is_bool() ? std::nullopt : value(cast->value);
    if (!inner) return std::nullopt;
    return checked(type, inner->function, inner->range);
  }
  if (const auto* v = expr.as<hi::Variable>()) return variable_value(v);
  if (const auto* op = expr.as<hi::Add>()) return binary(expr, op->a, op->b);
  if (const auto* op = expr.as<hi::Sub>()) return binary(expr, op->a, op->b);
  if (const auto* op = expr.as<hi::Mul>()) return binary(expr, op->a, op->b);
  if (const auto* op = expr.as<hi::Div>()) return binary(expr, op->a, op->b);
  if (const auto* op = expr.as<hi::Mod>()) return binary(expr, op->a, op->b);
  if (const auto* op = expr.as<hi::Min>()) return binary(expr, op->a, op->b);
  if (const auto* op = expr.as<hi::Max>()) return binary(expr, op->a, op->b);
  if (const auto* call = expr.as<hi::Call>(); call && call->name == "abs" && call->args.size() == 1) {
    const std::optional<Value> inner = value(call->args[0]);
    if (!inner || !inner->range) return std::nullopt;
    const auto [low, high] = *inner->range;
    const __int128 most = std::max(-__int128{low}, __int128{high});
    return checked(type, inner->function.max(inner->function.neg()), fit(0, most));
  }
  if (const auto* let = expr.as<hi::Let>()) {
    std::optional<Value> result;
    with_let(let->name, let->value, [&] { result = value(let->body); });
    return result;
  }
  return std::nullopt;
}

std::optional<AffineScope::Truth> AffineScope::comparison(const Expr& condition) {
  auto compare = [&](const Expr& left, const Expr& right, auto&& relation) -> std::optional<Truth> {
    std::optional<isl::pw_aff> a = affine(left);
    std::optional<isl::pw_aff> b = a ? affine(right) : std::nullopt;
    if (!a || !b) return std::nullopt;
    return relation(*a, *b);
  };
  using P = const isl::pw_aff&;
  auto less = [](P a, P b) { return Truth{a.lt_set(b), a.ge_set(b)}; };
  auto less_equal = [](P a, P b) { return Truth{a.le_set(b), a.gt_set(b)}; };
  auto equal = [](P a, P b) { return Truth{a.eq_set(b), a.ne_set(b)}; };
  if (const auto* op = condition.as<hi::LT>()) return compare(op->a, op->b, less);
  if (const auto* op = condition.as<hi::GT>()) return compare(op->b, op->a, less);
  if (const auto* op = condition.as<hi::LE>()) return compare(op->a, op->b, less_equal);
  if (const auto* op = condition.as<hi::GE>()) return compare(op->b, op->a, less_equal);
  if (const auto* op = condition.as<hi::EQ>()) return compare(op->a, op->b, equal);
  if (const auto* op = condition.as<hi::NE>()) {
    std::optional<Truth> t = compare(op->a, op->b, equal);
    if (t) std::swap(t->holds, t->fails);
    return t;
  }
  return std::nullopt;
}

AffineScope::Truth AffineScope::truth(const Expr& condition) {
  const isl::set all = space_.universe_set();
  if (hi::is_const_one(condition)) return {all, isl::set::empty(space_)};
  if (hi::is_const_zero(condition)) return {isl::set::empty(space_), all};
  if (const auto* op = condition.as<hi::And>()) {
    const Truth a = truth(op->a), b = truth(op->b);
    return {a.holds.intersect(b.holds), a.fails.unite(b.fails)};
  }
  if (const auto* op = condition.as<hi::Or>()) {
    const Truth a = truth(op->a), b = truth(op->b);
    return {a.holds.unite(b.holds), a.fails.intersect(b.fails)};
  }
  if (const auto* op = condition.as<hi::Not>()) {
    const Truth a = truth(op->a);
    return {a.fails, a.holds};
  }
  if (const auto* let = condition.as<hi::Let>()) {
    Truth result{all, all};
    with_let(let->name, let->value, [&] { result = truth(let->body); });
    return result;
  }
  if (std::optional<Truth> exact = comparison(condition)) return *exact;
  return {all, all};
}

}  // namespace tc::poly
