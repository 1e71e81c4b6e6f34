#include "tc/cpu/emit.h"

#include <llvm/IR/Module.h>

#include <numeric>

namespace tc::cpu {

using V = Emit::V;

int Emit::lanes(V x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* Emit::shaped(llvm::Type* element, V like) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

V Emit::as_integer(V x) { return b.CreateBitCast(x, shaped(b.getIntNTy(x->getType()->getScalarSizeInBits()), x)); }

V Emit::as_float(V x) {
  llvm::Type* element = x->getType()->getScalarSizeInBits() == 64 ? b.getDoubleTy() : b.getFloatTy();
  return b.CreateBitCast(x, shaped(element, x));
}

/// By bits: of the intrinsic LLVM 14 takes a narrowed sign as it was, float64, and ends the process when it has to
/// scalarise that.
V Emit::copysign(V magnitude, V sign) {
  const V kept = as_integer(magnitude), taken = as_integer(sign);
  const llvm::APInt top = llvm::APInt::getSignMask(kept->getType()->getScalarSizeInBits());
  return b.CreateBitCast(b.CreateOr(b.CreateAnd(kept, llvm::ConstantInt::get(kept->getType(), ~top)),
                                    b.CreateAnd(taken, llvm::ConstantInt::get(taken->getType(), top))),
                         magnitude->getType());
}

V Emit::multiply_add(V x, V y, V z) {
  if (!target.has_fma) return b.CreateFAdd(b.CreateFMul(x, y), z);
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

V Emit::polynomial(V x, std::initializer_list<double> coefficients) {
  V sum = nullptr;
  for (double c : coefficients) sum = sum ? multiply_add(sum, x, real(c, x)) : real(c, x);
  return sum;
}

V Emit::at_least(V x, double low) { return select(b.CreateFCmpOLT(x, real(low, x)), real(low, x), x); }
V Emit::at_most(V x, double high) { return select(b.CreateFCmpOGT(x, real(high, x)), real(high, x), x); }

V Emit::call_lanes(const std::string& symbol, llvm::Type* element, std::span<const V> arguments) {
  std::vector<llvm::Type*> types;
  for (V argument : arguments) types.push_back(argument->getType()->getScalarType());
  llvm::FunctionCallee callee = module.getOrInsertFunction(symbol, llvm::FunctionType::get(element, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->addFnAttr(llvm::Attribute::WillReturn);
  V like = arguments[0];
  if (!like->getType()->isVectorTy()) return b.CreateCall(callee, std::vector<V>(arguments.begin(), arguments.end()));
  V result = llvm::UndefValue::get(shaped(element, like));
  for (int i = 0; i < lanes(like); i++) {
    std::vector<V> lane;
    for (V argument : arguments) lane.push_back(b.CreateExtractElement(argument, i));
    result = b.CreateInsertElement(result, b.CreateCall(callee, lane), i);
  }
  return result;
}

V Emit::slice(V x, int begin, int count) {
  if (begin == 0 && count == lanes(x)) return x;
  std::vector<int> mask(count);
  std::iota(mask.begin(), mask.end(), begin);
  return b.CreateShuffleVector(x, mask);
}

V Emit::concatenate(std::vector<V> parts) {
  // In pairs, so that the number of shuffles is linear; the count of equal parts is padded to a power of two.
  int total = lanes(parts[0]) * static_cast<int>(parts.size());
  while (parts.size() > 1) {
    if (parts.size() % 2) parts.push_back(llvm::UndefValue::get(parts[0]->getType()));
    std::vector<V> joined;
    std::vector<int> mask(2 * lanes(parts[0]));
    std::iota(mask.begin(), mask.end(), 0);
    for (size_t i = 0; i < parts.size(); i += 2) joined.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], mask));
    parts = std::move(joined);
  }
  return slice(parts[0], 0, total);
}

}  // namespace tc::cpu
