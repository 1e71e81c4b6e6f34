#include "tc/ir/fold_constant.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tc/ir/halide_compat.h"

namespace tc::ir {
namespace {

using Halide::Expr;
using Halide::Type;
namespace hi = Halide::Internal;
using Wide = __int128;  // holds every int64 and uint64

std::optional<Wide> value_of(const Expr& e) {
  if (!e.type().is_scalar()) return std::nullopt;
  if (const int64_t* value = constant_int(e)) return *value;
  if (const uint64_t* value = constant_uint(e)) return *value;
  return std::nullopt;
}

Expr constant(Type type, Wide value) {
  if (type.is_bool()) return hi::make_bool(value != 0);
  const auto bits = static_cast<uint64_t>(value);
  if (type.is_int()) return hi::IntImm::make(type, static_cast<int64_t>(bits));
  return hi::UIntImm::make(type, bits);
}

/// R8.
Wide floor_quotient(Wide a, Wide b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
Wide floor_remainder(Wide a, Wide b) { return b == 0 ? 0 : a - floor_quotient(a, b) * b; }
/// The low bits of the product: all that is kept.
Wide low_product(Wide a, Wide b) { return static_cast<uint64_t>(a) * static_cast<uint64_t>(b); }

/// The result of a node of type Op on two constants.
template <typename Op, typename Function>
bool apply(const Expr& e, Expr& result, Function function) {
  const auto* op = e.as<Op>();
  if (op == nullptr) return false;
  const auto a = value_of(op->a), b = value_of(op->b);
  if (a && b) result = constant(e.type(), function(*a, *b));
  return true;
}

}  // namespace

Expr fold_constant(const Expr& e) {
  if (!e.type().is_scalar() || !(e.type().is_int_or_uint() || e.type().is_bool())) return e;
  Expr result = e;
  if (const auto* cast = e.as<hi::Cast>()) {
    const auto value = value_of(cast->value);
    return value ? constant(e.type(), *value) : e;
  }
  if (const auto* call = e.as<hi::Call>(); call && (call->name == "tc.floor_div" || call->name == "tc.floor_mod")) {
    const auto a = value_of(call->args[0]), b = value_of(call->args[1]);
    if (!a || !b) return e;
    return constant(e.type(), call->name == "tc.floor_div" ? floor_quotient(*a, *b) : floor_remainder(*a, *b));
  }
  apply<hi::Add>(e, result, [](Wide a, Wide b) { return a + b; }) ||
      apply<hi::Sub>(e, result, [](Wide a, Wide b) { return a - b; }) || apply<hi::Mul>(e, result, low_product) ||
      apply<hi::Div>(e, result, floor_quotient) || apply<hi::Mod>(e, result, floor_remainder) ||
      apply<hi::Min>(e, result, [](Wide a, Wide b) { return std::min(a, b); }) ||
      apply<hi::Max>(e, result, [](Wide a, Wide b) { return std::max(a, b); }) ||
      apply<hi::EQ>(e, result, [](Wide a, Wide b) { return a == b; }) ||
      apply<hi::NE>(e, result, [](Wide a, Wide b) { return a != b; }) ||
      apply<hi::LT>(e, result, [](Wide a, Wide b) { return a < b; }) ||
      apply<hi::LE>(e, result, [](Wide a, Wide b) { return a <= b; }) ||
      apply<hi::GT>(e, result, [](Wide a, Wide b) { return a > b; }) ||
      apply<hi::GE>(e, result, [](Wide a, Wide b) { return a >= b; });
  return result;
}

Expr simplify_unless_overflow(const Expr& e) {
  class Overflow : public hi::IRVisitor {
   public:
    bool found = false;

   private:
    using hi::IRVisitor::visit;
    void visit(const hi::Call* op) override {
      found = found || op->is_intrinsic(hi::Call::signed_integer_overflow);
      hi::IRVisitor::visit(op);
    }
  } overflow;
  const Expr simple = hi::simplify(e);
  simple.accept(&overflow);
  return overflow.found ? e : simple;
}

}  // namespace tc::ir
