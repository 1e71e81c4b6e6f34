#pragma once

#include <Halide.h>

#include <set>
#include <string>
#include <utility>
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
  /// Functions, by name and number of lanes, whose code is made once in the module and called.
  using Shared = std::set<std::pair<std::string, int>>;

  ValueOps(llvm::IRBuilder<>& builder, llvm::Module& module, const CodeTarget& target, Shared shared)
      : emit_(builder, module, target), shared_(std::move(shared)) {}

  llvm::Value* emit(const std::string& name, Halide::Type type, const std::vector<Operand>& operands);

  /// All lanes combined by "tc.add", "tc.mul", "tc.min" or "tc.max", as a tree.
  llvm::Value* reduce(const std::string& name, llvm::Value* vector, Halide::Type type);

 private:
  llvm::Value* inlined_math(const std::string& name, const std::vector<llvm::Value*>& values);
  llvm::Function* shared_function(const std::string& symbol, const std::string& name, llvm::Type* type);

  Emit emit_;
  Shared shared_;
};

}  // namespace tc::cpu
