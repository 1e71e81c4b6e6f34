#include "tc/cpu/block_size.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace tc::cpu {
namespace {

/// The instruction with which the second part begins, or null if the block is small. Places on the stack stay in the
/// first block of the function: elsewhere each would be made anew whenever the block runs.
llvm::Instruction* second_part(llvm::BasicBlock& block) {
  size_t instructions = 0;
  size_t stores = 0;
  for (llvm::Instruction& instruction : block) {
    if (instruction.isTerminator()) return nullptr;
    const bool is_full = instructions >= kMaxBlockInstructions || stores >= kMaxBlockStores;
    if (is_full && !llvm::isa<llvm::PHINode, llvm::AllocaInst>(instruction)) return &instruction;
    ++instructions;
    if (instruction.mayWriteToMemory()) ++stores;
  }
  return nullptr;
}

class SplitLargeBlocks : public llvm::FunctionPass {
 public:
  SplitLargeBlocks() : FunctionPass(id) {}

  bool runOnFunction(llvm::Function& function) override {
    bool changed = false;
    for (llvm::BasicBlock& block : function) {
      // The second part is the next block of the function: the loop meets it, too.
      if (llvm::Instruction* begin = second_part(block)) llvm::SplitBlock(&block, begin), changed = true;
    }
    return changed;
  }

 private:
  static char id;  // its address tells passes apart
};
char SplitLargeBlocks::id = 0;

}  // namespace

llvm::FunctionPass* create_split_large_blocks_pass() { return new SplitLargeBlocks(); }

}  // namespace tc::cpu
