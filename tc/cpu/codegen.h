#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>

#include "tc/cpu/lower_stmt.h"
#include "tc/cpu/object.h"
#include "tc/cpu/target.h"

namespace tc::cpu {

/// The symbol of a kernel's entry: int entry(void* const* arguments).
std::string entry_symbol(const std::string& kernel_name);

/// Translates a lowered kernel to LLVM IR, by Halide's code generator with ours for all that concerns values
/// (value_ops.h). The module holds no fast-math flag and no name that differs from one run to the next.
std::unique_ptr<llvm::Module> generate_module(const Kernel& kernel, const LoweredKernel& lowered,
                                              const CodeTarget& target, const llvm::DataLayout& layout,
                                              llvm::LLVMContext& context);

}  // namespace tc::cpu
