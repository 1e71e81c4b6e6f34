#include "tc/cpu/vector_math.h"

namespace tc::cpu {

llvm::Value* emit_vector_math(Emit&, const std::string&, std::span<llvm::Value* const>) { return nullptr; }

}  // namespace tc::cpu
