#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tc/cpu/target.h"

namespace tc::cpu {

/// LLVM's description of the target. Floats are IEEE; unless `strict`, a multiplication whose only use is an addition
/// is fused with it where the processor can.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const CodeTarget& target, bool strict);

/// A pass that optimises, and why it is right for our modules.
struct OptimisationPass {
  const char* name;  ///< LLVM's
  const char* reason;
};
/// All of them in order. docs/design/0010-checks-behind-the-proof.md has the same list.
std::vector<OptimisationPass> optimisation_passes();

/// Optimises in place, with a part of LLVM's -O3. Loops are not interleaved: vector code and unrolling come from the
/// schedule. Passes are left out from where `stop` says true on.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop);

/// The module as an object file or as assembly. Consumes the module's contents. Functions are left empty from where
/// `stop` says true on.
std::string emit_object(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop);
std::string emit_assembly(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop);

}  // namespace tc::cpu
