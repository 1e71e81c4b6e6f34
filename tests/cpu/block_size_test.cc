#include "tc/cpu/block_size.h"

#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>

namespace tc::cpu {
namespace {

/// One block: places on the stack, then `stores` stores to them.
llvm::Function* stores_in_one_block(llvm::Module& module, int stores) {
  llvm::LLVMContext& context = module.getContext();
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {llvm::Type::getFloatTy(context)}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", function));
  std::vector<llvm::Value*> places;
  for (int s = 0; s < stores; ++s) places.push_back(builder.CreateAlloca(builder.getFloatTy()));
  for (llvm::Value* place : places) builder.CreateStore(function->getArg(0), place);
  builder.CreateRetVoid();
  return function;
}

size_t stores_of(const llvm::BasicBlock& block) {
  return static_cast<size_t>(std::count_if(block.begin(), block.end(), [](const llvm::Instruction& instruction) {
    return llvm::isa<llvm::StoreInst>(instruction);
  }));
}

TEST(BlockSize, BlocksOfManyStoresAreSplitInOrder) {
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  llvm::Function* function = stores_in_one_block(module, 500);
  llvm::legacy::PassManager passes;
  passes.add(create_split_large_blocks_pass());
  passes.run(module);
  EXPECT_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
  EXPECT_EQ(function->size(), (500 + kMaxBlockStores - 1) / kMaxBlockStores);
  size_t stores = 0;
  for (const llvm::BasicBlock& block : *function) {
    EXPECT_LE(stores_of(block), kMaxBlockStores);
    stores += stores_of(block);
    for (const llvm::Instruction& instruction : block) {
      EXPECT_TRUE(!llvm::isa<llvm::AllocaInst>(instruction) || &block == &function->getEntryBlock());
    }
  }
  EXPECT_EQ(stores, 500u);
}

TEST(BlockSize, SmallBlocksStayWhole) {
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  llvm::Function* function = stores_in_one_block(module, kMaxBlockStores);
  llvm::legacy::PassManager passes;
  passes.add(create_split_large_blocks_pass());
  passes.run(module);
  EXPECT_EQ(function->size(), 1u);
}

}  // namespace
}  // namespace tc::cpu
