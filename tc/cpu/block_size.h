#pragma once

#include <llvm/Pass.h>

namespace tc::cpu {

/// The largest block that LLVM's instruction selection gets.
inline constexpr size_t kMaxBlockInstructions = 2000;
inline constexpr size_t kMaxBlockStores = 64;

/// A pass that splits larger blocks of a function. Selection takes one block at a time, in which it compares each store
/// with all accesses before: 500 statements of a chain in one block take half a minute, in which nothing can stop it.
///
/// Behind the passes that join blocks: those look at what is used together, and have done so.
llvm::FunctionPass* create_split_large_blocks_pass();

}  // namespace tc::cpu
