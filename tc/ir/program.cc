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
  for (int i = 0; i <= static_cast<int>(ScalarType::kFloat64); ++i) {
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

const Scalar* Program::find_scalar(const std::string& wanted) const {
  for (const Scalar& s : scalars) {
    if (s.name == wanted) return &s;
  }
  return nullptr;
}

Expr identity_of(Assign assign, Type type) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (assign) {
    case Assign::kAdd:
      return Halide::Internal::make_zero(type);
    case Assign::kMul:
      return Halide::Internal::make_one(type);
    case Assign::kMin:
      return type.is_float() ? Halide::Internal::make_const(type, infinity) : type.max();
    case Assign::kMax:
      return type.is_float() ? Halide::Internal::make_const(type, -infinity) : type.min();
    case Assign::kSet:
      break;
  }
  TC_CHECK(false, "'=' has no identity");
}

bool is_tensor_read(const Program& program, const Halide::Internal::Call* call) {
  return call->call_type == Halide::Internal::Call::PureExtern && program.find_tensor(call->name) != nullptr;
}

}  // namespace tc::ir
