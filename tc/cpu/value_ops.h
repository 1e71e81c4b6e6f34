#pragma once

#include <Halide.h>

#include <string>
#include <vector>

#include "tc/cpu/emit.h"

namespace tc::cpu {

struct Operand {
  llvm::Value* value;
  Halide::Type type;
};

/// The instructions of every operation on values: what opaque_values.h introduces ("tc.add", "tc.lt", "tc.cast") and
/// the intrinsics of the language ("exp", "clamp", "popcount"). Scalar and vector forms compute the same.
class ValueOps {
 public:
  ValueOps(llvm::IRBuilder<>& builder, llvm::Module& module, const CodeTarget& target)
      : emit_(builder, module, target) {}

  llvm::Value* emit(const std::string& name, Halide::Type type, const std::vector<Operand>& operands);

  /// All lanes combined by "tc.add", "tc.mul", "tc.min" or "tc.max", as a tree.
  llvm::Value* reduce(const std::string& name, llvm::Value* vector, Halide::Type type);

 private:
  Emit emit_;
};

}  // namespace tc::cpu
