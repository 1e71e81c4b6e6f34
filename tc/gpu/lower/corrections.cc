#include "tc/gpu/lower/corrections.h"

#include <limits>

namespace tc::gpu {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

Expr converted(const Expr& e, Halide::Type type) { return e.type() == type ? e : hi::Cast::make(type, e); }

Expr float_constant(double value) { return hi::FloatImm::make(Halide::Float(32), value); }

Expr is_identity(const poly::Statement& reduction, const Expr& value) {
  const Halide::Type type = Halide::Float(32);
  return hi::EQ::make(converted(value, type), ir::identity_of(reduction.assign, type));
}

Expr is_no_number(const Expr& value) {
  return hi::Call::make(Halide::Bool(), "isnan", {converted(value, Halide::Float(32))}, hi::Call::PureExtern);
}

}  // namespace

Expr correction(double factor, const Expr& before, const Expr& after) {
  const Halide::Type type = Halide::Float(32);
  const Expr from = converted(before, type), to = converted(after, type), rise = hi::Sub::make(to, from);
  const Expr power = hi::Call::make(type, "exp", {hi::Mul::make(rise, float_constant(factor))}, hi::Call::PureExtern);
  return hi::Select::make(hi::Or::make(hi::EQ::make(from, to), is_no_number(to)), float_constant(1), power);
}

Expr as_number(const poly::Statement& reduction, const Expr& value) {
  return hi::Select::make(is_identity(reduction, value), ir::zero_of(reduction.accumulator), value);
}

Expr last_correction(const poly::Statement& reduction, const Expr& value) {
  const Expr none = hi::Or::make(is_identity(reduction, value), is_no_number(value));
  return hi::Select::make(none, float_constant(std::numeric_limits<double>::quiet_NaN()), float_constant(1));
}

}  // namespace tc::gpu
