#include "tc/ir/program.h"

#include <array>
#include <limits>

#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
using Halide::Type;

Type to_halide(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return Halide::Bool();
    case ScalarType::kFloat8E4M3:
      return Halide::Float(8);
    case ScalarType::kFloat8E5M2:
      return Halide::BFloat(8);
    case ScalarType::kFloat16:
      return Halide::Float(16);
    case ScalarType::kBFloat16:
      return Halide::BFloat(16);
    case ScalarType::kFloat32:
      return Halide::Float(32);
    case ScalarType::kFloat64:
      return Halide::Float(64);
    default:
      return is_signed_integer(type) ? Halide::Int(bits_of(type)) : Halide::UInt(bits_of(type));
  }
}

ScalarType from_halide(Type type) {
  for (int i = 0; i < kScalarTypes; ++i) {
    if (to_halide(static_cast<ScalarType>(i)) == type) return static_cast<ScalarType>(i);
  }
  TC_CHECK(false, "the language has no element type with {} bits and {} lanes", type.bits(), type.lanes());
}

const Tensor* Program::find_tensor(const std::string& wanted) const {
  for (const Tensor& t : tensors) {
    if (t.name == wanted) return &t;
  }
  return nullptr;
}

const Tensor& Program::tensor(const std::string& wanted) const {
  const Tensor* found = find_tensor(wanted);
  TC_CHECK(found, "program '{}' has no tensor '{}'", name, wanted);
  return *found;
}

bool Program::waits_for_scalars() const {
  return std::any_of(scalars.begin(), scalars.end(), [](const Scalar& s) { return s.specialised && !s.value; });
}

const Scalar* Program::find_scalar(const std::string& wanted) const {
  for (const Scalar& s : scalars) {
    if (s.name == wanted) return &s;
  }
  return nullptr;
}

Expr constant_of(Type type, double value) {
  if (!is_float8(type)) return Halide::Internal::make_const(type, value);
  return Halide::Internal::Cast::make(type, Halide::Internal::make_const(Halide::Float(32), value));
}

Expr zero_of(Type type) { return constant_of(type, 0); }

Expr identity_of(Assign assign, Type type) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (assign) {
    case Assign::kAdd:
      return zero_of(type);
    case Assign::kMul:
      return constant_of(type, 1);
    case Assign::kMin:
      return type.is_float() ? constant_of(type, infinity) : type.max();
    case Assign::kMax:
      return type.is_float() ? constant_of(type, -infinity) : type.min();
    case Assign::kSet:
      break;
  }
  TC_CHECK(false, "'=' has no identity");
}

bool is_tensor_read(const Program& program, const Halide::Internal::Call* call) {
  return call->call_type == Halide::Internal::Call::PureExtern && program.find_tensor(call->name) != nullptr;
}

}  // namespace tc::ir
