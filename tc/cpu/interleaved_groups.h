#pragma once

#include <llvm/IR/PassManager.h>

namespace tc::cpu {

/// Forbids vectors of those loops in which LLVM 14's vectoriser would exchange accesses to one element.
///
/// It gathers loads of one object with one stride into a group, which becomes wide loads at the place of the first.
/// Stores become wide stores at the place of the last. What is between is looked at for one pair at a time:
///     a = T[8*i];  T[8*i+2] = ..;  b = T[8*i+1];  c = T[8*i+2];  d = T[8*i+3]     c is read before the store
///     T[3*i] = a;  if (true) T[3*i] = 1;  T[3*i+1] = b;  T[3*i+2] = c             a is stored after 1
///     T[8*i+1] = a;  b = T[8*i];  T[8*i] = b + 1;  c = T[8*i+1]                   c is read before a is stored
/// Here no loop keeps a store and an access behind it that may touch the same, if the store's last possible place is
/// behind the access's first. (LLVM 17 mends this.)
///
/// Nor does it keep an address that starts anew, such as T[3*i % 32]: LLVM takes the counter of 5 bits for one that
/// never wraps, and reads behind the tensor.
///
/// Before loop-vectorize.
class ForbidWrongGroups : public llvm::PassInfoMixin<ForbidWrongGroups> {
 public:
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace tc::cpu
