#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <initializer_list>
#include <span>
#include <string>

#include "tc/cpu/target.h"

namespace tc::cpu {

/// LLVM instructions with the shorthand that numeric code wants. Every value may be a scalar or a vector; constants
/// take the shape of the value that they stand beside. No instruction carries a fast-math flag.
class Emit {
 public:
  using V = llvm::Value*;

  Emit(llvm::IRBuilder<>& builder, llvm::Module& module, const CodeTarget& target)
      : b(builder), module(module), target(target) {}

  llvm::IRBuilder<>& b;
  llvm::Module& module;
  const CodeTarget& target;

  static int lanes(V x);
  /// `element`, or a vector of it with as many lanes as `like`.
  static llvm::Type* shaped(llvm::Type* element, V like);
  V real(double c, V like) { return llvm::ConstantFP::get(like->getType(), c); }
  V integer(int64_t c, V like) { return llvm::ConstantInt::getSigned(like->getType(), c); }

  V as_integer(V x);  ///< the bits of floats
  V as_float(V x);    ///< floats from their bits, int32 or int64

  V select(V condition, V a, V c) { return b.CreateSelect(condition, a, c); }
  V is_nan(V x) { return b.CreateFCmpUNO(x, x); }
  V absolute(V x) { return unary(llvm::Intrinsic::fabs, x); }
  V copysign(V magnitude, V sign);
  V unary(llvm::Intrinsic::ID id, V x) { return b.CreateUnaryIntrinsic(id, x); }
  /// x * y + z: one rounding where the target has the instruction, two elsewhere.
  V multiply_add(V x, V y, V z);
  /// The coefficients from the highest power down, by Horner's rule.
  V polynomial(V x, std::initializer_list<double> coefficients);
  /// Bound below and above; a NaN stays.
  V at_least(V x, double low);
  V at_most(V x, double high);

  /// Calls a pure C function once for each lane. The result has `element` lanes.
  V call_lanes(const std::string& symbol, llvm::Type* element, std::span<const V> arguments);
  /// Applies `f` to pieces of `lanes` lanes (lanes(x) is a multiple) and joins the results.
  template <typename Function>
  V in_pieces(V x, int piece, Function&& f) {
    std::vector<V> parts;
    for (int i = 0; i < lanes(x); i += piece) parts.push_back(f(slice(x, i, piece)));
    return concatenate(parts);
  }
  V slice(V x, int begin, int count);
  V concatenate(std::vector<V> parts);
};

}  // namespace tc::cpu
